"""Code for a slide: cut where it can be, coloured."""

import ast
import functools

LINES = 15  # of code on one slide
SPARE = 4  # so many more are set smaller, rather than left alone on the next


def chunks(text, longest=LINES):
    """Code in pieces of about `longest` lines, at most SPARE more, where its statements allow it.

    It is cut between statements, those at the top before those inside; a statement longer than
    that stays whole.
    """
    lines = text.strip("\n").splitlines()
    if len(lines) <= longest + SPARE:
        return ["\n".join(lines)]
    cuts = _cuts(text.strip("\n"))
    found, start = [], 0
    while len(lines) - start > longest + SPARE:
        within = [cut for cut in cuts if start < cut[1] <= start + longest]
        later = [cut for cut in cuts if cut[1] > start + longest]
        if not within and not later:
            break
        depth = min(cut[0] for cut in within) if within else None
        # The outermost place to cut, unless that leaves a stump: then the last place of all.
        best = [cut[1] for cut in within if cut[0] == depth] or [later[0][1]]
        end = best[-1]
        if within and end - start < longest // 3:
            end = within[-1][1]
        found.append("\n".join(lines[start:end]).strip("\n"))
        start = end
    return [*found, "\n".join(lines[start:]).strip("\n")]


def _cuts(text):
    """Where statements begin: (depth, index of the line), in the order of lines."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return [(0, number) for number in range(1, len(text.splitlines()))]
    found = set()

    def visit(node, depth):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                decorators = getattr(child, "decorator_list", ())
                first = min([child.lineno, *(line.lineno for line in decorators)])
                found.add((depth, first - 1))
                visit(child, depth + 1)

    visit(tree, 0)
    return sorted((cut for cut in found if cut[1]), key=lambda cut: (cut[1], cut[0]))


@functools.cache
def _formatter():
    from pygments.formatters import HtmlFormatter
    from pygments.styles import get_all_styles

    best = "a11y-high-contrast-light"
    return HtmlFormatter(style=best if best in set(get_all_styles()) else "default")


def to_html(text):
    """Python, coloured."""
    from pygments import highlight
    from pygments.lexers import PythonLexer

    return highlight(text, PythonLexer(stripnl=False), _formatter())


def colours():
    """The style sheet of coloured code."""
    return _formatter().get_style_defs(".highlight")
