"""Panels that move on a page: the states of a chapter's `explore` calls, drawn for the site.

A saved notebook holds one picture of a panel. To have the others, the chapter is run once more up
to its last panel; each panel then draws what `states` chooses, at most MOST_BYTES of it. What was
drawn is kept in the site and taken from there as long as the chapter and all that it may import
stay as they are.
"""

import base64
import functools
import hashlib
import html
import io
import json
import shutil
from pathlib import Path

from tinytf_course import build
from tinytf_course.notebooks import calls_in, source, tree
from tinytf_course.places import TREES, is_machinery
from tinytf_course.site.states import MOST, chosen, combinations

MOST_BYTES = 600_000  # of one panel, all its pictures together
_FACTS = "panels.json"


def panel_cells(chapter):
    """The ids of the cells that call `viz.explore`, in order."""
    return [
        cell["id"]
        for cell in chapter.code
        if list(calls_in(tree(source(cell)), "viz.explore")) and "id" in cell
    ]


def draw(chapter, folder, kept=None, note=lambda text: None):
    """Draw a chapter's panels in `folder`, or copy them from `kept`, where an earlier build did.

    Returns {cell id: what `record` wrote down}; nothing is run for a chapter without panels, and
    before one is run, `note` is told. Raises BuildError if the chapter does not run.
    """
    cells, folder = panel_cells(chapter), Path(folder)
    if not cells:
        return {}
    key = _key(chapter)
    if kept and _facts(kept).get("key") == key:
        shutil.copytree(kept, folder)
    else:
        note(f"{chapter.path.name}: its panels are drawn")
        folder.mkdir(parents=True, exist_ok=True)
        try:
            _run(chapter, cells, folder)
        except build.BuildError:
            shutil.rmtree(folder)  # half a chapter's panels
            raise
        panels = {cell: _facts(folder / cell) for cell in cells if _facts(folder / cell)}
        for cell in panels:
            (folder / cell / _FACTS).unlink()
        (folder / _FACTS).write_text(json.dumps({"key": key, "panels": panels}), encoding="utf-8")
    return _facts(folder)["panels"]


def record(explore, folder):
    """`explore`, which then draws the panel's other states as well, as pictures in `folder`.

    A file beside them says what the controls are called, which values they take, where they begin
    and whether they move together, and for each state its file, its size and its alt text, or why
    there is no picture.
    """

    @functools.wraps(explore)
    def recording(function, **controls):
        import torch

        explored = explore(function, **controls)
        with torch.random.fork_rng(devices=[]):  # what follows in the chapter draws as before
            facts = _drawn(explored, Path(folder))
        (Path(folder) / _FACTS).write_text(json.dumps(facts), encoding="utf-8")
        return explored

    return recording


def markup(facts, address):
    """The HTML of a panel whose pictures are at `address`: its first state, the others as data."""
    states = {tuple(state["at"]): state for state in facts["states"]}
    first = states[tuple(facts["start"])]
    wide, tall = (max(state.get(side, 0) for state in states.values())
                  for side in ("width", "height"))  # fmt: skip
    data = json.dumps({**facts, "address": address, "wide": wide}).replace("</", r"<\/")
    image = (
        f'<img src="{address}/{first["file"]}" alt="{html.escape(first["alt"])}" '
        f'width="{first["width"]}" height="{first["height"]}" loading="lazy">'
    )
    return (
        f'<div class="explored"><div class="figure" tabindex="0" style="--width: {wide}px">'
        f'<div class="stage" style="aspect-ratio: {wide} / {tall}">{image}</div></div>'
        f'<script type="application/json">{data}</script></div>'
    )


def _run(chapter, cells, folder):
    import nbformat

    notebook = nbformat.read(chapter.path, as_version=4)
    last = max(place for place, cell in enumerate(notebook.cells) if cell["id"] == cells[-1])
    notebook.cells = notebook.cells[: last + 1]
    for cell in notebook.cells:
        if cell["id"] in cells:
            where = str((folder / cell["id"]).absolute())
            cell.source = (
                "from tinytf_course.site.panels import record as _record\n"
                "_explore = viz.explore\n"
                f"viz.explore = _record(_explore, {where!r})\n"
                f"{cell.source.rstrip().rstrip(';')};\n"
                "viz.explore = _explore"
            )
    build.run(notebook, chapter.path.parent)


def _drawn(explored, folder):
    controls, handle = explored.controls, explored.handle
    explored.handle = None  # the notebook goes on showing the first picture
    start = {name: control.value for name, control in controls.items()}
    known, most, size = {}, MOST, MOST_BYTES + 1
    while size > MOST_BYTES:
        values, together = chosen(controls, most)
        begin, places = combinations(values, together, start)
        states = [tuple(values[name][k] for name, k in zip(values, place)) for place in places]
        for state in states:
            if state not in known:
                known[state] = _state(explored, dict(zip(values, state)))
        pictures = {known[state][0]["file"]: known[state][1] for state in states if known[state][1]}
        size = sum(map(len, pictures.values()))
        if size > MOST_BYTES and most == 1:
            raise ValueError(f"{len(states)} pictures take {size:,} bytes, over {MOST_BYTES:,}")
        most = max(1, min(len(states), most) * MOST_BYTES // size)
    explored.update()
    explored.handle = handle
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in pictures.items():
        (folder / name).write_bytes(data)
    return {
        "names": [control.description for control in controls.values()],
        "values": [[str(value) for value in values[name]] for name in values],
        "kinds": [_kind(values[name]) for name in values],
        "start": begin,
        "together": together,
        "states": [{"at": at, **known[state][0]} for at, state in zip(places, states)],
    }


def _state(explored, values):
    """Draw one state: what is known of its picture, and its bytes, or why there is none."""
    from PIL import Image

    from tinytf_course.pictures import small

    try:
        png = explored.update(**values)["image/png"]
    except Exception as error:  # what the notebook would show beside the controls
        return {"error": f"{type(error).__name__}: {error}"}, b""
    image, out = Image.open(io.BytesIO(base64.b64decode(small(png)))).convert("RGB"), io.BytesIO()
    image.save(out, "WEBP", lossless=True, method=6)
    data = out.getvalue()
    facts = {"file": f"{hashlib.sha256(data).hexdigest()[:16]}.webp",
             "alt": explored.about["image/png"]["alt"]}  # fmt: skip
    return {**facts, "width": image.width, "height": image.height}, data


def _kind(values):
    if len(values) == 1:
        return "fixed"
    if all(type(value) is bool for value in values):
        return "box"
    return "slider" if all(type(value) in (int, float) for value in values) else "choice"


def _facts(folder):
    path = Path(folder) / _FACTS
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _key(chapter):
    """What a chapter's pictures follow from: its own cells, and all code that it may import."""
    found = hashlib.sha256("\0".join(map(source, chapter.code)).encode())
    for name, folder in TREES.items():
        for path in sorted(folder.rglob("*.py")):
            module = ".".join([name, *path.relative_to(folder).with_suffix("").parts])
            if not is_machinery(module):
                found.update(path.read_bytes())
    return found.hexdigest()
