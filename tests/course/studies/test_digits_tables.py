"""The tables of images have every row."""

from support import needs_scikit_learn

from tinytf_course.studies import digits as study
from tinytf_course.studies import digits_tables

pytestmark = needs_scikit_learn


def test_controls_train_without_shifts_for_as_many_steps(monkeypatch):
    monkeypatch.setattr(digits_tables, "SIZES", (20, 150))
    for module in (study, digits_tables):
        monkeypatch.setattr(module, "STEPS", {False: 2, True: 3})
    monkeypatch.setattr(study, "shift", None)  # would raise if called
    rows = digits_tables.controls([1])
    assert [(row["model"], row["size"]) for row in rows] == [("encoder, shuffled", 150),
                                                             ("encoder", 20)]  # fmt: skip
    assert all(row["steps"] == 3 and not row["shifts"] for row in rows)
    assert abs(rows[0]["near"]) < 0.3
    assert rows[0]["near"] != rows[0]["near_as_shuffled"]


def test_a_small_study_has_every_row(monkeypatch):
    monkeypatch.setattr(digits_tables, "SIZES", (20, 150))
    for module in (study, digits_tables):
        monkeypatch.setattr(module, "STEPS", {False: 2, True: 2})
    rows = digits_tables.study([0])
    full = [row for row in rows if row["size"] == 150]
    assert len(rows) == 2 * 9 + 3
    assert {row["model"] for row in rows} == {
        "nearest", "logistic", "MLP", "CNN", "encoder",
        "CNN, shuffled", "encoder, shuffled", "encoder, no positions",
    }  # fmt: skip
    assert sum("hidden" in row for row in full) == 1
    assert all(len({row["parameters"] for row in rows if row["model"] == name}) == 1
               for name in ("MLP", "CNN", "encoder"))  # fmt: skip
