"""English prose that every Python carries: its manual, its library's source, or a file of yours."""

import random
import sysconfig
from pathlib import Path

from tinytf.support.files import read_text

__all__ = ["library_source", "manual_split", "manual_text", "manual_topics", "text_file",
           "without_paragraphs"]  # fmt: skip


def manual_topics() -> dict[str, str]:
    """The topics of the Python manual's reference, by name, sorted.

    About 465,000 characters in 79 topics; each version of Python has its own. Raises
    ModuleNotFoundError where a distribution has left the manual out.
    """
    try:
        from pydoc_data.topics import topics
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "this Python comes without its manual (the module pydoc_data): install one from "
            "python.org or conda-forge, or your distribution's full Python package, or pass a text "
            "of your own with tinytf.data.manual.text_file(path)"
        ) from error
    return dict(sorted(topics.items()))


def manual_text() -> str:
    """The whole manual, topic after topic, an empty line between two."""
    return "\n\n".join(manual_topics().values())


def manual_split(fraction: float = 0.1, seed: int = 0) -> tuple[str, str]:
    """The manual as (train, validation), split by whole topics, nothing of the one in the other.

    Topics drawn at random are held out until they make at least `fraction` of the characters; both
    texts keep the topics sorted. Topics repeat each other (a third of the manual stands in two of
    them): paragraphs that were held out are taken out of the training topics.
    Raises ValueError unless 0 < fraction < 1, or if nothing is left to train on.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"fraction must lie between 0 and 1, got {fraction}")
    topics = manual_topics()
    wanted = fraction * sum(map(len, topics.values()))
    # only `random()` is used: it is the one method whose stream Python promises to keep
    draw = random.Random(seed).random
    order = sorted(topics, key=lambda _: draw())
    held_out: set[str] = set()
    while sum(len(topics[name]) for name in held_out) < wanted:
        held_out.add(order[len(held_out)])
    validation = [text for name, text in topics.items() if name in held_out]
    rest = [text for name, text in topics.items() if name not in held_out]
    train = "\n\n".join(without_paragraphs(validation, rest))
    if not train:
        raise ValueError(f"fraction={fraction} leaves nothing to train on")
    return train, "\n\n".join(validation)


def without_paragraphs(held_out: list[str], documents: list[str]) -> list[str]:
    """Take the paragraphs of texts held out out of documents; those with nothing left are gone."""
    seen = {p.strip() for text in held_out for p in text.split("\n\n")}
    kept = ("\n\n".join(p for p in d.split("\n\n") if p.strip() not in seen) for d in documents)
    return [text for text in kept if text.strip()]


def library_source(limit: int = 5_000_000) -> str:
    """The standard library's source, docstrings and all, module by module, `limit` characters.

    Raises ValueError for a limit below 1, FileNotFoundError where the library has no source files.
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1 character, got {limit}")
    folder = Path(sysconfig.get_path("stdlib"))
    parts, size = [], 0
    for path in sorted(folder.glob("*.py")) + sorted(folder.glob("[a-z]*/*.py")):
        if path.relative_to(folder).parts[0] in ("site-packages", "dist-packages", "test"):
            continue
        try:
            parts.append(text_file(path))
        except ValueError:  # a few files are in another encoding, on purpose
            continue
        size += len(parts[-1]) + 2
        if size >= limit:
            break
    if not parts:
        raise FileNotFoundError(f"this Python's library holds no source files: {folder}")
    return "\n\n".join(parts)[:limit]


def text_file(path: str | Path) -> str:
    """A text of your own, from a UTF-8 file.

    Raises FileNotFoundError, or ValueError naming the byte offset of what is not UTF-8, or if the
    file is empty.
    """
    text = "".join(read_text(path))
    if not text:
        raise ValueError(f"{Path(path).name} is empty")
    return text
