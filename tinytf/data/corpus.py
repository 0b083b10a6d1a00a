"""What the shipped writer reads: the Python manual and the library's docstrings, as documents."""

import ast
import functools
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from tinytf.data.manual import manual_topics, without_paragraphs
from tinytf.text.bpe import ByteBPE

__all__ = ["END_OF_TEXT", "HELD_OUT", "Corpus", "corpus", "encode_documents", "library_docstrings"]

END_OF_TEXT = "<|endoftext|>"  # GPT-2's name for it
# by name, so that what the shipped writer never read is the same with every version of Python
HELD_OUT = (
    "customization",
    "for",
    "identifiers",
    "lambda",
    "naming",
    "objects",
    "raise",
    "typesmapping",
    "typesmethods",
    "unary",
)


class Corpus(NamedTuple):
    """Documents to learn from, and documents held out."""

    train: list[str]
    validation: list[str]


def corpus(docstrings: bool = True) -> Corpus:
    """Give the manual's topics and the library's docstrings; the topics of HELD_OUT are held out.

    A paragraph that stands in a topic held out is taken out of every other document. Each version
    of Python has its own texts. `docstrings=False` leaves the manual alone.
    """
    topics = manual_topics()
    validation = [text for name, text in topics.items() if name in HELD_OUT]
    documents = [text for name, text in topics.items() if name not in HELD_OUT]
    if docstrings:
        documents += library_docstrings()
    return Corpus(without_paragraphs(validation, documents), validation)


def library_docstrings(shortest: int = 80) -> list[str]:
    """Collect the standard library's different docstrings of `shortest` characters or more.

    About 3,700 of them, 1.4 million characters. Raises FileNotFoundError where the library has no
    source files.
    """
    found = [t for t in _docstrings(Path(sysconfig.get_path("stdlib"))) if len(t) >= shortest]
    if not found:
        raise FileNotFoundError("this Python's library holds no source files with docstrings")
    return found


@functools.cache  # parsing the library takes seconds
def _docstrings(folder: Path) -> tuple[str, ...]:
    """Read the different docstrings of a folder's modules and of its packages', in their order."""
    found: dict[str, None] = {}
    paths = sorted(folder.glob("*.py")) + sorted(folder.glob("[a-z]*/*.py"))
    for path in paths:
        if path.relative_to(folder).parts[0] in ("site-packages", "dist-packages", "test"):
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):  # a few files are wrong on purpose
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found[ast.get_docstring(node) or ""] = None
    return tuple(found)


def encode_documents(tokenizer: ByteBPE, documents: Iterable[str]) -> Tensor:
    """Join documents into one row of ids (N,), an end-of-text token before each and at the end.

    Raises ValueError if there are no documents, or the tokenizer has no end-of-text token.
    """
    end = tokenizer.special_id(END_OF_TEXT)
    ids = [end]
    for text in documents:
        ids += tokenizer.encode(text)
        ids.append(end)
    if len(ids) == 1:
        raise ValueError("there are no documents to encode")
    return torch.tensor(ids)
