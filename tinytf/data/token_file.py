"""A text too large for memory, as a file of ids: encoded once, part by part, then mapped.

Beside the ids lies a small JSON file that says of which text and which tokenizer they are, how many
they are, and their digest. An encoding that was stopped goes on where it was.
"""

import contextlib
import hashlib
import json
import mmap
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import torch
from torch import Tensor

from tinytf.data.corpus import END_OF_TEXT
from tinytf.support.files import CheckpointError, plain_words, read_json, write_atomically
from tinytf.support.locks import sole_writer
from tinytf.text.bpe import ByteBPE

__all__ = ["TokenFile", "digest_of", "encode_to_file", "open_tokens", "read_part", "safe_cut"]

FORMAT = "tinytf-tokens-1"
PART = 1 << 22  # bytes of text that are encoded at once, about
_BLOCK = 1 << 20  # ids, or bytes, that are looked at together
_LARGEST_HEADER = 1 << 16  # bytes
_WHOLE = {"format": str, "dtype": str, "tokens": int, "ids": str, "text": str}


class TokenFile(NamedTuple):
    """Ids (N,) mapped from a file, and the digest of the text they encode."""

    ids: Tensor
    text: str


def encode_to_file(
    text: str | Path,
    tokenizer: ByteBPE,
    out: str | Path,
    end: int | None = None,
    processes: int | None = None,
    part_bytes: int = PART,
    bar: Any = None,
) -> TokenFile:
    """Encode a UTF-8 file, or its first `end` bytes, to a file of ids, and map it.

    The ids are those of `encode_documents` for one document, an end-of-text token before and after
    it. If `out` holds them already, it is opened; if it holds the first of them, as after a kill,
    encoding goes on from there. `processes` encode (default: as many as there are cores). `bar` is
    a tqdm bar to move by bytes of text.

    Raises CheckpointError if it can't be written, if another process writes it, or if files are in
    its place that were not made here; ValueError naming the byte for a text that is not UTF-8, or
    empty, and OSError for one that can't be read.
    """
    out, text = Path(out), Path(text)
    size = text.stat().st_size if end is None else end
    if size < 1:
        raise ValueError(f"{text.name} is empty")
    dtype = numpy.dtype("<i2" if len(tokenizer) <= 1 << 15 else "<i4")
    said = [tokenizer.merges, tokenizer.special_tokens, list(tokenizer.byte_order)]
    header = {
        "format": FORMAT, "dtype": dtype.str, "bytes": size, "text": digest_of(text, 0, size),
        "tokenizer": hashlib.sha256(json.dumps(said).encode()).hexdigest(),
    }  # fmt: skip
    edge = numpy.array([tokenizer.special_id(END_OF_TEXT)], dtype).tobytes()
    encode = partial(_encode, text, tokenizer, dtype)

    with sole_writer(out):
        before = _header_of_ours(out)
        if header.items() <= before.items() and "ids" in before:
            with contextlib.suppress(CheckpointError):  # what is damaged is made anew
                return open_tokens(out, len(tokenizer))
        start, digest = _taken_up(out, header, before, tokenizer)
        parts = list(_parts(text, start, size, part_bytes))

        def add(ids: bytes, key: str = "so_far") -> None:
            digest.update(ids)
            try:
                with out.open("ab") as file:
                    file.write(ids)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                raise CheckpointError(f"could not write {out}: {plain_words(error)}") from error
            tokens = out.stat().st_size // dtype.itemsize
            _say(out, header | {"tokens": tokens, key: digest.hexdigest()})

        if start == 0:
            add(edge)
        if bar is not None:
            bar.update(start)
        for (begin, stop), ids in zip(parts, _in_turn(encode, parts, processes), strict=True):
            add(ids)
            if bar is not None:
                bar.update(stop - begin)
        add(edge, "ids")
    return open_tokens(out, len(tokenizer))


def _in_turn(
    encode: Callable, parts: list[tuple[int, int]], processes: int | None
) -> Iterator[bytes]:
    """Encode parts in processes of their own, and give the ids of each in its turn."""
    count = min(processes or os.cpu_count() or 1, len(parts))
    if count < 2:
        yield from map(encode, parts)
        return
    spawn = multiprocessing.get_context("spawn")
    ignore = (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is answered by the process that started them
    with ProcessPoolExecutor(count, spawn, signal.signal, ignore) as pool:
        yield from pool.map(encode, parts)


def _encode(text: Path, tokenizer: ByteBPE, dtype: numpy.dtype, part: tuple[int, int]) -> bytes:
    return numpy.array(tokenizer.encode(read_part(text, *part)), dtype).tobytes()


def _parts(path: Path, start: int, end: int, part_bytes: int) -> Iterator[tuple[int, int]]:
    """Divide a text into parts of about `part_bytes` bytes that can be encoded apart."""
    if part_bytes < 1:
        raise ValueError(f"part_bytes must be at least 1, got {part_bytes}")
    while start < end:
        cut = safe_cut(path, start + part_bytes, end)
        yield start, cut
        start = cut


def safe_cut(path: str | Path, place: int, end: int) -> int:
    """Find the first place from byte `place` on where the text may be cut; `end` if none is.

    It is before a line end that follows a visible ASCII character: there the pattern of
    `tinytf.text.pretokenize` begins a new piece whatever stands around, so that the ids of what is
    before and after join to those of the whole.
    """
    place = max(place, 1)
    with Path(path).open("rb") as file:
        file.seek(place - 1)
        for line in file:
            place += len(line)
            if place - 2 >= end:
                break
            if line.endswith(b"\n") and b"!" <= line[-2:-1] <= b"~":
                return place - 2
    return end


def read_part(path: str | Path, start: int, end: int) -> str:
    """Read the text from byte `start` to `end`.

    Raises ValueError if the file has become shorter, and naming the byte for what is not UTF-8.
    """
    name = Path(path).name
    with Path(path).open("rb") as file:
        file.seek(start)
        data = file.read(end - start)
    if len(data) != end - start:
        raise ValueError(
            f"{name} ends at byte {start + len(data):,}, inside the part {start:,} to {end:,}: "
            "it has become shorter"
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = start + error.start
        raise ValueError(f"{name} is not UTF-8: {error.reason} at byte {place:,}") from None


def digest_of(path: str | Path, start: int = 0, end: int | None = None) -> str:
    """Give the SHA-256 of a file's bytes from `start` to `end`, read piece by piece."""
    digest = hashlib.sha256()
    left = (Path(path).stat().st_size if end is None else end) - start
    with Path(path).open("rb") as file:
        file.seek(start)
        while left > 0 and (data := file.read(min(_BLOCK, left))):
            digest.update(data)
            left -= len(data)
    return digest.hexdigest()


def _header_name(out: Path) -> Path:
    return out.with_name(f"{out.name}.json")


def _say(out: Path, header: dict[str, Any]) -> None:
    write_atomically(_header_name(out), json.dumps(header).encode())


def _header_of_ours(out: Path) -> dict[str, Any]:
    """Read what is said of `out`, nothing where there is no file. Refuses files of others."""
    path, advice = _header_name(out), "move it away, or choose another name"
    if not os.path.lexists(path):
        if os.path.lexists(out):
            raise CheckpointError(
                f"{out} is there, and no {path.name} says that it was encoded here: {advice}"
            )
        return {}
    try:
        said = read_json(path, _LARGEST_HEADER)
    except CheckpointError:
        said = None
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise CheckpointError(f"{path} is there, and it is no header of a file of ids: {advice}")
    return said


def _taken_up(out: Path, header: dict, before: dict, tokenizer: ByteBPE) -> tuple[int, Any]:
    """Keep the ids that an encoding of the same has left, and remove all others.

    Returns how many bytes of the text they are, and the digest to go on with.
    """
    digest, tokens, read = hashlib.sha256(), before.get("tokens"), 0
    dtype = numpy.dtype(header["dtype"])
    same = header.items() <= before.items() and type(tokens) is int and tokens > 0
    if same and os.path.isfile(out) and out.stat().st_size >= tokens * dtype.itemsize:
        lengths = numpy.array([len(tokenizer.token_bytes(i)) for i in range(len(tokenizer))])
        for block in _blocks(numpy.memmap(out, dtype, "r", shape=tokens)):
            digest.update(block)
            read += int(lengths.take(block, mode="clip").sum())
        read -= len(END_OF_TEXT)  # the token before the text
        if read > 0 and digest.hexdigest() == before.get("so_far"):
            os.truncate(out, tokens * dtype.itemsize)
            return read, digest
    _say(out, header)
    out.unlink(missing_ok=True)  # rather than written over: somebody may have mapped it
    return 0, hashlib.sha256()


def _blocks(ids: numpy.ndarray) -> Iterator[numpy.ndarray]:
    yield from (ids[i : i + _BLOCK] for i in range(0, len(ids), _BLOCK))


def open_tokens(path: str | Path, vocab_size: int) -> TokenFile:
    """Map a file of ids that `encode_to_file` has made, after checking it against its header.

    Raises CheckpointError if one of the two files is missing, if they disagree about the number of
    ids or their digest, for an unknown format, and for an id outside the vocabulary.
    """
    path = Path(path)
    said = read_json(_header_name(path), _LARGEST_HEADER)
    whole = isinstance(said, dict) and all(isinstance(said.get(k), t) for k, t in _WHOLE.items())
    if not whole or said["format"] != FORMAT or said["dtype"] not in ("<i2", "<i4"):
        raise CheckpointError(f"{_header_name(path).name} does not describe a whole file of ids")
    if not os.path.isfile(path):
        raise CheckpointError(f"there is no file {path}")
    dtype, size = numpy.dtype(said["dtype"]), path.stat().st_size
    if size != said["tokens"] * dtype.itemsize or said["tokens"] < 1:
        raise CheckpointError(
            f"{path.name} has {size} bytes, its header promises {said['tokens']} ids of "
            f"{dtype.itemsize} bytes: remove both, and encode again"
        )
    mapped = numpy.memmap(path, dtype, "c")  # copied on writing, which nobody does
    digest = hashlib.sha256()
    for block in _blocks(mapped):
        digest.update(block)
    if (found := digest.hexdigest()) != said["ids"]:
        raise CheckpointError(
            f"{path.name} is damaged: its digest is {found[:12]}…, its header says "
            f"{said['ids'][:12]}…; remove both, and encode again"
        )
    for block in _blocks(mapped):
        if len(wrong := block[(block < 0) | (block >= vocab_size)]):
            raise CheckpointError(
                f"{path.name} holds the id {wrong[0]}, but the vocabulary has {vocab_size} tokens: "
                "remove it and its header, and encode again"
            )
    if hasattr(mmap, "MADV_RANDOM"):  # read no more than is asked for
        mapped._mmap.madvise(mmap.MADV_RANDOM)
    return TokenFile(torch.from_numpy(mapped), said["text"])
