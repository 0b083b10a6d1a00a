"""Whatever one student hands in, the others get their rows, and the table is where it should be."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from damage_support import deep

from tinytf_course import copies
from tinytf_course.__main__ import main
from tinytf_course.stubs import build_copy

CHAPTERS = Path(__file__).parents[3] / "notebooks"
ANSWER = "def my_lookup(query, keys, values, temperature):\n    return {}\n"


def cell(text, *outputs):
    return {"cell_type": "code", "source": text, "metadata": {}, "outputs": list(outputs)}


def hand_in(path, *cells):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": cells, "metadata": {}}), encoding="utf-8")


def collected(folder, *options):
    """{student: row} of the table that `collect` writes."""
    assert main(["collect", str(folder), *options]) == 0
    return table(folder)


def table(folder):
    with (folder / "collected.csv").open(encoding="utf-8") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


STRANGE = {
    "metadata a list": {"cells": [cell("x", {"data": {}, "metadata": []})]},
    "check a list": {"cells": [cell("x", {"data": {}, "metadata": {"check": []}})]},
    "time a list": {"cells": [cell("x") | {"metadata": {"execution": []}}] * 2},
    "times of two kinds": {"cells": [
        cell("x") | {"metadata": {"execution": {"iopub.status.idle": "2026-03-01T10:00:00" + z}}}
        for z in ("", "Z")]},
    "deep": f'{{"cells": [], "deep": {deep(2000)}}}',
    "deep code": {"cells": [cell(ANSWER.format("-" * 900 + "1"))]},
    "half a character": '{"cells": [{"cell_type": "code", "source": "x = \'\\ud800\'"}]}',
    "cell a number": {"cells": [3]},
    "much code": {"cells": [cell("x\n" * 2**20)]},
}  # fmt: skip


def test_no_notebook_costs_the_class_its_table(tmp_path, capsys):
    hand_in(tmp_path / "ann" / "05_it.ipynb", cell("x = 1"))
    for name, content in STRANGE.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / f"m {name}").mkdir()
        (tmp_path / f"m {name}" / "05_it.ipynb").write_text(text)
    hand_in(tmp_path / "zoe" / "05_it.ipynb", cell("x = 1"))
    rows = collected(tmp_path)
    assert {"ann", "zoe"} < set(rows)
    said = capsys.readouterr().err
    for name in STRANGE:
        assert f"skipped m {name}/05_it.ipynb: " in said or f"m {name}" in rows, name


def test_an_error_of_any_kind_costs_one_row(tmp_path, capsys, monkeypatch):
    from tinytf_course.release import collected as module

    def broken(row, notebook):
        if row.student == "bob":
            raise RecursionError("too deep")

    monkeypatch.setattr(module, "_read_outputs", broken)
    for student in ("ann", "bob", "zoe"):
        hand_in(tmp_path / student / "05_it.ipynb", cell("x"))
    assert set(collected(tmp_path, "--saved")) == {"ann", "zoe"}
    assert "skipped bob/05_it.ipynb: too deep" in capsys.readouterr().err


def test_names_that_are_no_text_do_no_harm(tmp_path, capsys):
    for name in (b"m\xff", b"\x1b[2J", b"\r=1+1", b"@cmd", "李".encode()):
        folder = os.fsencode(tmp_path) + b"/" + name
        os.mkdir(folder)
        with open(folder + b"/05_it.ipynb", "w") as file:
            json.dump({"cells": [cell("x")]}, file)
    rows = collected(tmp_path, "--saved")
    assert set(rows) == {r"m\udcff", r"\x1b[2J", r"\r=1+1", "'@cmd", "李"}
    assert "\x1b" not in capsys.readouterr().out


def test_the_table_is_not_written_through_a_link(tmp_path, capsys):
    victim = tmp_path / "thesis.tex"
    victim.write_text("years of work")
    folder = tmp_path / "class"
    hand_in(folder / "ann" / "05_it.ipynb", cell("x"))
    (folder / "collected.csv").symlink_to(victim)
    assert set(collected(folder, "--saved")) == {"ann"}
    assert victim.read_text() == "years of work"
    assert "the table takes the place of this link" in capsys.readouterr().err


def test_a_table_that_cannot_be_written_is_told_before_anything_is_graded(tmp_path, capsys):
    hand_in(tmp_path / "ann" / "05_it.ipynb", cell("x"))
    (tmp_path / "collected.csv").mkdir()
    assert main(["collect", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert "it is a folder; name a file in it" in err
    assert "ann" not in out


@pytest.mark.skipif(os.name == "nt", reason="has no named pipes")
def test_rows_are_in_the_table_before_the_last_one_comes(tmp_path):
    """A run that is killed at its second notebook leaves the row of its first."""
    hand_in(tmp_path / "ann" / "05_it.ipynb", cell("x"))
    slow = ANSWER.format("[time.sleep(0.1) for _ in range(10**6)]")
    hand_in(tmp_path / "bob" / "05_it.ipynb", cell("import time"), cell(slow))
    command = [sys.executable, "-m", "tinytf_course", "collect", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        while not process.stdout.readline().startswith("ann"):
            assert process.poll() is None
        time.sleep(0.3)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert set(table(tmp_path)) == {"ann"}


HOSTILE = (
    "import os\n@(lambda _: os._exit(3))\ndef end():\n    pass\n\n"
    'explicit_attention = built(explicit_attention, "tinytf.attention")'
)


def later(path):
    """The build copy of chapter 07, all written: its parts rest on chapter 05's."""
    chapter = next(CHAPTERS.glob("07_*.ipynb"))
    copies.write(path, build_copy(copies.read(chapter), solved=True))


def test_in_a_flat_folder_nobody_runs_on_anybody_elses_parts(tmp_path):
    later(tmp_path / "07_bob.ipynb")
    alone = collected(tmp_path)["07_bob"]
    assert int(alone["parts_built"]) > 0
    hand_in(tmp_path / "05_alice.ipynb", cell(HOSTILE))
    assert collected(tmp_path)["07_bob"] == alone


def test_a_link_to_anybody_elses_notebook_is_no_part_of_ones_own(tmp_path):
    later(tmp_path / "bob" / "07_it.ipynb")
    alone = collected(tmp_path)["bob"]
    hand_in(tmp_path / "alice" / "05_it.ipynb", cell(HOSTILE))
    (tmp_path / "bob" / "05_it.ipynb").symlink_to(tmp_path / "alice" / "05_it.ipynb")
    assert collected(tmp_path)["bob"] == alone


def test_ones_own_parts_are_still_rested_on(tmp_path):
    later(tmp_path / "bob" / "07_it.ipynb")
    hand_in(tmp_path / "bob" / "05_it.ipynb", cell(HOSTILE))
    assert collected(tmp_path)["bob"]["parts_built"] == "0"
