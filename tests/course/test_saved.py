"""What a notebook's file holds is read, or what is wrong with it is said."""

import json

import pytest
from damage_support import deep

from tinytf_course.saved import NotebookError, printable, read


@pytest.mark.parametrize(("levels", "reads"), [(90, True), (120, False), (2000, False)])
def test_how_deep_a_notebook_may_be(levels, reads, tmp_path):
    path = tmp_path / "05_a.ipynb"
    path.write_text(f'{{"cells": [], "metadata": {{"a": {deep(levels)}}}}}')
    if reads:
        assert json.loads(json.dumps(read(path), indent=1))["cells"] == []
    else:
        with pytest.raises(NotebookError, match=r"05_a\.ipynb is not a notebook.* too deeply"):
            read(path)


def test_text_may_come_in_pieces_and_what_is_missing_is_missing(tmp_path):
    path = tmp_path / "05_a.ipynb"
    output = {"text": ["a", "b"], "data": {"text/plain": "c", "image/png": {"a": 1}}}
    cell = {"cell_type": "code", "source": ["x\n", "y"], "outputs": [output]}
    path.write_text(json.dumps({"cells": [cell]}))
    assert read(path) == {"cells": [cell]}


def test_only_what_a_terminal_shows_as_it_is_stays():
    assert printable("李 naïve 𝕏") == "李 naïve 𝕏"
    assert printable("a\x1b[2J\r\n\udcff\u202e") == r"a\x1b[2J\r\n\udcff\u202e"
