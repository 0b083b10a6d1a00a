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
    vocab_name, merges_name = Path(vocab_json).name, Path(merges_txt).name
    vocab = read_json(vocab_json)
    if not isinstance(vocab, dict) or not all(type(i) is int for i in vocab.values()):
        raise CheckpointError(f"{vocab_name} is JSON, but no vocabulary of tokens")
    ids = {_WRITTEN[b]: i for i, b in enumerate(GPT2_BYTE_ORDER)}
    pairs = []
    for number, row in enumerate(_read_rows(merges_txt)):
        if len(row) != 2 or not set(row) <= ids.keys():
            raise CheckpointError(
                f"{merges_name}: merge {number}, {' '.join(row)!r:.80}, joins no two tokens"
            )
        pairs.append((ids[row[0]], ids[row[1]]))
        if "".join(row) in ids:
            raise CheckpointError(
                f"{merges_name}: merge {number} makes {shortened(''.join(row))!r} again"
            )
        ids["".join(row)] = 256 + number
    for token, i in ids.items():
        if vocab.get(token) != i:
            raise CheckpointError(
                f"token {shortened(token)!r} has id {vocab.get(token)} in {vocab_name}, but by "
                f"{merges_name}, in GPT-2's layout, it is {i}"
            )
    special = sorted(vocab.keys() - ids.keys(), key=vocab.__getitem__)
    if strange := [token for token in special if token not in special_tokens]:
        some = ", ".join(repr(shortened(token)) for token in strange[:5])
        more = f" and {len(strange) - 5} more" if len(strange) > 5 else ""
        raise CheckpointError(
            f"{vocab_name} has {len(vocab)} tokens, of which {merges_name} makes {len(pairs)}: no "
            f"merge makes {some}{more}, and special_tokens does not name them"
        )
    if [vocab[token] for token in special] != list(range(len(ids), len(vocab))):
        raise CheckpointError(
            f"the ids of {list(map(shortened, special[:5]))} do not follow the merges'"
        )
    try:
        return ByteBPE(pairs, special, GPT2_BYTE_ORDER)
    except ValueError as error:
        raise CheckpointError(f"{vocab_name} and {merges_name}: {error}") from error


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
