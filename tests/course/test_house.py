"""Where each part is built, read from sources: `tinytf_course.house`."""

import ast
import json

import pytest

from tinytf_course.__main__ import main
from tinytf_course.house import (
    chapters_of_names,
    defining_file,
    map_markdown,
    parts,
    public_names,
    target,
)
from tinytf_course.notebooks import notebooks
from tinytf_course.places import PACKAGE


def write(folder, name, *sources):
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": source} for source in sources
    ]
    (folder / name).write_text(json.dumps({"cells": cells}))


def call(source):
    return ast.parse(source).body[0].value


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("graduate(causal_mask, 'tinytf.masks')", ("causal_mask", "tinytf/masks.py")),
        ("graduate(mine, 'tinytf.masks.causal_mask')", ("causal_mask", "tinytf/masks.py")),
        (
            "graduate(PreNorm, 'tinytf.blocks')",
            ("PreNorm", "tinytf/residual.py"),
        ),  # through an import
        ("graduate(greedy, 'tinytf.decoding.search')", ("greedy", "tinytf/decoding/search.py")),
    ],
)
def test_targets(source, found):
    assert target(call(source)) == found


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("graduate(causal_mask, where)", "03: .* needs its target written out"),
        ("graduate(causal_mask)", "03: .* needs its target written out"),
        ("graduate(nothing, 'tinytf.masks')", "03: .* tinytf.masks has no nothing"),
        ("graduate(causal_mask, 'tinytf.nowhere')", "03: .* has no nowhere"),
    ],
)
def test_targets_that_are_not_there(source, said):
    with pytest.raises(ValueError, match=said):
        target(call(source), "03")


def test_the_map_of_a_folder(tmp_path, capsys):
    write(tmp_path, "03_a.ipynb", "graduate(causal_mask, 'tinytf.masks')", "x = !ls")
    write(
        tmp_path, "04_b.ipynb",
        "graduate(padding_mask, 'tinytf.masks')\ngraduate(causal_mask, 'tinytf.masks')",
    )  # fmt: skip
    (tmp_path / "05_c.ipynb").write_text("{")
    assert main(["map", "--notebooks", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "chapter  builds                     which is in",
        "03       causal_mask                tinytf/masks.py",
        "04       padding_mask, causal_mask  tinytf/masks.py",
    ]
    assert "left out: 05_c.ipynb is not a notebook" in shown.err
    assert map_markdown(tmp_path).splitlines()[2:] == [
        "| 03 | `causal_mask` | [tinytf/masks.py](tinytf/masks.py) |",
        "| 04 | `padding_mask`, `causal_mask` | [tinytf/masks.py](tinytf/masks.py) |",
    ]
    (tmp_path / "05_c.ipynb").unlink()
    chapters = chapters_of_names(notebooks(tmp_path))
    assert chapters["masks.py", "causal_mask"] == ["03", "04"]
    assert chapters["masks.py", "padding_mask"] == ["04"]
    assert chapters["attention.py", "MultiHeadAttention"] == []
    write(tmp_path, "05_c.ipynb", "graduate(nothing, 'tinytf.masks')")
    assert main(["map", "--notebooks", str(tmp_path)]) == 1
    assert "05_c.ipynb: graduate(nothing" in capsys.readouterr().err


def test_every_public_name_is_defined_in_the_package():
    for file, names in public_names().items():
        for name in names:
            home = defining_file(name, f"tinytf.{file.removesuffix('.py')}")
            assert home is not None, f"{file}: {name}"
            assert home.parent == PACKAGE, f"{file} offers {name} of {home}"


def test_a_file_without_all_is_an_error(tmp_path):
    (tmp_path / "a.py").write_text("__all__ = ['b']\nb = 1\n")
    assert public_names(tmp_path) == {"a.py": ["b"]}
    (tmp_path / "c.py").write_text("d = 1\n")
    with pytest.raises(ValueError, match=r"c\.py has no __all__"):
        public_names(tmp_path)


def test_parts_come_in_order(tmp_path):
    write(tmp_path, "03_a.ipynb", "graduate(padding_mask, 'tinytf.masks')", "graduate()")
    assert parts(notebooks(tmp_path)) == [("03", "padding_mask", "tinytf/masks.py")]
