"""The saved form of a notebook: no random names, no traces of editors, no seams."""

import json

from tinytf_course.tidy import VIEW, WIDGETS, name_widgets, tidy


def stream(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": text}


def view(name):
    return {"output_type": "display_data", "data": {VIEW: {"model_id": name}}, "metadata": {}}


def notebook(cells, **metadata):
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}


def code(id, *outputs, **metadata):
    return {
        "cell_type": "code", "id": id, "source": "x", "metadata": metadata,
        "outputs": list(outputs), "execution_count": 1,
    }  # fmt: skip


def test_metadata_is_stable_and_what_a_person_put_there_stays():
    cell = code("a", tags=["varies"], lines_to_next_cell=2, execution={"t": 1}, jupyter={"x": 1})
    made = tidy(
        notebook(
            [cell],
            kernelspec={"name": "my-env"},
            language_info={"name": "python", "version": "3.11.7"},
            authors=["us"],
            vscode={"hash": "1"},
        )
    )
    assert cell["metadata"] == {"tags": ["varies"], "jupyter": {"x": 1}}
    assert made["metadata"] == {
        "authors": ["us"],
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)


def test_streams_are_joined_where_they_touch():
    outputs = [stream("a\n"), stream("b\n"), stream("c", "stderr"), view("w"), stream("d")]
    cell = code("a", *outputs)
    tidy(notebook([cell]))
    assert cell["outputs"] == [stream("a\nb\n"), stream("c", "stderr"), view("w"), stream("d")]


def saved(slider, layout, unseen, cell="scale"):
    """A notebook whose widgets were given these random names; the first sorts as they fall."""
    state = {
        slider: {"state": {"layout": f"IPY_MODEL_{layout}", "value": 3}},
        layout: {"state": {"width": "auto"}},
        unseen: {"state": {"layout": f"IPY_MODEL_{layout}"}},
    }
    return notebook([code("first"), code(cell, view(slider))], widgets={WIDGETS: {"state": state}})


def test_widgets_are_named_after_the_cell_that_shows_them():
    one, other = tidy(saved("1f", "2e", "3d")), tidy(saved("zz", "0a", "1b"))
    assert json.dumps(one) == json.dumps(other)
    assert one["metadata"]["widgets"][WIDGETS]["state"] == {
        "scale-1": {"state": {"layout": "IPY_MODEL_scale-2", "value": 3}},
        "scale-2": {"state": {"width": "auto"}},
    }
    assert one["cells"][1]["outputs"] == [view("scale-1")]


def test_tidy_is_idempotent():
    once = tidy(saved("1f", "2e", "3d"))
    assert tidy(json.loads(json.dumps(once))) == once


def test_a_widget_shown_twice_keeps_its_first_name():
    cells = [code("a", view("x")), code("b", view("y"), view("x"))]
    state = {"x": {"n": 1}, "y": {"n": 2}}
    assert name_widgets(cells, state) == {"a-1": {"n": 1}, "b-1": {"n": 2}}
    assert cells[1]["outputs"] == [view("b-1"), view("a-1")]


def test_a_view_of_a_widget_that_was_not_saved_is_left():
    cells = [code("a", view("gone"))]
    assert name_widgets(cells, {}) == {}
    assert cells[0]["outputs"] == [view("gone")]
