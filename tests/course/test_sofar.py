"""How far a reader is: bars in a notebook, words elsewhere, the numbers beside the bars."""

import json

from course_support import cell, said

from tinytf_course.sofar import done_in, so_far


def save(folder, name, *outputs):
    (folder / name).write_text(json.dumps({"cells": [cell("1", *outputs)]}))


def test_bars_are_as_long_as_what_was_done_and_say_it_in_numbers(tmp_path):
    save(tmp_path, "05_a.ipynb", said("✓ 05-P1  you said: a; measured: a"),
         said("→ 05-P2  you said: b; measured: a"), said("→ 05-P3  measured: a"),
         said("", check={"id": "05.1", "status": "passed"}))  # fmt: skip
    save(tmp_path, "06_b.ipynb", said("", built={"name": "attend", "status": "failed"}))
    save(tmp_path, "07_c.ipynb", said("", check={"id": "07.1", "status": "not yet"}))
    shown = so_far(tmp_path)
    lines = [line.split() for line in repr(shown).splitlines()]
    assert lines[1] == ["05", "1", "of", "2", "1", "of", "1"]
    assert lines[2] == ["06", "0", "of", "1"]
    assert lines[3] == ["all", "1", "of", "2", "1", "of", "1", "0", "of", "1"]
    assert len(lines) == 4
    drawn = shown._repr_html_()
    assert "█" * 6 + "░" * 6 + "</span> 1 of 2" in drawn
    assert "█" * 12 + "</span> 1 of 1" in drawn
    assert "░" * 12 + "</span> 0 of 1" in drawn


def test_before_the_first_cell_it_says_what_to_do(tmp_path):
    assert "nothing yet" in repr(so_far(tmp_path))
    assert so_far(tmp_path)._repr_html_() == f"<p>{so_far(tmp_path)!r}</p>"


def test_the_name_of_a_file_is_no_markup(tmp_path):
    save(tmp_path, "<b>x_a.ipynb", said("", check={"id": "05.1", "status": "passed"}))
    drawn = so_far(tmp_path)._repr_html_()
    assert "&lt;b&gt;x</th>" in drawn
    assert "<b>" not in drawn


def test_a_chapter_is_done_when_the_exercises_of_its_core_are_solved(tmp_path):
    def copy(name, *solved, metadata):
        asked = [
            {"cell_type": "markdown", "id": f"e{n}", "metadata": {}, "source": f"### Exercise {n}"}
            for n in ("01.1", "01.2")  # the outline has 01.2 as an elective
        ]
        checks = [said("", check={"id": id, "status": "passed"}) for id in solved]
        cells = [*asked, cell("1", *checks)]
        (tmp_path / name).write_text(json.dumps({"cells": cells, "metadata": metadata}))

    copy("01_a.ipynb", "01.1", metadata={})
    assert done_in(tmp_path) == set()
    assert done_in(tmp_path, 3) == {0, 1, 2}
    copy("01_a.ipynb", "01.1", metadata={"tinytf": {}})
    assert done_in(tmp_path, 3) == {1}
    copy("01_a.ipynb", "01.2", metadata={"tinytf": {}})
    assert done_in(tmp_path, 3) == set()
    (tmp_path / "02_b.ipynb").write_text("{")
    assert done_in(tmp_path, 3) == set()
