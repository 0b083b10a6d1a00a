"""A text too large for memory, as a file of ids: encoded once, by several processes, then mapped.

Beside the ids lies a small JSON file that says of which text and which tokenizer they are, how many
they are, and their digest. Encoding can be interrupted: parts that are whole are not done again.
"""

import contextlib
import hashlib
import json
import mmap
import multiprocessing
import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import torch
from torch import Tensor

from tinytf.data.corpus import END_OF_TEXT
from tinytf.data.text_parts import PART, Part, read_part, text_parts
from tinytf.support.files import (
    CheckpointError,
    is_file,
    plain_words,
    read_json,
    shortened,
    write_atomically,
)
from tinytf.support.locks import sole_writer
from tinytf.text.bpe import ByteBPE

__all__ = ["TokenFile", "digest_of", "encode_to_file", "open_tokens", "tokenizer_digest"]

FORMAT = "tinytf-tokens-1"
_READ = 1 << 22
_LARGEST_HEADER = 1 << 16  # bytes
_PART_NAME = re.compile(r"[0-9a-f]{16}|\.[0-9a-f]{16}\.\d+-\d+\.part")  # whole, or being written


class TokenFile(NamedTuple):
    """Ids (N,) mapped from a file, and the digest of the text they encode."""

    ids: Tensor
    text: str


def digest_of(path: str | Path, start: int = 0, end: int | None = None) -> str:
    """Give the SHA-256 of a file's bytes from `start` to `end`, read piece by piece."""
    digest = hashlib.sha256()
    for data in _pieces(path, start, end):
        digest.update(data)
    return digest.hexdigest()


def _pieces(path: str | Path, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    left = (Path(path).stat().st_size if end is None else end) - start
    with Path(path).open("rb") as file:
        file.seek(start)
        while left > 0 and (data := file.read(min(_READ, left))):
            yield data
            left -= len(data)


def tokenizer_digest(tokenizer: ByteBPE) -> str:
    """Tell one tokenizer from another."""
    said = [tokenizer.merges, tokenizer.special_tokens, list(tokenizer.byte_order)]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


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
    it. If `out` holds them already, it is opened. `processes` encode part by part (default: as many
    as there are cores); finished parts lie in a folder beside `out` until all are there, and are
    taken up again after an interruption, or a kill, if their digests hold. `bar` is a tqdm bar to
    move by bytes of text.

    Raises CheckpointError if it can't be written, if another process writes it, or if files are in
    its place that were not made here; ValueError naming the byte for a text that is not UTF-8, or
    empty, and OSError for one that can't be read.
    """
    out, text = Path(out), Path(text)
    size = text.stat().st_size if end is None else end
    if size < 1:
        raise ValueError(f"{text.name} is empty")
    dtype = numpy.dtype("<i2" if len(tokenizer) <= 1 << 15 else "<i4")
    header = {
        "format": FORMAT, "dtype": dtype.str, "tokenizer": tokenizer_digest(tokenizer),
        "bytes": size, "text": digest_of(text, 0, size),
    }  # fmt: skip
    folder = out.with_name(f"{out.name}.parts")
    with sole_writer(out):
        _check_ours(out, folder)
        if (found := _same(out, header, len(tokenizer))) is not None:
            return found
        parts = text_parts(text, part_bytes, size)
        jobs = [(text, part, tokenizer, folder, dtype.str) for part in parts]
        for part in _in_turn(jobs, processes or os.cpu_count() or 1):
            if bar is not None:
                bar.update(part.end - part.start)
        edge = numpy.array([tokenizer.special_id(END_OF_TEXT)], dtype).tobytes()
        _join(folder, parts, out, edge, header)
        _remove(folder)
    return open_tokens(out, len(tokenizer))


def _in_turn(jobs: list[tuple], processes: int) -> Iterator[Part]:
    if min(processes, len(jobs)) == 1:
        for job in jobs:
            yield _encode_part(*job)
        return
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(jobs)), spawn, _leave_ctrl_c) as pool:
        waiting = [pool.submit(_encode_part, *job) for job in jobs]
        try:
            for job in waiting:
                yield job.result()
        finally:
            for job in waiting:
                job.cancel()


def _leave_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one answers it


def _encode_part(text: Path, part: Part, tokenizer: ByteBPE, folder: Path, dtype: str) -> Part:
    """Encode one part to a file named by its place, unless it is there, whole, of this text."""
    data, path = read_part(text, part), folder / f"{part.start:016x}"
    said = hashlib.sha256(data + tokenizer_digest(tokenizer).encode() + dtype.encode()).digest()
    if _is_whole(path, said, numpy.dtype(dtype), len(tokenizer)):
        return part
    try:
        words = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{text.name} is not UTF-8: {error.reason} at byte {part.start + error.start:,}"
        ) from None
    ids = numpy.array(tokenizer.encode(words), numpy.dtype(dtype)).tobytes()
    write_atomically(path, said + hashlib.sha256(ids).digest() + ids)
    return part


def _is_whole(path: Path, said: bytes, dtype: numpy.dtype, vocab_size: int) -> bool:
    if not is_file(path):
        return False
    data = path.read_bytes()
    if data[:32] != said or hashlib.sha256(data[64:]).digest() != data[32:64]:
        return False
    return len(data) % dtype.itemsize == 0 and _outside(data[64:], dtype, vocab_size) is None


def _outside(data: bytes, dtype: numpy.dtype, vocab_size: int) -> int | None:
    """Give an id that is not in the vocabulary, or None where there is none."""
    ids = numpy.frombuffer(data, dtype)
    wrong = ids[(ids < 0) | (ids >= vocab_size)]
    return int(wrong[0]) if len(wrong) else None


class _Bodies(NamedTuple):
    """The ids of all parts, an end-of-text token before and after them; may be read repeatedly."""

    folder: Path
    parts: list[Part]
    edge: bytes

    def __iter__(self) -> Iterator[bytes]:
        yield self.edge
        for part in self.parts:
            yield (self.folder / f"{part.start:016x}").read_bytes()[64:]
        yield self.edge


def _join(folder: Path, parts: list[Part], out: Path, edge: bytes, header: dict) -> None:
    """Write all parts into one file, then what it holds; the header last, so it vouches for all.

    Meanwhile there is a header that says whose the file is, and not yet what it holds.
    """
    digest, rows = hashlib.sha256(), 0
    bodies = _Bodies(folder, parts, edge)
    write_atomically(_header_of(out), json.dumps(header).encode())
    try:
        for data in bodies:
            digest.update(data)
            rows += len(data) // len(edge)
    except OSError as error:
        raise CheckpointError(f"could not read {folder}: {plain_words(error)}") from error
    write_atomically(out, bodies)
    said = header | {"tokens": rows, "ids": digest.hexdigest()}
    write_atomically(_header_of(out), json.dumps(said).encode())


def _check_ours(out: Path, folder: Path) -> None:
    """Refuse to write where files are that no encoding has made."""
    header, advice = _header_of(out), "move it away, or choose another name"
    if os.path.lexists(header) and not _is_header(header):
        raise CheckpointError(f"{header} is there, and it is no header of a file of ids: {advice}")
    if os.path.lexists(out) and not os.path.lexists(header):
        raise CheckpointError(
            f"{out} is there, and no {header.name} says that it was encoded here: {advice}"
        )
    try:
        names = os.listdir(folder) if os.path.lexists(folder) else []
    except OSError as error:
        raise CheckpointError(f"could not read {folder}: {plain_words(error)}") from error
    if others := [name for name in names if not _PART_NAME.fullmatch(name)]:
        raise CheckpointError(
            f"{folder} holds {shortened(min(others))}, which no encoding has put there: {advice}"
        )


def _is_header(path: Path) -> bool:
    try:
        said = read_json(path, _LARGEST_HEADER)
    except CheckpointError:
        return False
    return isinstance(said, dict) and said.get("format") == FORMAT


def _remove(folder: Path) -> None:
    """Remove the parts, and their folder unless somebody has put a file of their own there."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if _PART_NAME.fullmatch(name):
                (folder / name).unlink()
        folder.rmdir()


def _header_of(out: Path) -> Path:
    return out.with_name(f"{out.name}.json")


def _same(out: Path, header: dict, vocab_size: int) -> TokenFile | None:
    """Open `out` if it is whole and was made from the same; None where it must be made anew."""
    try:
        said = read_json(_header_of(out), _LARGEST_HEADER)
        if not isinstance(said, dict) or {k: said.get(k) for k in header} != header:
            return None
        return open_tokens(out, vocab_size)
    except CheckpointError:
        return None


def open_tokens(path: str | Path, vocab_size: int) -> TokenFile:
    """Map a file of ids that `encode_to_file` has made, after checking it against its header.

    Raises CheckpointError if one of the two files is missing, if they disagree about the number of
    ids or their digest, for an unknown format, and for an id outside the vocabulary.
    """
    path = Path(path)
    said = read_json(_header_of(path), _LARGEST_HEADER)
    wanted = {"format": str, "dtype": str, "tokens": int, "ids": str, "text": str}
    wrong = not isinstance(said, dict) or any(
        not isinstance(said.get(k), kind) for k, kind in wanted.items()
    )
    if wrong or said["format"] != FORMAT or said["dtype"] not in ("<i2", "<i4"):
        raise CheckpointError(f"{_header_of(path).name} does not describe a file of ids")
    if not is_file(path):
        raise CheckpointError(f"there is no file {path}")
    dtype, size = numpy.dtype(said["dtype"]), path.stat().st_size
    if size != said["tokens"] * dtype.itemsize or said["tokens"] < 1:
        raise CheckpointError(
            f"{path.name} has {size} bytes, its header promises {said['tokens']} ids of "
            f"{dtype.itemsize} bytes: remove both, and encode again"
        )
    digest, strange = hashlib.sha256(), None
    for data in _pieces(path):
        digest.update(data)
        if strange is None:
            strange = _outside(data, dtype, vocab_size)
    if (found := digest.hexdigest()) != said["ids"]:
        raise CheckpointError(
            f"{path.name} is damaged: its digest is {found[:12]}…, its header says "
            f"{said['ids'][:12]}…; remove both, and encode again"
        )
    if strange is not None:
        raise CheckpointError(
            f"{path.name} holds the id {strange}, but the vocabulary has {vocab_size} tokens: "
            "remove it and its header, and encode again"
        )
    mapped = numpy.memmap(path, dtype, "c")  # copied on writing, which nobody does
    if hasattr(mmap, "MADV_RANDOM"):  # read no more than is asked for
        mapped._mmap.madvise(mmap.MADV_RANDOM)
    return TokenFile(torch.from_numpy(mapped), said["text"])
