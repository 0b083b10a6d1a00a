"""Published weights, downloaded once and checked; nothing in the course needs them."""

import hashlib
import os
import re
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from tinytf.support.files import CheckpointError

__all__ = ["cache_folder", "download", "download_files", "download_model"]

HOST = "https://huggingface.co"
# the commit whose files are meant, so that a name means the same weights for ever
REVISIONS = {
    "gpt2": "607a30d783dfa663caf39e06633721c8d4cfcd7e",
    "gpt2-medium": "6dcaa7a952f72f9298047fd5137cd6e4f05f41da",
    "gpt2-large": "32b71b12589c2f8d625668d2335a01cac3249519",
    "gpt2-xl": "15ea56dee5df4983c59b2538573817e1667135e2",
}
FILES = ("config.json", "model.safetensors")
CHECKED = ".safetensors"  # files of this kind must have a checksum
POINTER = re.compile(r"oid sha256:([0-9a-f]{64})\s+size (\d+)")
TIMEOUT = 30  # seconds without a byte


def cache_folder() -> Path:
    """Return where downloads are kept: `TINYTF_CACHE`, else ~/.cache/tinytf."""
    return Path(os.environ.get("TINYTF_CACHE") or Path.home() / ".cache" / "tinytf")


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

    Only what is not there is asked for. The repository at that commit names the SHA-256 of the
    weights, and a file that does not have it is not kept. Raises CheckpointError that says what to
    do instead where there is no network.
    """
    folder = Path(folder)
    files = [file for file in files if not (folder / file).is_file()]
    name = repository.rpartition("/")[2]
    root = f"{host}/{repository}"
    try:
        sums = {}
        for file in files:
            if file.endswith(CHECKED):
                with _open(f"{root}/raw/{revision}/{file}") as answer:
                    pointer = POINTER.search(answer.read(1000).decode(errors="replace"))
                if pointer is None:
                    raise CheckpointError(f"{host} does not say the checksum of {name}'s weights")
                sums[file] = pointer.groups()
        for file in files:
            url = f"{root}/resolve/{revision}/{file}"
            download(url, folder / file, *sums.get(file, ()))
    except OSError as error:
        those = f"{', '.join(files[:-1])} and {files[-1]}" if len(files) > 1 else files[0]
        raise CheckpointError(
            f"could not download {name} from {host} ({error}). Without a network, get {those} "
            f"of {repository} by other means, put them into a "
            f"folder and name that folder, or put them into {folder}"
        ) from error
    return folder


def download(url: str, path: Path, sha256: str | None = None, size: str | None = None) -> None:
    """Fetch `url` into `path`, whole or not at all; a terminal sees a progress bar.

    Raises CheckpointError if the bytes do not have the SHA-256 (hexadecimal) or the size (bytes; by
    default what the server announces), OSError if they can't be fetched or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    digest, count = hashlib.sha256(), 0
    try:
        with _open(url) as answer, part.open("wb") as file:
            size = size or answer.headers["Content-Length"]
            total = None if size is None else int(size)
            with tqdm(total=total, unit="B", unit_scale=True, desc=path.name, disable=None) as bar:
                while block := answer.read(1 << 20):
                    digest.update(block)
                    count += len(block)
                    file.write(block)
                    bar.update(len(block))
        if total is not None and count != total:
            raise CheckpointError(f"{url} gave {count} bytes, expected {total}: try again")
        if sha256 is not None and digest.hexdigest() != sha256:
            raise CheckpointError(
                f"{url} has SHA-256 {digest.hexdigest()}, expected {sha256}: not kept"
            )
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _open(url: str):
    request = urllib.request.Request(url, headers={"User-Agent": "tinytf"})
    return urllib.request.urlopen(request, timeout=TIMEOUT)
