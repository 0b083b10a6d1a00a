"""IPython's own lines, such as `!ls` and `%timeit f()`, as Python, so that a cell can be parsed."""

import re
import textwrap

__all__ = ["as_python"]

_REST = r"(?:[^\n\\]|\\\n|\\.|\\\Z)*"  # to the end of the line, or of the lines it goes on in
_NAMES = r"(?:[\w .,*\t]|\[[^\]\n]*\])+"
_OWN = re.compile(
    rf"(?P<left>[ \t]*)(?P<call>[!%?,;/]{_REST}|[^'\"#\n]*\?[ \t]*$)"
    rf"|(?P<name>{_NAMES}=[ \t]*)(?P<value>[!%]{_REST})",
    re.MULTILINE,
)
_PIECE = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"""|\Z)'
    r"|'''(?:\\.|[^\\])*?(?:'''|\Z)"
    r'|"(?:\\.|[^"\\\n])*"?'
    r"|'(?:\\.|[^'\\\n])*'?"
    r"|#[^\n]*"
    r"|\\.|[^'\"#\n\\\[\](){}]+|.",
    re.DOTALL,
)
_PROMPT = re.compile(r"^[ \t]*(?:>>>|\.\.\.|In \[\d+\]:|\.\.\.+:)(?: |$)", re.MULTILINE)


def as_python(code):
    """The code of a cell in which each line of IPython's is a call of `get_ipython`.

    Only where a statement can begin: in brackets, strings and comments all stays as it is. Takes
    time in proportion to the length, whatever the cell holds.
    """
    if _PROMPT.match(code):
        code = _PROMPT.sub("", code)
    code = textwrap.dedent(code) if code[:1] in (" ", "\t") else code
    done, at, depth, begins = [], 0, 0, True
    while at < len(code):
        found = _OWN.match(code, at) if begins else None
        if found:
            text = found["call"] or found["value"]
            name = found["left"] if found["name"] is None else found["name"]
            done.append(f"{name}get_ipython().run({text!r})" + "\n" * text.count("\n"))
        else:
            found = _PIECE.match(code, at)
            piece = found[0]
            depth = max(0, depth + (piece in "[({") - (piece in "])}"))
            done.append(piece)
        at = found.end()
        begins = not depth and code[at - 1 : at] == "\n" and found[0] == "\n"
    return "".join(done)
