"""A text too large for memory, as a file of ids: encoded once, by several processes, then mapped.

Beside the ids lies a small JSON file that says of which text and which tokenizer they are, how many
they are, and their digest. Encoding can be interrupted: parts that are whole are not done again.
"""

import hashlib
import json
import mmap
import multiprocessing
import os
import shutil
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
from tinytf.support.files import CheckpointError, plain_words, read_json, write_atomically
from tinytf.support.locks import sole_writer
from tinytf.text.bpe import ByteBPE

__all__ = ["TokenFile", "digest_of", "encode_to_file", "open_tokens", "tokenizer_digest"]

FORMAT = "tinytf-tokens-1"
_READ = 1 << 22


class TokenFile(NamedTuple):
    """Ids (N,) mapped from a file, and the digest of the text they encode."""

    ids: Tensor
    text: str


def digest_of(path: str | Path, start: int = 0, end: int | None = None) -> str:
    """Give the SHA-256 of a file's bytes from `start` to `end`, read piece by piece."""
    digest, left = hashlib.sha256(), (Path(path).stat().st_size if end is None else end) - start
    with Path(path).open("rb") as file:
        file.seek(start)
        while left > 0 and (data := file.read(min(_READ, left))):
            digest.update(data)
            left -= len(data)
    return digest.hexdigest()


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

    Raises CheckpointError if it can't be written or another process writes it, ValueError naming
    the byte for a text that is not UTF-8, or empty, and OSError for one that can't be read.
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
    with sole_writer(out):
        if (found := _same(out, header)) is not None:
            return found
        parts = text_parts(text, part_bytes, size)
        folder = out.with_name(f"{out.name}.parts")
        jobs = [(text, part, tokenizer, folder, dtype.str) for part in parts]
        for part in _in_turn(jobs, processes or os.cpu_count() or 1):
            if bar is not None:
                bar.update(part.end - part.start)
        edge = numpy.array([tokenizer.special_id(END_OF_TEXT)], dtype).tobytes()
        _join(folder, parts, out, edge, header)
        shutil.rmtree(folder, ignore_errors=True)
    return open_tokens(out)


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
    if _is_whole(path, said):
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


def _is_whole(path: Path, said: bytes) -> bool:
    if not path.is_file():
        return False
    data = path.read_bytes()
    return data[:32] == said and hashlib.sha256(data[64:]).digest() == data[32:64]


def _join(folder: Path, parts: list[Part], out: Path, edge: bytes, header: dict) -> None:
    """Write all parts into one file, then what it holds; the header last, so it vouches for all."""
    digest, rows = hashlib.sha256(), 0
    unfinished = out.with_name(f"{out.name}.joining")
    try:
        with unfinished.open("wb") as file:
            for data in _bodies(folder, parts, edge):
                digest.update(data)
                rows += len(data) // len(edge)
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _header_of(out).unlink(missing_ok=True)
        os.replace(unfinished, out)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise CheckpointError(f"could not write {out}: {plain_words(error)}") from error
    said = header | {"tokens": rows, "ids": digest.hexdigest()}
    write_atomically(_header_of(out), json.dumps(said).encode())


def _bodies(folder: Path, parts: list[Part], edge: bytes) -> Iterator[bytes]:
    yield edge
    for part in parts:
        yield (folder / f"{part.start:016x}").read_bytes()[64:]
    yield edge


def _header_of(out: Path) -> Path:
    return out.with_name(f"{out.name}.json")


def _same(out: Path, header: dict) -> TokenFile | None:
    """Open `out` if it is whole and was made from the same; None where it must be made anew."""
    try:
        said = read_json(_header_of(out))
        if not isinstance(said, dict) or {k: said.get(k) for k in header} != header:
            return None
        return open_tokens(out)
    except CheckpointError:
        return None


def open_tokens(path: str | Path) -> TokenFile:
    """Map a file of ids that `encode_to_file` has made, after checking it against its header.

    Raises CheckpointError if one of the two files is missing, if they disagree about the number of
    ids or their digest, or for an unknown format.
    """
    path = Path(path)
    said = read_json(_header_of(path))
    wanted = {"format": str, "dtype": str, "tokens": int, "ids": str, "text": str}
    wrong = not isinstance(said, dict) or any(
        not isinstance(said.get(k), kind) for k, kind in wanted.items()
    )
    if wrong or said["format"] != FORMAT or said["dtype"] not in ("<i2", "<i4"):
        raise CheckpointError(f"{_header_of(path).name} does not describe a file of ids")
    if not path.is_file():
        raise CheckpointError(f"there is no file {path}")
    dtype, size = numpy.dtype(said["dtype"]), path.stat().st_size
    if size != said["tokens"] * dtype.itemsize or said["tokens"] < 1:
        raise CheckpointError(
            f"{path.name} has {size} bytes, its header promises {said['tokens']} ids of "
            f"{dtype.itemsize} bytes: remove both, and encode again"
        )
    if (found := digest_of(path)) != said["ids"]:
        raise CheckpointError(
            f"{path.name} is damaged: its digest is {found[:12]}…, its header says "
            f"{said['ids'][:12]}…; remove both, and encode again"
        )
    mapped = numpy.memmap(path, dtype, "c")  # copied on writing, which nobody does
    if hasattr(mmap, "MADV_RANDOM"):  # read no more than is asked for
        mapped._mmap.madvise(mmap.MADV_RANDOM)
    return TokenFile(torch.from_numpy(mapped), said["text"])
