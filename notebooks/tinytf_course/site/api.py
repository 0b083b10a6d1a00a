"""The pages of the package: what `tinytf` offers, from its docstrings. Nothing is imported."""

import ast
import re
from functools import cache
from pathlib import Path

from tinytf_course import house
from tinytf_course.places import PACKAGE, place_of
from tinytf_course.site.head import front_matter

TITLE = "The package"
_CODE = re.compile(r"(`+)(?!`).+?\1", re.S)
_NAME = re.compile(r"<code>(tinytf(?:\.\w+)+)</code>")
_MARKS = re.compile(r"([\\<>$\[\]{}_#|])")  # what Markdown would take for its own


def pages(chapters):
    """The Markdown of the pages, by name: the Transformer itself, then a page a room."""
    built = {}
    for part in house.parts(chapters):
        built.setdefault((part.file, part.name), []).append(part.chapter)
    names = {chapter.chapter: chapter.path.stem for chapter in chapters}
    rooms = sorted(path.parent for path in PACKAGE.glob("*/__init__.py"))
    written = {f"api_{room.name}": _page(room, built, names) for room in rooms}
    written = {name: text for name, text in written.items() if text}
    lines = (
        f"* [tinytf.{name.removeprefix('api_')}]({name}.md): "
        f"{_first_line(PACKAGE / name.removeprefix('api_') / '__init__.py')}"
        for name in written
    )
    about = (
        "On this page is the Transformer itself, one section per module. "
        "The other parts of the package:"
    )
    beside = "\n".join([about, "", *lines])
    hidden = "\n".join(["```{toctree}", ":hidden:", *written, "```"])
    whole = _page(PACKAGE, built, names).replace("# tinytf\n", f"# {TITLE}\n", 1)
    opening, gap, modules = whole.partition("\n\n## ")
    return {"api": "\n\n".join([opening, beside + gap + modules, hidden])} | written


def prose(docstring):
    """A docstring as Markdown: its paragraphs, its `code`, and its examples."""
    parts = []
    for paragraph in docstring.split("\n\n"):
        if paragraph.startswith(">>> "):
            parts.append(f"```pycon\n{paragraph.replace('  # doctest: +SKIP', '')}\n```")
            continue
        end, text = 0, ""
        for code in [*_CODE.finditer(paragraph), None]:
            plain = paragraph[end : code.start() if code else None]
            text += _MARKS.sub(r"\\\1", plain) + (code[0] if code else "")
            end = code.end() if code else end
        parts.append(text)
    return "\n\n".join(parts)


def linked(shown):
    """HTML in which a dotted name in code that has its place on these pages leads there."""
    return _NAME.sub(lambda found: _link(*found[1].rpartition("."), found[0]), shown)


def _link(module, _, name, code):
    file = house.defining_file(name, module)
    if file is None or not file.is_relative_to(PACKAGE) or not _public(name, _offered(_tree(file))):
        return code
    if not any(getattr(node, "name", None) == name for node in _tree(file).body):
        return code  # a constant
    room = file.relative_to(PACKAGE).parts[:-1]
    return f'<a href="{"_".join(["api", *room])}.html#{_dotted(file)}.{name}">{code}</a>'


def _page(folder, built, names):
    """A room: a section a module, in it what the module offers. An empty text where it is none."""
    opening = folder / "__init__.py"
    sections = [_module(path, built, names) for path in sorted(folder.glob("*.py"))
                if not path.name.startswith("__")]  # fmt: skip
    sections = [section for section in sections if section]
    title = _dotted(opening)
    about = prose(ast.get_docstring(_tree(opening)) or "")
    front = front_matter(title, (ast.get_docstring(_tree(opening)) or title).split("\n")[0])
    return "\n\n".join([front, f"# {title}", about, *sections]) if sections else ""


def _module(path, built, names):
    tree = _tree(path)
    offered = _offered(tree)
    shown = [
        _definition(node, _chapters(built, path, node.name, names))
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and _public(node.name, offered)
    ]
    if not shown:
        return ""
    about = prose(ast.get_docstring(tree) or "")
    module = _dotted(path)
    return "\n\n".join([f"## {module}", about, f"```{{py:currentmodule}} {module}\n```", *shown])


def _chapters(built, path, name, names):
    """The sentence that says which chapters build a definition, or an empty text."""
    numbers = built.get((place_of(path), name), [])
    links = (f"[{number}]({names[number]}.md)" for number in dict.fromkeys(numbers))
    return f"Built in chapter {', '.join(links)}." if numbers else ""


def _definition(node, where, fence="`" * 7, kind=""):
    """A definition as Sphinx's directive, methods inside of their class."""
    about = [prose(ast.get_docstring(node) or ""), where]
    if isinstance(node, ast.ClassDef):
        kind, signature = "class", f"{node.name}{_made_with(node)}"
        about += [
            _definition(inner, "", fence[1:], _kind(inner))
            for inner in node.body
            if isinstance(inner, ast.FunctionDef)
            and _public(inner.name, None)
            and ast.get_docstring(inner)
        ]
    else:
        own = kind == "method"
        arguments = "" if kind == "property" else _arguments(node.args, own)
        kind, signature = kind or "function", node.name + arguments
    body = "\n\n".join(filter(None, about))
    return f"{fence}{{py:{kind}}} {signature}\n{body}\n{fence}"


def _kind(node):
    decorators = {ast.unparse(one).split(".")[-1] for one in node.decorator_list}
    kinds = {"property": "property", "cached_property": "property",
             "classmethod": "method", "staticmethod": "staticmethod"}  # fmt: skip
    return next((kinds[name] for name in decorators if name in kinds), "method")


def _arguments(arguments, own):
    """The arguments as one would call them, without their types: docstrings say shapes and units.

    The first is left out where it is the object's `own`.
    """
    places = [*arguments.posonlyargs, *arguments.args]
    given = [f"={ast.unparse(one)}" for one in arguments.defaults]
    values = [""] * (len(places) - len(given)) + given
    named = [f"{one.arg}{value}" for one, value in zip(places, values)][own:]
    if arguments.vararg or arguments.kwonlyargs:
        named.append(f"*{arguments.vararg.arg if arguments.vararg else ''}")
    named += [
        f"{one.arg}={ast.unparse(value)}" if value else one.arg
        for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults)
    ]
    named += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    return f"({', '.join(named)})"


def _made_with(node):
    """What a class is called with: the arguments of `__init__`, or its fields where it has none."""
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef) and inner.name == "__init__":
            return _arguments(inner.args, True)
    fields = [
        f"{inner.target.id}={ast.unparse(inner.value)}" if inner.value else inner.target.id
        for inner in node.body
        if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name)
    ]
    return f"({', '.join(fields)})" if fields else ""


def _offered(tree):
    """What a module's `__all__` names, or None where it has none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return None


def _public(name, offered):
    return name in offered if offered else not name.startswith("_")


def _first_line(path):
    return prose((ast.get_docstring(_tree(path)) or "").split("\n")[0])


def _dotted(path):
    parts = Path(place_of(path)).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@cache
def _tree(path):
    return ast.parse(Path(path).read_text(encoding="utf-8"))
