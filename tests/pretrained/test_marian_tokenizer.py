"""Pieces and their ids, joined to a text again."""

import shutil
import sys

import pytest
import torch
from marian_support import write_translator

from tinytf.pretrained import marian
from tinytf.pretrained.marian_tokenizer import PieceTokenizer, join_pieces

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
