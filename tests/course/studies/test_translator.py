"""The table of translators that ships is complete, and the rival is as broken as it should be."""

import torch

from tinytf.transformer import Transformer, TransformerConfig
from tinytf_course import studies
from tinytf_course.studies.translator import Rival


def test_the_shipped_table_of_translators_is_complete():
    rows = studies.load("recurrence_phrasebook")["rows"]
    seeds = {}
    for row in rows:
        seeds.setdefault((row["part"], row["run"]), []).append(row.get("seed"))
        if row["part"] == "speed":
            continue
        assert row["steps"] == {"run": 800, "longer": 2400}[row["part"]]
        assert row["curve"][-1]["step"] == row["steps"]
        assert ("alignment" in row) == (row["run"] != "one vector")
        assert len(row["by_length_without_because"]) == 7
    for name in ("one vector", "Bahdanau", "Transformer"):
        assert sorted(seeds["run", name]) == [0, 1, 2, 3, 4]
        assert sorted(seeds["longer", name]) == [0, 1]
        assert seeds["speed", name] == [None]
    runs = [row for row in rows if row["part"] != "speed"]
    assert len({(row["lr"], row["batch"]) for row in runs}) == 1
    assert max(r["parameters"] for r in runs) < 1.03 * min(r["parameters"] for r in runs)


def test_the_rival_sees_the_words_it_must_say():
    torch.manual_seed(0)
    src, tgt = torch.randint(3, 12, (2, 1, 6))
    for model, reaches in ((Rival, True), (Transformer, False)):
        made = model(TransformerConfig(12, 12, 16, 2, 1, 32, dropout=0.0)).eval()
        states = made.positions(made.tgt_embedding(tgt)).detach().requires_grad_()
        memory = made.encode(src)
        made.positions.forward = lambda x, start=0, states=states: states
        made.decode(tgt, memory)[0, 2, 0].backward()
        assert bool(states.grad[0, 3:].any()) is reaches
