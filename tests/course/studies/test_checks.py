"""The studies of the clinic's checks: their rows and how they are read."""

from tinytf_course.clinic.checks import CHECKS
from tinytf_course.clinic.patients import healthy, load
from tinytf_course.studies import checks


def test_another_seed_is_another_model():
    one, two = (checks.reseeded(load(healthy("writer")), seed) for seed in (0, 1))
    assert not one.make_model(0).head.weight.equal(two.make_model(0).head.weight)


def test_the_table_keeps_the_least_of_the_seeds(monkeypatch):
    blank = dict.fromkeys(CHECKS)
    rows = [{"name": "a", "found": blank | {"last step": n}} for n in (1.0, 0.0)]
    monkeypatch.setattr(checks, "read", lambda name: {"rows": rows})
    table = checks.ward_table()
    assert table["a"]["last step"] == 0.0
    assert checks.found_by(table) == {"a": []}
    assert checks.found_by(checks.ward_table(max)) == {"a": ["last step"]}
    table["a"]["last step"] = 1.0
    assert checks.found_by(table) == {"a": ["last step"]}
    assert checks.found_in(table)["last step"] == ["a"]
    monkeypatch.setattr(checks, "read", lambda name: {"rows": [{"found": table["a"]}] * 2})
    assert checks.alarms() == (2, 2)
