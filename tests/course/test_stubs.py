"""A chapter's build copy: what becomes a stub, and what a stub asks."""

import pytest
from test_building import PAGE, chapter, notebook

from tinytf_course import stubs
from tinytf_course.stubs import build_copy


def test_only_the_last_definition_before_it_graduates_becomes_a_stub():
    how, *cells = build_copy(notebook(*PAGE))["cells"]
    assert "What you are to write, in this order: `gelu`." in "".join(how["source"])
    assert "".join(cells[1]["source"]) == PAGE[1]
    assert "".join(cells[3]["source"]) == PAGE[3]
    stub = "".join(cells[2]["source"])
    assert "raise NotImplementedError" in stub
    assert "erf" not in stub
    assert "Hendrycks and Gimpel" in stub  # the package's description
    assert stub.endswith('gelu = built(gelu, "tinytf.feedforward")')


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Return it. Raises ValueError if a.b is 3.5. Source: X.", "Return it. Source: X."),
        ("Return it.\n\nShapes.\n\nRaises ValueError for\nrank 3.", "Return it.\n\nShapes."),
        ("Raises a number to a power.", "Raises a number to a power."),
        ("It raises the price.", "It raises the price."),
    ],
)
def test_errors_are_not_asked_of_the_reader(said, asked):
    assert stubs._asked(said) == asked


def test_no_stub_of_a_chapter_promises_an_error():
    cells = build_copy(chapter("05"))["cells"]
    made = ["".join(cell["source"]) for cell in cells if "= built(" in "".join(cell["source"])]
    assert len(made) > 2
    assert not any("Raises" in stub for stub in made)


def test_the_copy_has_no_outputs_and_leaves_the_chapter_as_it_was():
    before = chapter("05")
    cells = build_copy(before)["cells"]
    assert before == chapter("05")
    assert not any(cell.get("outputs") for cell in cells)
