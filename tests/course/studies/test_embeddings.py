"""The study of the embeddings' scale: its starts, a run of it, and its tables."""

import math

import pytest

from tinytf.cli.train import build
from tinytf.training.trainer import TrainingConfig
from tinytf_course.studies.embeddings import STARTS, begin, train


def model(**options):
    return build(TrainingConfig(steps=1, warmup=1), batch_size=2, **options)[0].model


@pytest.mark.parametrize("name", STARTS)
def test_a_model_begins_as_it_is_told(name):
    fresh, start = model(tie_output=False), STARTS[name]
    positions = fresh.positions.table.clone()
    begin(fresh, start)
    for table in (fresh.src_embedding, fresh.tgt_embedding):
        assert table.weight.std().item() == pytest.approx(start.std, rel=0.05)
        assert table.scale == start.factor
    assert fresh.positions.table.equal(positions * start.positions)


def test_shared_tables_are_refused():
    with pytest.raises(ValueError, match="the tables are shared"):
        begin(model(), STARTS["std 1, × √d"])


def test_a_run_gives_its_losses():
    row = train("std 1, × √d", 0, steps=20, test_size=2, bar=False)
    assert row["start"] == "std 1, × √d"
    assert [point["step"] for point in row["history"]] == [20]
    assert math.isfinite(row["history"][0]["loss"])
    assert 0 <= row["test"] <= 1
