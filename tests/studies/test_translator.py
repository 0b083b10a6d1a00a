"""The table of translators that ships is complete."""

from tinytf import studies


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
