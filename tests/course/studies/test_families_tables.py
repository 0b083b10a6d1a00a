"""The table of families that ships."""

from tinytf_course import studies
from tinytf_course.studies import families as lab
from tinytf_course.studies import families_tables


def test_the_study_that_ships_is_whole():
    rows = studies.load("families")["rows"]
    runs = [(row["family"], row["seed"]) for row in rows if "family" in row]
    assert sorted(runs) == sorted((f, s) for f in lab.FAMILIES for s in families_tables.SEEDS)
    tried = studies.load("families_rates")["rows"]
    for family, best in lab.BEST.items():
        losses = {row["lr"]: row["loss"] for row in tried if row["family"] == family}
        assert losses[best] < min(losses.values()) + 0.005  # the best, or level with it
