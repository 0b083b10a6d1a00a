"""Read the file of a notebook: what is in it, or one sentence on what is wrong with it."""

from tinytf.support.files import parse_json, plain_words

__all__ = ["LARGEST", "NotebookError", "printable", "read", "read_text", "source"]

LARGEST = 50 * 2**20  # bytes of a file that is read
_DEEPEST = 100  # lists and tables inside each other; Python's own copying ends at some 300


class NotebookError(ValueError):
    """A file that is not a notebook, or a cell that is neither Python nor IPython."""


def read(path):
    """The notebook at `path` as a dict. Raises NotebookError naming what is wrong with it.

    What comes back has `cells`, each with a `cell_type` and a `source`; where a notebook, a cell
    or an output has `metadata`, or a cell an `id` or `outputs`, they have the format's own types.
    """
    name = printable(path.name)
    try:
        notebook = parse_json(read_text(path))
    except NotebookError:
        raise
    except ValueError as error:
        raise NotebookError(f"{name} is not a notebook: it is not JSON: {error}") from error
    if fault := _fault(notebook):
        raise NotebookError(f"{name} is not a notebook: {fault}")
    return notebook


def read_text(path):
    """The text of a file. Raises NotebookError if it is no plain file, too large, or not UTF-8."""
    name = printable(path.name)
    try:
        if path.exists() and not path.is_file():
            raise NotebookError(f"{name} is a folder or a device, not a file")
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise NotebookError(f"{name}: {plain_words(error)}") from error
    if len(data) > LARGEST:
        raise NotebookError(f"{name} is larger than {LARGEST >> 20} MB: no chapter is")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotebookError(
            f"{name} is not a notebook: it is not UTF-8 ({error.reason} at byte {error.start:,})"
        ) from error


def printable(text):
    """`text` for a terminal or a table: control characters and broken bytes become escapes."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))


def source(cell):
    """The text of a cell."""
    return "".join(cell["source"])


def _fault(notebook):
    """What makes `notebook` none, in words, or None."""
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        return "it has no list of cells"
    if not isinstance(notebook.get("metadata", {}), dict):
        return "its metadata has the wrong type"
    if _nested_deeper(notebook, _DEEPEST):
        return "it is nested too deeply"
    found = ((number, _cell_fault(cell)) for number, cell in enumerate(notebook["cells"], 1))
    return next((f"cell {number} {fault}" for number, fault in found if fault), None)


def _cell_fault(cell):
    if not isinstance(cell, dict) or not isinstance(cell.get("cell_type"), str):
        return "is no cell"
    if not _is_text(cell.get("source")):
        return "has a source that is not text"
    for name, kind in (("metadata", dict), ("outputs", list), ("id", str)):
        if not isinstance(cell.get(name, kind()), kind):
            return f"has {name} of the wrong type"
    if not all(map(_is_output, cell.get("outputs", []))):
        return "has an output that is none"
    return None


def _is_output(output):
    if not isinstance(output, dict) or not _is_text(output.get("text", "")):
        return False
    metadata, data = output.get("metadata", {}), output.get("data", {})
    if not isinstance(metadata, dict) or not isinstance(data, dict):
        return False
    return _is_text(data.get("text/plain", ""))


def _is_text(value):
    """Whether it is a text, whole or in pieces, as notebooks save it."""
    if isinstance(value, list):
        return all(isinstance(part, str) for part in value)
    return isinstance(value, str)


def _nested_deeper(value, levels):
    """Whether lists and tables stand inside each other more than `levels` deep."""
    layer = [value]
    for _ in range(levels):
        layer = [
            inner
            for outer in layer
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return bool(layer)
