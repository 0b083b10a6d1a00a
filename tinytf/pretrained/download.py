"""Published weights, downloaded once and checked; nothing in the course needs them.

`huggingface_hub`, which comes with `transformers`, brings files of a repository as they were at one
commit, and a file is kept only if it has the hash that the repository says. What is in the folder
already is never asked for: without a network, put the files there.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from tinytf.support.files import CheckpointError, plain_words, shortened
from tinytf.support.locks import sole_writer

__all__ = ["cache_folder", "download_files", "download_model"]

# the commit whose files are meant, so that a name means the same weights for ever
REVISIONS = {
    "gpt2": "607a30d783dfa663caf39e06633721c8d4cfcd7e",
    "gpt2-medium": "6dcaa7a952f72f9298047fd5137cd6e4f05f41da",
    "gpt2-large": "32b71b12589c2f8d625668d2335a01cac3249519",
    "gpt2-xl": "15ea56dee5df4983c59b2538573817e1667135e2",
}
FILES = ("config.json", "model.safetensors")


def cache_folder() -> Path:
    """Return where downloads are kept: `TINYTF_CACHE`, else ~/.cache/tinytf."""
    try:
        return Path(os.environ.get("TINYTF_CACHE") or Path.home() / ".cache" / "tinytf")
    except RuntimeError as error:
        raise CheckpointError(f"{error}: name a folder for downloads in TINYTF_CACHE") from error


def download_model(name: str, host: str | None = None) -> Path:
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
    host: str | None = None,
) -> Path:
    """Bring files of a repository, as they were at one commit, into `folder`; returns the folder.

    Only what is not there is asked for, of `host` (default: Hugging Face's). Raises CheckpointError
    for a file that has not the hash that the repository says, which is not kept; for a fault of the
    network, with what to do instead; and for one of this machine, naming the file.
    """
    folder = Path(folder)
    files = [file for file in files if not os.path.isfile(folder / file)]
    for file in files:
        try:
            with sole_writer(folder / file):
                _bring(repository, revision, file, folder, host)
        except CheckpointError:
            raise
        except Exception as error:  # the library's errors have few parents in common
            if isinstance(error, OSError) and error.errno:
                raise CheckpointError(
                    f"could not write {folder / file}: {plain_words(error)}"
                ) from error
            those = f"{', '.join(files[:-1])} and {files[-1]}" if len(files) > 1 else files[0]
            name = repository.rpartition("/")[2]
            raise CheckpointError(
                f"could not download {name} ({shortened(' '.join(str(error).split()), 300)})."
                f" Without a network, get {those} of {repository} by other means, put them into a "
                f"folder and name that folder, or put them into {folder}"
            ) from error
    return folder


def _bring(repository: str, revision: str, file: str, folder: Path, host: str | None) -> None:
    """Bring one file into `folder`, where it gets its name once its hash has been compared."""
    try:
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    except ImportError as error:
        raise ImportError("it takes huggingface_hub: pip install huggingface_hub") from error

    incoming = folder / ".incoming"
    url = hf_hub_url(repository, file, revision=revision, endpoint=host)
    expected = get_hf_file_metadata(url, token=False).etag
    path = Path(hf_hub_download(
        repository, file, revision=revision, local_dir=incoming, endpoint=host, token=False
    ))  # fmt: skip
    found = _digest(path, expected or "")
    if found == expected:
        os.replace(path, folder / file)
    shutil.rmtree(incoming, ignore_errors=True)
    if found != expected:
        raise CheckpointError(f"{url} has the hash {found}, expected {expected}: not kept")


def _digest(path: Path, like: str) -> str:
    """Hash a file as its repository does: large ones by SHA-256, small ones as git does.

    Git's hash is the SHA-1 of "blob", the size and the content.
    """
    hasher = hashlib.sha256()
    if re.fullmatch("[0-9a-f]{40}", like):
        hasher = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hasher).hexdigest()
