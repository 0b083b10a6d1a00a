"""The explorer of patches: every module and place of two runs, and what the lens reads.

Inline HTML, CSS and JavaScript with no address in it. Where scripts do not run, the encoder's map
of the first sentence stays as a plain table.

Hooks for browser tests, stable: root `.tinytf-patch` with `data-ready="1"` once scripts run and the
state in `data-example`, `data-map`, `data-row`, `data-column`; controls `.sentence-select`,
`.map-button[data-map]`, `.cell[data-row][data-column][data-value]`, moved by the arrow keys; text
`.reading`; `.still`, hidden once scripts run.
"""

import html
import json
import re
from functools import cache
from hashlib import blake2s
from importlib.resources import files
from itertools import count

from matplotlib.colors import to_hex

from tinytf.viz.style import ATTENTION, cell_text

MAPS = ("encoder", "decoder", "lens")
_serial = count()


class PatchExplorer:
    """What `patch_explorer` returns: a notebook shows it, `save` writes it as a page."""

    def __init__(self, examples, title):
        self.examples = examples
        text = json.dumps(examples, ensure_ascii=False, separators=(",", ":"))
        safe = (
            text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
        )
        digest = blake2s(text.encode(), digest_size=4).hexdigest()
        self.uid = f"tinytf-patch-{digest}-{next(_serial)}"
        parts = {"UID": self.uid, "TITLE": html.escape(title, quote=True),
                 "STILL": _still(examples[0]), "DATA": safe}  # fmt: skip
        # in one pass: what is put in is not looked through again
        asset = _asset("patch_explorer.html")
        self.html = re.sub("__(UID|TITLE|STILL|DATA)__", lambda name: parts[name[1]], asset)

    def __repr__(self):
        return f"<patch explorer: {len(self.examples)} sentences>"

    def _repr_html_(self):
        return self.html

    def save(self, path):
        """Write the explorer as a page of its own, to open in any browser."""
        page = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><body>{self.html}</body></html>'
        )
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)


def patch_explorer(examples, title="Where is the answer decided?"):
    """Build the explorer for a list of examples; display the object it returns.

    An example is a dict: `clean` and `corrupted`, two sentences; `answers`, the words they lead to;
    `maps`, a dict with "encoder", "decoder" and "lens", each of `rows` (names), `columns` (words)
    and `cells`, a row of [number, word] a name. `studies.following.explored` makes one. Raises
    ValueError for no examples, and where names, words and cells disagree.
    """
    if not examples:
        raise ValueError("patch_explorer needs at least one example, got none")
    for index, example in enumerate(examples):
        for name in MAPS:
            part = example["maps"][name]
            widths = {len(row) for row in part["cells"]}
            if len(part["cells"]) != len(part["rows"]) or widths != {len(part["columns"])}:
                raise ValueError(
                    f"example {index}, map {name!r}: {len(part['cells'])} rows of {sorted(widths)} "
                    f"cells for {len(part['rows'])} names and {len(part['columns'])} words"
                )
    return PatchExplorer(examples, title)


def _still(example):
    """The encoder's map as a table, colours and numbers."""
    part = example["maps"]["encoder"]
    head = "".join(f'<th scope="col">{html.escape(word)}</th>' for word in part["columns"])
    lines = []
    for name, row in reversed(list(zip(part["rows"], part["cells"], strict=True))):
        cells = "".join(
            f'<td style="background:{to_hex(ATTENTION(min(max(value, 0), 1)))};'
            f'color:{"#ffffff" if value > 0.55 else "#16202b"}">{cell_text(value)}</td>'
            for value, _ in row
        )
        lines.append(f'<tr><th scope="row">{html.escape(name)}</th>{cells}</tr>')
    return (
        f"<table><tr><td></td>{head}</tr>{''.join(lines)}</table>"
        f"<p>One vector of the run on “{html.escape(example['clean'])}” put into the run on "
        f"“{html.escape(example['corrupted'])}”: 0 is the second's answer, 1 the first's. Trust or "
        "re-run this notebook to explore the others.</p>"
    )


@cache
def _asset(name):
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
