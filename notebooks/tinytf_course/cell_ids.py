"""Cell ids that mean something, and last: translations and teachers' notes hang on them."""

import ast
import re
import unicodedata

from tinytf_course.notebooks import calls_in, source, tree

LONGEST = 48  # characters; the format allows 64, and a number may have to follow
_DROPPED = {"a", "an", "the", "that"}
_RANDOM = re.compile(r"[0-9a-f]{8}|[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LASTING = re.compile(r"[a-z0-9]+([-_][a-z0-9]+)*")


def give_ids(cells):
    """Give each cell without a lasting id one that says what it holds.

    An id that was given stays for ever, wherever the cell goes and whatever becomes of it. A random
    one, as notebook editors make them, and the second of two that are equal are replaced.
    """
    taken, new = set(), []
    for cell in cells:
        if lasting(cell.get("id")) and cell["id"] not in taken:
            taken.add(cell["id"])
        else:
            new.append(cell)
    new = {id(cell) for cell in new}  # by identity: two cells may hold the same
    section = "start"
    for number, cell in enumerate(cells):
        title = heading(cell)
        section = slug(title) or section if title and number else section
        if id(cell) not in new:
            continue
        cell["id"] = _unique("title" if title and not number else meaning(cell, section), taken)
        taken.add(cell["id"])


def lasting(name):
    """Whether a cell's id was given by somebody, and not drawn at random by an editor."""
    return bool(name and _LASTING.fullmatch(name) and not _RANDOM.fullmatch(name))


def meaning(cell, section):
    """What an id for the cell says: its heading, exercise, definition or claim, or its section."""
    if cell["cell_type"] != "code":
        title = heading(cell)
        if title:
            exercise = re.match(r"Exercise\s+(\S+)", title)
            return slug(f"exercise {exercise[1]}" if exercise else title) or f"{section}-text"
        is_caption = re.match(r"\*[^*]+\?", source(cell).strip())
        return f"{section}-caption" if is_caption else f"{section}-text"
    try:
        code = tree(source(cell))
    except SyntaxError:
        return f"{section}-code"
    return _of_calls(code, section) or _of_names(code, section)


def heading(cell):
    """The text of a Markdown cell's first heading, without its mark-up, or None."""
    if cell["cell_type"] != "markdown":
        return None
    found = re.search(r"^#{1,6}\s+(.+)$", source(cell), flags=re.M)
    if not found:
        return None
    return re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*$]", r"\1", found[1]).strip()


def slug(text, dropped=_DROPPED):
    """`A dictionary that looks up` as an id: dictionary-looks-up. Empty if nothing is left."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)
    text = re.sub("['’\u0300-\u036f]", "", unicodedata.normalize("NFKD", text)).lower()
    words = [word for word in re.findall(r"[a-z0-9]+", text) if word not in dropped]
    name = ""
    for word in words:
        longer = f"{name}-{word}" if name else word[:LONGEST]
        if len(longer) > LONGEST:
            break
        name = longer
    return name


def _of_calls(code, section):
    """An id from what the course's own functions are told in the cell."""
    definitions = [node for node in code.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    for function, name in (
        ("check", "exercise {} answer"),
        ("predict", "predict {}"),
        (None, "{}"),
        ("claim", "claim {}"),
        ("predict.answer", "answer {}"),
        ("graduate", "graduate {}"),
    ):
        if function is None and definitions:
            return slug(definitions[0].name)
        for call in calls_in(code, function) if function else ():
            told = getattr(call.args[0], "value", None) or getattr(call.args[0], "id", None)
            if isinstance(told, str) and slug(told, ()):
                return slug(name.format(told), ())
    return None


def _of_names(code, section):
    """An id from what the cell draws, assigns, or is."""
    called = [node.func for node in ast.walk(code) if isinstance(node, ast.Call)]
    names = {ast.unparse(function) for function in called}
    for name in ("setup", "course_map"):
        if name in names:
            return slug(name)
    if any(name.startswith("viz.") for name in names):
        return f"{section}-figure"
    for node in code.body:
        targets = node.targets if isinstance(node, ast.Assign) else ()
        for target in targets:
            name = next((n.id for n in ast.walk(target) if isinstance(n, ast.Name)), "")
            if slug(name):
                return slug(f"{section} {name}")
    return f"{section}-code"


def _unique(name, taken):
    name = name[:LONGEST].rstrip("-")
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name}-{number}"
    return candidate
