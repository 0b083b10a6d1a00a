"""Pieces and their ids, joined to a text again."""

import json
import shutil
import sys

import pytest
import torch
from marian_support import write_translator

from tinytf.pretrained import marian
from tinytf.pretrained.marian_tokenizer import PieceTokenizer, join_pieces, load_tokenizers
from tinytf.support.files import CheckpointError

pytest.importorskip("sentencepiece")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("marian") / "en-zh"
    write_translator(folder)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "copy")


def test_pieces_are_joined_to_a_text():
    assert join_pieces(["▁the", "▁c", "at", "s"]) == "the cats"
    assert join_pieces([]) == ""


def test_without_sentencepiece_the_error_says_what_to_install(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    config = marian.load(made).config
    with pytest.raises(ImportError, match="pip install sentencepiece"):
        PieceTokenizer(made / "source.spm", {}, config)


@pytest.mark.parametrize("change", ["drop", "renumber", "unknown"])
def test_a_vocabulary_that_does_not_fit_is_named_by_its_file(folder, change):
    path, config = folder / "vocab.json", marian.load(folder).config
    ids = json.loads(path.read_text())
    if change == "drop":
        ids.popitem()
    else:
        ids["more"] = ids.pop("<unk>" if change == "unknown" else next(iter(ids)))
        ids["more"] += 10**6 * (change == "renumber")
    path.write_text(json.dumps(ids))
    with pytest.raises(CheckpointError, match=r"^vocab\.json must number \d+ pieces from 0"):
        load_tokenizers(folder, config)
