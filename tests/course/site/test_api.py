"""The package's pages: everything that is offered, from its docstrings, without an import."""

import ast
import re

import pytest

from tinytf import attention
from tinytf_course.notebooks import readable
from tinytf_course.places import ROOT
from tinytf_course.site import api


@pytest.fixture(scope="module")
def pages():
    return api.pages(list(readable(ROOT / "notebooks", ["05", "07"])))


def test_the_top_level_and_each_room_have_a_page(pages):
    assert "# The package" in pages["api"]
    for name in ("attention", "transformer", "gpt"):
        assert f"## tinytf.{name}\n" in pages["api"]
    assert {"api_decoding", "api_training", "api_viz"} < set(pages)
    assert "[tinytf.decoding](api_decoding.md): From scores to text" in pages["api"]
    assert "## tinytf.decoding.search\n" in pages["api_decoding"]


def test_all_that_a_module_offers_is_there_with_its_words(pages):
    for name in attention.__all__:
        assert re.search(rf"{{py:(function|class)}} {name}\b", pages["api"])
    assert "{py:function} attention_weights(q, k, mask=None)\nCompute how much" in pages["api"]
    assert "MultiHeadAttention(d_model, num_heads, dropout=0.0, bias=True)" in pages["api"]
    assert "{py:method} forward(x, memory=None, mask=None, cache=None)" in pages["api"]
    assert "_check_widths" not in pages["api"]


def test_a_definition_leads_to_the_chapter_that_builds_it(pages):
    [about] = re.findall(r"\{py:function\} attention_weights\(.*?`{7}", pages["api"], flags=re.S)
    assert "Built in chapter [05](05_scaled_dot_product_attention.md)." in about


def test_a_docstring_is_prose_and_not_markup():
    text = "ids (B, T) -> <eos> of x_1, `a < b`; costs $5.\n\n>>> f(1)  # doctest: +SKIP\n2"
    assert api.prose(text) == (
        "ids (B, T) -\\> \\<eos\\> of x\\_1, `a < b`; costs \\$5.\n\n```pycon\n>>> f(1)\n2\n```"
    )


def test_names_that_cells_show_lead_to_the_pages():
    code = "<code>{}</code>"
    place = "tinytf.attention.attention_weights"
    assert api.linked(code.format(place)) == (
        f'<a href="api.html#{place}"><code>{place}</code></a>'
    )
    assert 'href="api_decoding.html#tinytf.decoding.search.greedy"' in api.linked(
        code.format("tinytf.decoding.search.greedy")
    )
    for other in ("tinytf.attention", "tinytf.attention._check_widths", "tinytf.masks.CAUSAL",
                  "tinytf.nowhere.at_all", "torch.nn.Linear"):  # fmt: skip
        assert api.linked(code.format(other)) == code.format(other)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("def f(a, b=1, *, c, d=(2,), **e): 'x'", "{py:function} f(a, b=1, *, c, d=(2,), **e)"),
        ("def f(*a, b=None): 'x'", "{py:function} f(*a, b=None)"),
        ("class C:\n def __init__(self, a=1): 'x'", "{py:class} C(a=1)"),
        ("class C:\n a: int\n b: str = 'x'", "{py:class} C(a, b='x')"),
        ("class C:\n @property\n def p(self): 'x'", "{py:property} p\n"),
        ("class C:\n @classmethod\n def load(cls, a): 'x'", "{py:method} load(a)"),
        ("class C:\n @staticmethod\n def s(a): 'x'", "{py:staticmethod} s(a)"),
    ],
)
def test_signatures(code, shown):
    assert shown in api._definition(ast.parse(code).body[0], "")
