"""What `pretrain` reads: the manual, a text of one's own, or one too large for memory."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from torch import Tensor
from tqdm import tqdm

from tinytf.data.corpus import END_OF_TEXT, Corpus, corpus, encode_documents
from tinytf.data.manual import text_file
from tinytf.data.token_file import (
    digest_of,
    encode_to_file,
    open_tokens,
    read_part,
    safe_cut,
)
from tinytf.text.bpe import ByteBPE, train_bpe
from tinytf.training.distributed import Team

__all__ = ["LARGE", "Reading", "own_text", "read"]

LARGE = 1 << 26  # bytes; a longer text is encoded to a file once, and never held whole
_HELD_OUT = 1 << 20  # bytes of a large text that are held out
_SAMPLES, _SAMPLE = 32, 1 << 20  # of a large text's bytes the tokenizer sees so many pieces


class Reading(NamedTuple):
    """A tokenizer, the training text's ids (N,), documents held out, and a name for the text."""

    tokenizer: ByteBPE
    ids: Tensor
    validation: list[str]
    fingerprint: str


def read(path: Path | None, vocab_size: int, tokens: Path, team: Team) -> Reading:
    """Read the text at `path`, or the manual; learn a tokenizer from what is not held out.

    The ids of a text of `LARGE` bytes or more are kept in the file `tokens`. Raises as `own_text`
    and `encode_to_file`.
    """
    if path is not None and path.is_file() and path.stat().st_size >= LARGE:
        return _read_large(path, vocab_size, tokens, team)
    texts = corpus() if path is None else own_text(path)
    tokenizer = train_bpe(texts.train, vocab_size=vocab_size, special_tokens=[END_OF_TEXT])
    name = hashlib.sha256("\0".join(texts.train).encode()).hexdigest()
    return Reading(tokenizer, encode_documents(tokenizer, texts.train), texts.validation, name)


def own_text(path: str | Path, fraction: float = 0.1) -> Corpus:
    """Read a text of your own as a corpus: the last `fraction` of its characters is held out.

    Raises as `text_file`, and ValueError for a text too short to be divided.
    """
    text = text_file(path)
    cut = int(len(text) * (1 - fraction))
    if not text[:cut].strip() or not text[cut:].strip():
        raise ValueError(f"{Path(path).name} holds {len(text)} characters: too few to divide")
    return Corpus([text[:cut]], [text[cut:]])


def _read_large(path: Path, vocab_size: int, tokens: Path, team: Team) -> Reading:
    """Hold out about the last megabyte, learn from a sample, and encode the rest to a file."""
    size = path.stat().st_size
    cut = safe_cut(path, size - _HELD_OUT, size)
    if cut == size:
        raise ValueError(f"{path.name} has no line in its last {_HELD_OUT:,} bytes to be cut at")
    tokenizer = train_bpe(_sample(path, cut), None, vocab_size, [END_OF_TEXT])
    if team.is_main:
        with tqdm(total=cut, desc="encoding", unit="B", unit_scale=True, mininterval=0.5) as bar:
            encode_to_file(path, tokenizer, tokens, cut, bar=bar)
    team.wait()
    ids, name = open_tokens(tokens, len(tokenizer))
    held_out = read_part(path, cut, size)
    return Reading(tokenizer, ids, [held_out], f"{name}-{digest_of(path, cut)}")


def _sample(path: Path, end: int) -> Iterator[str]:
    """Take pieces from all over the text, each from one safe cut to another."""
    for i in range(_SAMPLES):
        start = safe_cut(path, i * (end // _SAMPLES), end) if i else 0
        yield read_part(path, start, safe_cut(path, start + _SAMPLE, end))
