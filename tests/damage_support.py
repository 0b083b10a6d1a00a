"""Notebooks that something went wrong with: a copy's JSON is broken in one of many ways, by seed.

`damage(notebook, random)` gives the bytes of a broken copy. What a learner wrote holds a MARK each.
"""

import json
from copy import deepcopy

MARK = "# my own work, number "
_ODD = (None, 3, -1.5, True, "text", [], {}, [1], [[]], {"a": []}, "\ud800", "\x1b[2J")


def deep(levels):
    """A list in a list in a list, as JSON."""
    return "[" * levels + "]" * levels


def damage(notebook, random):
    """The bytes of a broken copy of `notebook`, and what was done to it in a word."""
    name = random.choice(sorted(_WAYS))
    broken = _WAYS[name](deepcopy(notebook), random)
    if isinstance(broken, dict | list):
        broken = json.dumps(broken, ensure_ascii=random.random() < 0.5, indent=1)
    if isinstance(broken, str):
        broken = broken.encode("utf-8", "backslashreplace")
    return broken, name


def _cell_odd(notebook, random):
    cells = notebook["cells"]
    cells[random.randrange(len(cells))] = random.choice(_ODD)
    return notebook


def _entry_odd(notebook, random):
    cell = random.choice(notebook["cells"])
    cell[random.choice(["source", "metadata", "outputs", "id", "cell_type"])] = random.choice(_ODD)
    return notebook


def _entry_missing(notebook, random):
    cell = random.choice(notebook["cells"])
    cell.pop(random.choice(sorted(cell)))
    return notebook


def _source_odd(notebook, random):
    random.choice(notebook["cells"])["source"] = [random.choice(_ODD) for _ in range(3)]
    return notebook


def _output_odd(notebook, random):
    output = {"output_type": "display_data", "data": {"text/plain": "✓ 05-a  you said: 1"},
              "metadata": {"check": {"id": "05.1", "status": "passed"}}}  # fmt: skip
    where = random.choice([output, output["data"], output["metadata"], output["metadata"]["check"]])
    where[random.choice(sorted(where))] = random.choice(_ODD)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    random.choice(code)["outputs"] = [random.choice([output, [output], random.choice(_ODD)])]
    return notebook


def _top_odd(notebook, random):
    notebook[random.choice(["cells", "metadata", "nbformat"])] = random.choice(_ODD)
    return notebook


def _ours_odd(notebook, random):
    ours = notebook["metadata"]["tinytf"]
    where = random.choice([notebook["metadata"], ours, ours["handed_out"]])
    for name in random.sample(sorted(where), min(2, len(where))):
        where[name] = random.choice(_ODD)
    return notebook


def _deep(notebook, random):
    where = random.choice(['"metadata": {', '"cells": ['])
    text, levels = json.dumps(notebook), random.choice([60, 150, 400, 2000, 100_000])
    inner = deep(levels) + ", " if "[" in where else f'"deep": {deep(levels)}, '
    return text.replace(where, where + inner, 1)


def _cut(notebook, random):
    text = json.dumps(notebook, indent=1)
    return text[: random.randrange(len(text))]


def _bytes(notebook, random):
    data = bytearray(json.dumps(notebook, ensure_ascii=False, indent=1).encode())
    for _ in range(random.randint(1, 3)):
        data[random.randrange(len(data))] = random.randrange(256)
    return bytes(data)


def _merged(notebook, random):
    """As git leaves it: both versions of some lines."""
    lines = json.dumps(notebook, indent=1).splitlines()
    at = random.randrange(len(lines) - 5)
    part = lines[at : at + random.randint(1, 5)]
    return "\n".join([*lines[:at], "<<<<<<< HEAD", *part, "=======", *part, ">>>>>>> theirs",
                      *lines[at + len(part) :]])  # fmt: skip


def _encoded(notebook, random):
    text = json.dumps(notebook, ensure_ascii=False)
    return text.encode(random.choice(["utf-16", "utf-32", "utf-8-sig"]))


def _same_ids(notebook, random):
    cells = notebook["cells"]
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(cells))
        twin = deepcopy(cells[at])
        if random.random() < 0.7:
            twin["source"] = [f"x = 1  {MARK}{random.randrange(10**9)}\n"]
        cells.insert(random.randrange(len(cells)), twin)
    return notebook


def _no_ids(notebook, random):
    some = random.choice([1.0, 1.0, 0.5])
    for cell in notebook["cells"]:
        if random.random() < some:
            cell.pop("id", None)
    return notebook | {"nbformat_minor": 4}


def _shuffled(notebook, random):
    random.shuffle(notebook["cells"])
    return notebook


def _ids_swapped(notebook, random):
    first, second = random.sample(notebook["cells"], 2)
    first["id"], second["id"] = second["id"], first["id"]
    return notebook


def _foreign(notebook, random):
    return random.choice(["", "{}", "[]", "null", "3", '"text"', '{"worksheets": []}', "NaN", "\0",
                          '{"cells": {}}', "1" * 5000, '{"cells": [], "cells": []}'])  # fmt: skip


def _shell(notebook, random):
    lines = "\n".join(["!ls"] * random.choice([3, 501, 3000]) + ["x = 1"] * 3000)
    notebook["cells"].append(
        {"id": "sh", "cell_type": "code", "metadata": {}, "outputs": [], "source": lines}
    )
    return notebook


_WAYS = {name[1:]: way for name, way in list(globals().items())
         if name.startswith("_") and callable(way)}  # fmt: skip
