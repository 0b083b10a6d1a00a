"""The saved form of a notebook: nothing in it is drawn at random or belongs to one machine."""

import json
import re

from tinytf_course.pictures import small

WIDGETS, VIEW = (
    "application/vnd.jupyter.widget-state+json",
    "application/vnd.jupyter.widget-view+json",
)
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
_REFERENCE = re.compile(r"IPY_MODEL_([^\"]+)")
# What editors and runs leave in a cell's metadata and a notebook's.
_TRACES = {"lines_to_next_cell", "execution", "ExecuteTime", "collapsed", "scrolled", "trusted"}
_TRACES |= {"colab", "outputId", "vscode", "pycharm", "jupytext", "toc", "varInspector"}


def tidy(notebook):
    """Bring a notebook (as nbformat reads it) into the form in which it is saved; idempotent.

    Kernel and language are named without their versions; traces of editors and runs go, tags and
    what else a person put there stays; text that came in pieces is joined; pictures are small;
    widgets are named after the cell that shows them. Cells need their ids first.
    """
    metadata = notebook["metadata"]
    state = metadata.get("widgets", {}).get(WIDGETS, {}).get("state", {})
    own = {k: v for k, v in metadata.items() if k not in _TRACES and k != "widgets"}
    for cell in notebook["cells"]:
        cell["metadata"] = {k: v for k, v in cell["metadata"].items() if k not in _TRACES}
        if cell["cell_type"] == "code":
            cell["outputs"] = _joined(cell["outputs"])
    metadata.clear()
    metadata.update(own, kernelspec=dict(_KERNEL), language_info={"name": "python"})
    if state:
        named = name_widgets(notebook["cells"], state)
        metadata["widgets"] = {
            WIDGETS: {"state": named, "version_major": 2, "version_minor": 0},
        }
    notebook["nbformat"], notebook["nbformat_minor"] = 4, 5
    return notebook


def name_widgets(cells, state):
    """Rename the widgets in `state`, and where outputs show them: `<cell id>-1`, `-2`, ...

    A widget's name follows from the first cell that shows it and from its place there. Widgets
    that no output leads to have no place in a saved notebook, and are left out. Returns the state
    under the new names.
    """
    names = {}
    for cell in cells:
        shown = [output["data"][VIEW] for output in _with_view(cell)]
        fresh = []
        for view in shown:
            fresh += [name for name in _reached(view.get("model_id"), state) if name not in names]
            names |= {name: f"{cell['id']}-{k}" for k, name in enumerate(fresh, start=1)}
            view["model_id"] = names.get(view.get("model_id"), view.get("model_id"))
    text = json.dumps({name: state[name] for name in names}, ensure_ascii=False)
    text = _REFERENCE.sub(lambda found: f"IPY_MODEL_{names.get(found[1], found[1])}", text)
    return {names[name]: model for name, model in json.loads(text).items()}


def _reached(name, state):
    """A widget and those it refers to, depth first, each once."""
    order, waiting = [], [name]
    while waiting:
        name = waiting.pop()
        if name in order or name not in state:
            continue
        order.append(name)
        text = json.dumps(state[name], sort_keys=True)
        waiting += reversed(_REFERENCE.findall(text))
    return order


def _with_view(cell):
    return [output for output in cell.get("outputs", []) if VIEW in output.get("data", {})]


def _joined(outputs):
    """Outputs without the seams of streams, which depend on when a kernel sent what."""
    joined = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last and output["output_type"] == "stream" and last.get("name") == output["name"]:
            last["text"] += output["text"]
        else:
            joined.append(output)
        data = output.get("data", {})
        if "image/png" in data:
            data["image/png"] = small(data["image/png"])
    return joined
