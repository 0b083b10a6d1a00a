"""What the reader built in earlier chapters takes the package's place in later ones."""

import ast
import inspect
import json
from pathlib import Path

import pytest
import torch

from tinytf import EncoderLayer, MultiHeadAttention
from tinytf.attention import explicit_attention
from tinytf_course import yours
from tinytf_course.stubs import build_copy, imported_parts

FOLDER = Path(__file__).parents[2] / "notebooks"
IMPORTS = "import math\nimport torch\nfrom torch import nn\n"
GELU = "def gelu(x):\n    return x * (1 + torch.special.erf(x * 0.5**0.5)) / 2\n"
BUILT = '\n\nname = built(name, "tinytf.feedforward")'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path, *sources):
    cells = [{"cell_type": "code", "metadata": {}, "source": s, "outputs": []} for s in sources]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))


def test_what_passes_takes_the_packages_place(folder, capsys):
    from tinytf.feedforward import gelu

    write(folder / "07_it.ipynb", IMPORTS, GELU + BUILT.replace("name", "gelu"))
    mine = yours(gelu)
    assert mine is not gelu
    assert "special" in mine.__code__.co_names
    assert "yours, as you wrote it before: `gelu` (07)" in capsys.readouterr().out


@pytest.mark.parametrize(
    "written",
    [
        GELU.replace("/ 2", "/ 3"),  # wrong
        "def gelu(x):\n    raise NotImplementedError\n",
        "def gelu(x)\n    return x\n",  # no Python
        "gelu = 3\n",
    ],
)
def test_what_does_not_pass_leaves_the_packages(written, folder, capsys):
    from tinytf.feedforward import gelu

    write(folder / "07_it.ipynb", IMPORTS, written + BUILT.replace("name", "gelu"))
    assert yours(gelu) is gelu
    said = capsys.readouterr().out
    assert "not yours yet, the package's stands in: `gelu` (07)" in said


def test_without_a_copy_it_is_the_packages(folder):
    assert yours(EncoderLayer, MultiHeadAttention) == (EncoderLayer, MultiHeadAttention)
    write(folder / "07_it.ipynb", "not python (", "1 / 0")
    assert yours(EncoderLayer) is EncoderLayer


def test_a_function_of_their_own_called_built_is_no_part(folder):
    write(folder / "12_it.ipynb", "def built(name):\n    return name\n\nbuilt('small')\nbuilt(3)")
    assert yours(EncoderLayer) is EncoderLayer


def test_experiments_of_the_other_notebook_are_not_run(folder):
    from tinytf.feedforward import gelu

    write(
        folder / "07_it.ipynb", IMPORTS, "open('ran', 'w')\nwide = 4\nx = torch.ones(wide)",
        GELU + BUILT.replace("name", "gelu"), "raise RuntimeError",
    )  # fmt: skip
    assert yours(gelu) is not gelu
    assert not (folder / "ran").exists()


def test_a_chain_of_chapters_is_the_readers_down_to_the_first(folder):
    """Attention of 03 in the heads of 04 in the layer of 08, all of it the reader's."""
    for number in ("05", "06", "07", "10", "11", "12"):
        (path,) = FOLDER.glob(f"{number}_*.ipynb")
        solved = build_copy(json.loads(path.read_text(encoding="utf-8")), solved=True)
        (folder / path.name).write_text(json.dumps(solved), encoding="utf-8")
    layer = yours(EncoderLayer)
    assert layer is not EncoderLayer
    heads = layer.__init__.__globals__["MultiHeadAttention"]
    assert heads is not MultiHeadAttention
    assert heads.__module__ == "__main__"
    mixed = inspect.unwrap(heads.forward).__globals__["explicit_attention"]
    assert mixed is not explicit_attention
    torch.manual_seed(0)
    theirs = EncoderLayer(8, 2, 16).eval()
    ours = layer(8, 2, 16).eval()
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 5, 8)
    torch.testing.assert_close(ours(x), theirs(x))


def test_imported_parts_are_those_of_the_package():
    def of(code):
        return list(imported_parts(ast.parse(code).body[0]))

    assert of("from tinytf import viz, causal_mask, Translator") == ["causal_mask"]
    assert of("from tinytf.blocks import EncoderLayer as Layer") == ["Layer"]
    assert of("from torch import nn") == []
    assert of("import tinytf") == []
    assert of("from tinytf.nowhere import causal_mask") == []


def test_a_build_copy_asks_for_the_readers():
    cells = [
        IMPORTS,
        "from tinytf import EncoderLayer\nfrom tinytf_course import drawings as viz\n\nlayer = 3",
        GELU,
    ]
    cells = [{"cell_type": "code", "metadata": {}, "source": [s]} for s in cells]
    copied = ["".join(cell["source"]) for cell in build_copy({"cells": cells})["cells"]]
    assert copied[0] == IMPORTS
    assert copied[1] == (
        "from tinytf import EncoderLayer\nfrom tinytf_course import drawings as viz\n"
        "from tinytf_course import yours\n"
        "\nEncoderLayer = yours(EncoderLayer)\n\nlayer = 3"
    )


def test_record_looks_into_attention_that_a_reader_wrote():
    from tinytf.inspect import weights_of
    from tinytf_course.building import built

    def own(q, k, v, mask=None, dropout=0.0):
        return explicit_attention(q, k, v, mask, dropout)

    with pytest.raises(TypeError, match="does not say"):
        weights_of(own)
    own.__name__ = "explicit_attention"
    assert built(own, "tinytf.attention") is own
    assert not hasattr(explicit_attention, "weights")  # the package's is as it was
    q = torch.randn(1, 2, 3, 4)
    assert weights_of(own)(q, q).shape == (1, 2, 3, 3)
