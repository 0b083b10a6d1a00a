"""The report: what a chapter asks of its reader, counted on small notebooks."""

import json

import pytest

from tinytf_course.notebooks import Notebook
from tinytf_course.reading import borrowed, code_lines, prose, roads

PICTURE = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "AA=="}}


def code(source, *outputs, tags=()):
    return {
        "cell_type": "code", "id": "c", "metadata": {"tags": list(tags)}, "source": source,
        "outputs": list(outputs),
    }  # fmt: skip


def text(source):
    return {"cell_type": "markdown", "id": "t", "metadata": {}, "source": source}


@pytest.fixture
def write(tmp_path):
    def write(name, *cells):
        (tmp_path / name).write_text(json.dumps({"cells": cells}))
        return Notebook(tmp_path / name)

    return write


def test_words():
    assert prose("Two words. It isn't `code` $x^2$ $$y$$ [a link](http://x.y) é") == 8
    assert prose("One\n```python\ntwo three\n```\n<details>four</details> <b>five</b>") == 2
    assert prose("![a picture](attachment:a.png) word 12") == 1
    assert code_lines("x = 1\n\n# why\n    y = 2  # this\n") == 2


def test_main_and_side_roads(write):
    notebook = write(
        "03_a.ipynb",
        text("# 03 Title\n\nthree words here"),
        code("course_map(3)", PICTURE),
        code("x = 1\n" * 13, PICTURE),
        code("claim('03-1', 's', 1)\nclaim('03-2', 's', 1)\npredict('03-a', 'q', ['a'])"),
        code("viz.draw_heads(x)", PICTURE, PICTURE),
        code("def draw_mine(): ...\n\n\ndraw_mine()", PICTURE),
        code("plot()", PICTURE, tags=["drawing"]),
        text("## Further"),
        text("### Deeper\n\nsome more"),
        code("claim('03-3', 's', 1)"),
        text("## Exercises"),
        text("### Exercise 03.1 · masks\n\n★ · about 15 minutes\n\nWords that do not count."),
        code("def my_mask():\n    raise NotImplementedError\n\n\ncheck('03.1', my_mask)"),
    )
    main_road, side = roads(notebook)
    assert (main_road.words, side.words) == (5, 4)
    assert (main_road.lines, side.lines) == (1 + 13 + 3 + 1 + 2 + 1, 1)
    assert main_road.claims == {"03-1", "03-2"}
    assert side.claims == {"03-3"}
    assert (main_road.predictions, main_road.exercises) == ({"03-a"}, {"03.1"})
    assert (main_road.drawn, main_road.computed, side.computed) == (3, 2, 0)
    assert main_road.short == pytest.approx(6 / 7)
    assert main_road.density == pytest.approx(5 / 21)
    assert main_road.minutes == round(5 / 150 + 21 / 10 + 5 + 15)


def test_what_is_borrowed(write):
    three = write("03_a.ipynb", code("graduate(causal_mask, 'tinytf.masks')"))
    four = write(
        "04_b.ipynb",
        code(
            "import tinytf\nfrom tinytf.masks import causal_mask\nfrom tinytf.norm import rms_norm"
        ),
        code("from tinytf.attention import MultiHeadAttention, fused_attention"),
        code("tinytf.layer_norm(x)"),
        code("graduate(MultiHeadAttention, 'tinytf.attention')"),
    )
    six = write(
        "06_c.ipynb",
        code("graduate(layer_norm, 'tinytf.norm')\ngraduate(rms_norm, 'tinytf.norm')"),
        code("graduate(causal_mask, 'tinytf.masks')"),
    )
    found = borrowed(four, [six, three, four])
    assert found == {"rms_norm": "06", "MultiHeadAttention": "04", "layer_norm": "06"}
    assert borrowed(three, [three, four, six]) == {}
