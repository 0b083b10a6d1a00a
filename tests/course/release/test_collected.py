"""Submissions are read, graded anew, and what is strange among them is named."""

import csv
import json

from tinytf_course.__main__ import main
from tinytf_course.grading import exercises

SETUP = "import torch\nfrom tinytf_course import check, predict"


def cell(text, *outputs, ended=None):
    times = {"execution": {"iopub.status.idle": ended}} if ended else {}
    return {"cell_type": "code", "source": text, "metadata": times, "outputs": list(outputs)}


def said(text, **metadata):
    data = {"text/plain": text}
    return {"output_type": "display_data", "data": data, "metadata": metadata}


def passed(id):
    return said(f"✓ {id}", check={"id": id, "status": "passed"})


def hand_in(path, *cells):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": cells, "metadata": {}}), encoding="utf-8")


def collected(folder, *options):
    assert main(["collect", str(folder), *options]) == 0
    with (folder / "collected.csv").open(encoding="utf-8") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def submit(folder):
    """A class: one honest, one who edited outputs and calls the package; and strange files."""
    right = exercises()["05.1"].solution
    hand_in(
        folder / "ada" / "05_it.ipynb",
        cell(SETUP, ended="2026-03-01T10:00:00.000000Z"),
        cell(right + 'check("05.1", my_lookup)', passed("05.1"), ended="2026-03-01T10:10:00Z"),
        cell("", said("✓ 05-a  you said: itself; measured: itself")),
        cell("x", said("✓ 05-a  you said: itself; measured: itself")),
        cell("y", said("→ 05-b  you said: 1; measured: 2"), ended="2026-03-01T12:00:00Z"),
        cell("z", said("→ 05-c  measured: 2"), ended="2026-03-01T12:05:00Z"),
    )
    hand_in(
        folder / "=bob" / "10_it.ipynb",
        cell("from tinytf.norm import rms_norm"),
        cell("def my_batch_norm(*a):\n    return 1", passed("10.4")),
        cell("my_rms_norm = rms_norm", passed("10.3")),
    )
    (folder / "ada" / "notes.txt").write_text("hello")
    (folder / "ada" / "06_broken.ipynb").write_text("{")
    hand_in(folder / "ada" / "05_forms.ipynb", cell("1", {"data": 3}))
    hand_in(folder / "eve" / "holiday.ipynb", cell("1"))
    hand_in(folder / "eve" / ".ipynb_checkpoints" / "05_it.ipynb", cell("1"))


def test_answers_are_graded_and_claims_compared(tmp_path, capsys):
    submit(tmp_path)
    rows = collected(tmp_path)
    out, err = capsys.readouterr()
    ada, bob = rows["ada"], rows["'=bob"]
    assert set(rows) == {"ada", "'=bob"}
    assert (ada["predicted"], ada["predicted_right"]) == ("2", "1")
    assert (ada["exercises_passed"], ada["passed"]) == ("1", "05.1")
    assert ada["minutes_at_work"] == "15"  # the long pause is none of it
    assert ada["minutes_worth"] == str(exercises()["05.1"].minutes)
    assert (bob["passed"], bob["calls"]) == ("10.3", "tinytf.norm.rms_norm")
    assert "10.4 is said to have passed, and does not" in bob["remarks"]
    assert "10.4: wrong" in bob["remarks"]
    assert "10.1: there is no `" in bob["remarks"]
    assert "10.3" not in bob["remarks"]
    assert "predictions and minutes are what the notebook's file says" in out
    for name in ("notes.txt", "06_broken.ipynb", "05_forms.ipynb", "holiday.ipynb"):
        assert f"{name}: " in err, name
    assert "checkpoints" not in err


def test_saved_outputs_are_believed_only_if_asked(tmp_path, capsys):
    submit(tmp_path)
    rows = collected(tmp_path, "--saved")
    assert rows["'=bob"]["passed"] == "10.3 10.4"
    assert "What can be forged: everything" in capsys.readouterr().out


def test_an_empty_folder_is_named(tmp_path, capsys):
    assert main(["collect", str(tmp_path)]) == 1
    assert main(["collect", str(tmp_path / "no")]) == 1
    err = capsys.readouterr().err
    assert "no notebook of the course in" in err
    assert "no folder" in err
