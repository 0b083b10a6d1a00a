"""Strange notebooks are read around, or named and left out; never a traceback."""

import ast
import json

import pytest

from tinytf_course.notebooks import Notebook, NotebookError, notebooks, readable, tree

CLAIM = "claim('03-1', 'a sentence', 1, '<', 2)"


def text(*sources):
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": source} for source in sources
    ]
    return json.dumps({"cells": cells})


@pytest.mark.parametrize(
    "source",
    [
        "x = !ls",
        "!ls\n" + CLAIM,
        "torch.softmax?",
        "?torch.softmax",
        "%timeit f()",
        "x = %pwd",
        "%%bash\nfor f in *; do echo $f; done",
        "%%html\n<b>",
        "for f in files:\n    !echo {f}",
        "await f()",
        "",
    ],
)
def test_ipython_is_read(source):
    assert isinstance(tree(source), ast.Module)


def test_python_under_a_magic_is_read_and_what_is_another_language_is_not(tmp_path):
    (tmp_path / "03_a.ipynb").write_text(
        text("%%time\n" + CLAIM, "%%bash\nclaim('03-2')", "x = !ls\nclaim('03-3', 's', x, '<', 2)")
    )
    assert notebooks(tmp_path)[0].ids("claim") == ["03-1", "03-3"]


def test_a_string_with_a_percent_line_is_not_magic(tmp_path):
    code = 's = """\n%d of\n!\n"""'
    assert ast.literal_eval(tree(code).body[0].value) == "\n%d of\n!\n"


STRANGE = {
    "syntax": (text("x = = 2"), "the cell that begins 'x = = 2'"),
    "null": (text("x = '\0'"), "the cell that begins"),
    "json": ("{", "is not a notebook"),
    "cells": ('{"cells": 3}', "it has no list of cells"),
    "cell": ('{"cells": [3]}', "cell 1 is no cell"),
    "sources": ('{"cells": [{"cell_type": "code", "source": [1]}]}', "cell 1 has a source that"),
    "none": ('{"cells": [{"cell_type": "code"}]}', "cell 1 has a source that is not text"),
    "list": ("[]", "is not a notebook"),
    "other": ('{"worksheets": []}', "is not a notebook"),
    "bytes": (b"\xff\xfe", "is not a notebook"),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_a_strange_notebook_is_named_and_left_out(kind, tmp_path, capsys):
    content, said = STRANGE[kind]
    path = tmp_path / "02_strange.ipynb"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "03_good.ipynb").write_text(text(CLAIM))
    with pytest.raises(NotebookError, match=r"02_strange\.ipynb"):
        _ = Notebook(path).trees
    assert [notebook.chapter for notebook in readable(tmp_path)] == ["03"]
    shown = capsys.readouterr().err
    assert shown.startswith("left out: 02_strange.ipynb")
    assert said in shown


def test_a_folder_in_a_notebook_s_place(tmp_path, capsys):
    (tmp_path / "02_a.ipynb").mkdir()
    assert list(readable(tmp_path)) == []
    assert "left out: 02_a.ipynb is a folder" in capsys.readouterr().err


def test_other_chapters_are_not_read(tmp_path, capsys):
    (tmp_path / "02_a.ipynb").write_text("{")
    (tmp_path / "03_b.ipynb").write_text(text(CLAIM))
    assert [notebook.chapter for notebook in readable(tmp_path, {"03"})] == ["03"]
    assert not capsys.readouterr().err
