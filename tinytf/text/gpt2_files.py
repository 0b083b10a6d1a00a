"""GPT-2's way of writing a byte-level BPE down: vocab.json and merges.txt.

Source: Radford et al. 2019, its released code.
"""

from collections.abc import Sequence
from pathlib import Path

from tinytf.support.files import CheckpointError, read_json, read_small, shortened
from tinytf.text.bpe import ByteBPE

__all__ = ["GPT2_BYTE_ORDER", "from_gpt2", "to_gpt2"]

# GPT-2 numbers the bytes that print first, and writes the others as the characters from 256 on.
_PRINTS = [*range(33, 127), *range(161, 173), *range(174, 256)]
GPT2_BYTE_ORDER = bytes(_PRINTS + [b for b in range(256) if b not in _PRINTS])
_WRITTEN = {b: chr(b if i < len(_PRINTS) else 256 + i - len(_PRINTS))
            for i, b in enumerate(GPT2_BYTE_ORDER)}  # fmt: skip
_READ = {character: b for b, character in _WRITTEN.items()}


def from_gpt2(
    vocab_json: str | Path,
    merges_txt: str | Path,
    special_tokens: Sequence[str] = ("<|endoftext|>",),
) -> ByteBPE:
    """Read GPT-2's two files, or others in their layout.

    Every token is accounted for: it is a byte, or what one of the merges makes, or one of
    `special_tokens`, which need not all be there. Raises CheckpointError where the two files
    disagree (a merges.txt that was cut off leaves tokens that no merge makes), or where ids do not
    run bytes, merges, specials.
    """
    names = f"{Path(vocab_json).name} and {Path(merges_txt).name}"
    vocab, rows = read_json(vocab_json), _read_rows(merges_txt)
    if not isinstance(vocab, dict) or not all(type(i) is int for i in vocab.values()):
        raise CheckpointError(f"{Path(vocab_json).name} is JSON, but no vocabulary of tokens")
    special = [token for token in special_tokens if token in vocab]
    plain = {*special} - _READ.keys() - set(map("".join, rows))  # not written as bytes are
    try:
        for number, row in enumerate(rows):
            if len(row) != 2:
                raise ValueError(f"merge {number}, {' '.join(row)!r:.80}, joins no two tokens")
        tokens = {i: token.encode() if token in plain else _read(token)
                  for token, i in vocab.items()}  # fmt: skip
        if len(tokens) < len(vocab):
            raise ValueError(f"{len(vocab)} tokens have {len(tokens)} ids")
        return ByteBPE.from_vocab(tokens, [(_read(a), _read(b)) for a, b in rows], special)
    except ValueError as error:
        raise CheckpointError(f"{names}: {shortened(str(error), 300)}") from error


def _read(token: str) -> bytes:
    """Give the bytes of a token; what is not written as GPT-2 writes bytes stands for itself."""
    return bytes(_READ[c] for c in token) if _READ.keys() >= set(token) else token.encode()


def _read_rows(merges_txt: str | Path) -> list[list[str]]:
    """Read merges, a pair of tokens a line; the first line may say a version."""
    lines = read_small(merges_txt).splitlines() or [""]
    return [line.split(" ") for line in lines[lines[0].startswith("#version") :] if line]


def to_gpt2(bpe: ByteBPE) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Give vocabulary and merges as GPT-2 writes them, a printing character per byte.

    Raises ValueError for a special token that is written like another token: one of the two would
    be lost.
    """
    count = 256 + len(bpe.merges)
    written = ["".join(_WRITTEN[b] for b in bpe.token_bytes(i)) for i in range(count)]
    vocab = {token: i for i, token in enumerate(written)}
    for token in bpe.special_tokens:
        if token in vocab:
            raise ValueError(f"special token {token!r} is written like the token {vocab[token]}")
        vocab[token] = bpe.special_id(token)
    return vocab, [(written[a], written[b]) for a, b in bpe.merges]
