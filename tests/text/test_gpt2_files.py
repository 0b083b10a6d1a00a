"""Tokenizer files in GPT-2's layout."""

import json

import pytest
from tokenizer_support import STRANGE
from tokenizers import Tokenizer, models, pre_tokenizers

from tinytf.support.files import CheckpointError
from tinytf.text.bpe import ByteBPE, train_bpe
from tinytf.text.gpt2_files import GPT2_BYTE_ORDER, from_gpt2, to_gpt2


def test_reads_files_in_gpt2_layout(manual, tmp_path):
    made = train_bpe(manual[:50_000], 100, None, ["<|endoftext|>"], GPT2_BYTE_ORDER)
    vocab, merges = to_gpt2(made)
    files = tmp_path / "vocab.json", tmp_path / "merges.txt"
    files[0].write_text(json.dumps(vocab))
    rows = "\n".join(map(" ".join, merges))
    files[1].write_bytes(f"#version: 0.2\n{rows}\n".replace("\n", "\r\n").encode())
    assert to_gpt2(from_gpt2(*files)) == (vocab, merges)  # from Windows
    files[1].write_bytes(f"#version: 0.2\n{rows}\n".encode())
    ours = from_gpt2(*files)
    theirs = Tokenizer(models.BPE.from_file(*map(str, files)))
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    for text in (manual[:20_000], *STRANGE):
        assert ours.encode(text) == theirs.encode(text).ids
    assert (vocab["!"], vocab["Ā"], len(vocab)) == (0, 188, 256 + 100 + 1)  # GPT-2's own layout
    assert ours.special_id("<|endoftext|>") == len(vocab) - 1
    assert to_gpt2(ours) == (vocab, merges)

    files[0].write_text(json.dumps(vocab | {"!": 1, '"': 0}))
    with pytest.raises(CheckpointError, match="token '!' has id 1, but in GPT-2's layout it is 0"):
        from_gpt2(*files)
    files[0].write_text(json.dumps(vocab | {"<x>": 999}))
    with pytest.raises(CheckpointError, match=r"ids of \['<\|endoftext\|>', '<x>'\] do not follow"):
        from_gpt2(*files)
    files[0].write_text("[1, 2]")
    with pytest.raises(CheckpointError, match=r"vocab.json is JSON, but no vocabulary"):
        from_gpt2(*files)
    files[0].write_text("{}")
    files[1].write_text("x yy\n")
    with pytest.raises(CheckpointError, match="merge 0, 'x yy', joins no two tokens"):
        from_gpt2(*files)
    with pytest.raises(ValueError, match="special token 'a' is written like the token 97"):
        to_gpt2(ByteBPE([], ["a"]))
