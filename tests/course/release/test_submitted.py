"""Of a notebook only what an answer needs is taken."""

from tinytf_course.release.submitted import answers_in

SETUP = "import torch\nimport os, math\nfrom torch.nn import functional as F\nwidth = 3\nx = f(2)"
LOOKUP = "def my_lookup(query, keys, values, temperature):\n    return {}\n\n\n"


def lookup(*cells):
    return next(answer for answer in answers_in(list(cells), "05") if answer.id == "05.1")


def test_an_answer_brings_the_definitions_that_it_names_and_no_more():
    helper = "print('loud')\ndef soft(z):\n    return z.softmax(math.pi)\n\ndef other(): pass"
    cell = LOOKUP.format("soft(width * keys @ query) @ values") + 'check("05.1", my_lookup)'
    found = lookup(SETUP, helper, "while True: pass", cell, "width = 4")
    text = "\n".join(found.statements)
    assert "import os, math" in text
    assert "def soft" in text
    assert "width = 3" in text
    for left in ("check", "loud", "while", "other", "functional", "import torch\n", "f(2)", "= 4"):
        assert left not in text, left


def test_the_last_definition_counts_and_what_is_not_there_is_said():
    first, last = LOOKUP.format(1), LOOKUP.format(2)
    assert "return 2" in lookup(first, last).statements[0]
    assert lookup("x = 1").problem == "there is no `my_lookup`"
    assert lookup(first, "def my_lookup(:\n  x").problem == "its cell does not compile"
    assert lookup("def (", first).problem == ""


def test_answers_that_call_the_package_are_named():
    weights = "from tinytf.attention import attention_weights as w"
    assert lookup(weights, LOOKUP.format("w(query, keys)")).borrows == (
        "tinytf.attention.attention_weights",
    )
    inside = "def my_lookup(*a):\n    import tinytf.attention\n    return tinytf.attention.x"
    assert lookup(inside).borrows == ("tinytf.attention",)
    assert lookup(weights, LOOKUP.format("query")).borrows == ()
    assert lookup("from tinytf_course import check", LOOKUP.format("check")).borrows == ()
