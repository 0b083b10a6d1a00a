"""Published weights, downloaded once and checked; nothing in the course needs them.

The repository's list at one commit says every file's size and hash, and only a file that has both
is kept. A download that breaks off goes on where it stopped. (`huggingface_hub` can bring the files
too: a folder of its making is read like any other. It is no part of this, because two files at a
known commit need no second cache, no tokens and no further eight packages.)
"""

import contextlib
import hashlib
import http.client
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from tqdm import tqdm

from tinytf.support.files import CheckpointError, hold, is_file, parse_json, plain_words

__all__ = ["Published", "cache_folder", "download_files", "download_model", "fetch"]

HOST = "https://huggingface.co"
# the commit whose files are meant, so that a name means the same weights for ever
REVISIONS = {
    "gpt2": "607a30d783dfa663caf39e06633721c8d4cfcd7e",
    "gpt2-medium": "6dcaa7a952f72f9298047fd5137cd6e4f05f41da",
    "gpt2-large": "32b71b12589c2f8d625668d2335a01cac3249519",
    "gpt2-xl": "15ea56dee5df4983c59b2538573817e1667135e2",
}
FILES = ("config.json", "model.safetensors")
TIMEOUT = 30  # seconds without a byte
BLOCK = 1 << 20  # bytes
LONGEST_LIST = 1 << 22  # bytes
LARGEST = 1 << 40  # bytes of any file


class NetworkError(Exception):
    """What came over the network is not what was asked for, or nothing came."""


@dataclass(frozen=True)
class Published:
    """What a repository says of a file: its size, and its SHA-256, or for small files git's hash.

    Git's hash is the SHA-1 of "blob", the size and the content.
    """

    size: int
    kind: str  # "SHA-256" or "git's SHA-1"
    digest: str

    def hasher(self) -> Any:
        """Start a hash that becomes `digest` once the file's bytes went through it."""
        if self.kind == "SHA-256":
            return hashlib.sha256()
        return hashlib.sha1(b"blob %d\0" % self.size, usedforsecurity=False)


def cache_folder() -> Path:
    """Return where downloads are kept: `TINYTF_CACHE`, else ~/.cache/tinytf."""
    try:
        return Path(os.environ.get("TINYTF_CACHE") or Path.home() / ".cache" / "tinytf")
    except RuntimeError as error:
        raise CheckpointError(f"{error}: name a folder for downloads in TINYTF_CACHE") from error


def download_model(name: str, host: str = HOST) -> Path:
    """Return the folder with a published GPT-2's config.json and model.safetensors.

    What is there is not downloaded again. Raises as `download_files`.
    """
    return download_files(
        f"openai-community/{name}", REVISIONS[name], cache_folder() / name, host=host
    )


def download_files(
    repository: str,
    revision: str,
    folder: Path,
    files: Sequence[str] = FILES,
    host: str = HOST,
) -> Path:
    """Bring files of a repository, as they were at one commit, into `folder`; returns the folder.

    Only what is not there is asked for, and what an earlier try brought of it is used. A file that
    has not the size and the hash that the repository says is not kept. Raises CheckpointError,
    which for a fault of the network says what to do instead, and for one of this machine names the
    file.
    """
    folder = Path(folder)
    files = [file for file in files if not is_file(folder / file)]
    if not files:
        return folder
    name = repository.rpartition("/")[2]
    try:
        published = list_files(repository, revision, host)
        if missing := [file for file in files if file not in published]:
            raise NetworkError(f"{repository} at {revision} has no {', '.join(missing)}")
        for file in files:
            url = f"{host}/{repository}/resolve/{revision}/{file}"
            fetch(url, folder / file, published[file])
    except NetworkError as error:
        those = f"{', '.join(files[:-1])} and {files[-1]}" if len(files) > 1 else files[0]
        raise CheckpointError(
            f"could not download {name} from {host} ({error}). Without a network, get {those} "
            f"of {repository} by other means, put them into a "
            f"folder and name that folder, or put them into {folder}"
        ) from error
    return folder


def list_files(repository: str, revision: str, host: str = HOST) -> dict[str, Published]:
    """Ask what files a repository has at a commit. Raises NetworkError for a useless answer."""
    url = f"{host}/api/models/{repository}/tree/{revision}"
    with _open(url) as answer:
        text = b"".join(_blocks(answer, LONGEST_LIST, url))
    try:
        found = {entry["path"]: _published(entry) for entry in parse_json(text.decode())
                 if entry["type"] == "file"}  # fmt: skip
    except (ValueError, TypeError, KeyError) as error:
        raise NetworkError(f"{url} is no list of files with sizes and hashes: {error}") from error
    return found


def fetch(url: str, path: Path, published: Published) -> None:
    """Bring `url` into `path`, whole or not at all; a terminal sees a progress bar.

    Bytes go to a part file beside it, which stays if the network breaks off, and is gone on from.
    Raises CheckpointError if the bytes have not the hash, or can't be written here; NetworkError if
    they do not come, or are more or fewer than they should be.
    """
    part = path.with_name(f".{path.name[:50]}.{published.digest[:12]}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("a+b") as file:
            if not hold(file):
                raise CheckpointError(f"another process is downloading {path.name} into {part}")
            digest = _receive(url, file, published, path.name)
        if digest != published.digest:
            part.unlink()
            raise CheckpointError(
                f"{url} has {published.kind} {digest}, expected {published.digest}: not kept"
            )
        os.replace(part, path)
    except OSError as error:
        raise CheckpointError(f"could not write {path}: {plain_words(error)}") from error


def _receive(url: str, file: BinaryIO, published: Published, name: str) -> str:
    """Append what is missing of a part file; returns the hash of all of it."""
    hasher, have = published.hasher(), file.seek(0, os.SEEK_END)
    if have > published.size:
        have = file.truncate(0)
    file.seek(0)
    for start in range(0, have, BLOCK):
        hasher.update(file.read(min(BLOCK, have - start)))
    if have == published.size:
        return hasher.hexdigest()
    with _open(url, have) as answer:
        if have and answer.status != 206:  # all of it comes again
            have, hasher = file.truncate(0), published.hasher()
        expected = published.size - have
        announced = answer.headers["Content-Length"]
        if announced is not None and announced != str(expected):
            raise NetworkError(f"{url} announces {announced} bytes, expected {expected}")
        with tqdm(total=published.size, initial=have, unit="B", unit_scale=True, desc=name,
                  disable=None) as bar:  # fmt: skip
            count = 0
            for block in _blocks(answer, expected, url):
                hasher.update(block)
                file.write(block)
                count += len(block)
                bar.update(len(block))
    if count < expected:
        raise NetworkError(
            f"{url} ended after {have + count} of {published.size} bytes: try again, and it goes "
            "on from there"
        )
    return hasher.hexdigest()


def _published(entry: dict[str, Any]) -> Published:
    """Read an entry of the list: large files have their own hash, small ones git's."""
    size, kind, digest = entry["size"], "git's SHA-1", entry["oid"]
    if large := entry.get("lfs"):
        size, kind, digest = large["size"], "SHA-256", large["oid"]
    if type(size) is not int or not 0 <= size <= LARGEST:
        raise ValueError(f"{entry['path']!r:.60} has the size {size!r:.60}")
    if not re.fullmatch("[0-9a-f]{64}" if large else "[0-9a-f]{40}", digest):
        raise ValueError(f"{entry['path']!r:.60} has the hash {digest!r:.60}")
    return Published(size, kind, digest)


def _blocks(answer: http.client.HTTPResponse, most: int, url: str) -> Iterator[bytes]:
    """Read an answer block by block. Raises NetworkError as soon as it is longer than `most`."""
    count = 0
    while True:
        with _network(url):
            block = answer.read(min(BLOCK, most - count + 1))
        if not block:
            return
        count += len(block)
        if count > most:
            raise NetworkError(f"{url} sends more than {most} bytes")
        yield block


@contextlib.contextmanager
def _open(url: str, start: int = 0) -> Iterator[http.client.HTTPResponse]:
    headers = {"User-Agent": "tinytf"}
    if start:
        headers["Range"] = f"bytes={start}-"
    with _network(url):
        request = urllib.request.Request(url, headers=headers)
        answer = urllib.request.build_opener(_Redirects).open(request, timeout=TIMEOUT)
    with answer:
        yield answer


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follow to other servers, but never to files, nor from an encrypted to a plain address."""

    def redirect_request(self, request, file, code, message, headers, newurl):
        allowed = ("https:",) if request.type == "https" else ("https:", "http:")
        if not newurl.lower().startswith(allowed):
            raise NetworkError(f"{request.full_url} leads to {newurl:.80}, which is not followed")
        return super().redirect_request(request, file, code, message, headers, newurl)


@contextlib.contextmanager
def _network(url: str) -> Iterator[None]:
    """Say in plain words what went wrong on the way to or from `url`."""
    try:
        yield
    except urllib.error.HTTPError as error:
        raise NetworkError(f"{url} answers {error.code} {error.reason}") from error
    except TimeoutError as error:
        raise NetworkError(f"{url}: no answer for {TIMEOUT} seconds") from error
    except urllib.error.URLError as error:
        late = isinstance(error.reason, TimeoutError)
        words = f"no answer for {TIMEOUT} seconds" if late else error.reason
        raise NetworkError(f"{url} can't be reached: {words}") from error
    except OSError as error:
        raise NetworkError(f"{url} can't be reached: {error.strerror or error}") from error
    except (http.client.HTTPException, ValueError) as error:
        words = str(error) or type(error).__name__
        raise NetworkError(f"{url}: the answer is broken: {words}") from error
