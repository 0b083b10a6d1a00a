"""Service lines: what the mark sets aside, and how it comes back in build mode."""

import ast
import re
import textwrap

import pytest
import torch
from torch import nn

from tinytf.transformer import EncoderDecoder, Transformer, TransformerConfig
from tinytf_course.graduate import forms
from tinytf_course.parts import parts
from tinytf_course.places import PACKAGE
from tinytf_course.service import Idea, marked, names_served, served

# How many lines bear the mark. It may only fall: before a mark comes a simpler definition.
MARKS = {
    "attention.py": 3, "blocks.py": 8, "gpt.py": 10, "grouped_query.py": 2, "llama.py": 1,
    "transformer.py": 3,
}  # fmt: skip


def idea(text):
    source = textwrap.dedent(text).strip()
    return Idea(ast.parse(source).body[0], source)


def test_the_package_has_these_marks_and_no_more():
    found = {path: marked(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
    counts = {path.relative_to(PACKAGE).as_posix(): len(lines) for path, lines in found.items()}
    assert {path: count for path, count in counts.items() if count} == MARKS


@pytest.mark.parametrize("file", MARKS)
def test_every_mark_sets_something_aside_of_what_a_chapter_builds(file):
    text = (PACKAGE / file).read_text(encoding="utf-8")
    built = {target.rpartition(".")[2] for target in parts()}
    used = 0
    for node in ast.parse(text).body:
        if getattr(node, "name", None) in built:
            used += len(Idea(node, text).places)
    assert used == MARKS[file]


PAGE = '''
class Stack(
    Module,
    Movable,  # service
):
    """What it does."""

    def forward(
        self,
        x,
        mask=None,
        cache=None,  # service: what was kept
        *,
        scale=2.0,
        quick=False,  # service
    ):
        own, kept = cache or (None, None)  # service
        if quick:  # service
            x = fast(x)
        parts = iter(cache)  # service
        x = self.first(x, lambda y: self.attend(y, mask=mask, cache=own))
        for layer in self.layers:
            x = layer(x, mask, next(parts), kept[0] if kept else None)
        return x * scale  # a service that is no mark

    def new_cache(self):  # service
        """An empty one."""
        return []

    @property  # service
    def device(self):
        return self.where
'''
IDEA = '''
class Stack(Module):
    """What it does."""

    def forward(self, x, mask=None, *, scale=2.0):
        x = self.first(x, lambda y: self.attend(y, mask=mask))
        for layer in self.layers:
            x = layer(x, mask)
        return x * scale
'''
LINES = '''
Movable,
cache=None,
quick=False,
own, kept = cache or (None, None)
if quick:
    x = fast(x)
parts = iter(cache)
def new_cache(self):
    """An empty one."""
    return []
@property
def device(self):
    return self.where
'''


def test_what_is_left_is_the_idea():
    found = idea(PAGE)
    assert ast.unparse(found.node) == ast.unparse(ast.parse(IDEA).body[0])
    assert "\n".join(found.lines) == LINES.strip()
    assert found.parts == {
        "Stack": {"Movable"},
        "Stack.forward": {"cache", "quick"},
        "Stack.new_cache": None,
        "Stack.device": None,
    }


def test_a_definition_without_marks_is_its_idea():
    found = idea(re.sub("# service.*", "", PAGE))
    assert (found.lines, found.parts) == ([], {})
    assert ast.unparse(found.node) == ast.unparse(ast.parse(PAGE).body[0])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x = x + start", "start serves in f, in no marked line"),
        ("return g(start, x)", r"an argument that serves stands before others: g\(start, x\)"),
    ],
)
def test_a_name_that_serves_is_used_nowhere_else(line, message):
    with pytest.raises(ValueError, match=message):
        idea(f"def f(x):\n    start = 0  # service\n    {line}")


# build mode


class Frame(nn.Module):
    """Chapter 14's frame, as a reader writes it."""

    def forward(self, src, tgt):
        return self.output(self.decode(tgt, self.encode(src)))

    encode = EncoderDecoder.encode
    table = EncoderDecoder.table

    def decode(self, tgt, memory):
        self.calls = getattr(self, "calls", 0) + 1
        mask = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool).tril() & (tgt > 0)[:, None]
        x = self.positions(self.tgt_embedding(tgt))
        return self.decoder(x, memory.states, mask[:, None], memory.mask)


class Tied(Frame):
    def tie(self):
        self.output.weight = self.table


def model(frame):
    """A Transformer of this frame, with the weights of one seed."""
    torch.manual_seed(0)
    made = Transformer(TransformerConfig(9, 9, 8, 2, 2, 16, dropout=0.0))
    mine = frame()
    mine.config = made.config
    for name, part in made.named_children():
        setattr(mine, name, part)
    return mine, made


def test_the_service_is_added_to_what_a_reader_wrote():
    mine, made = model(served(Tied, EncoderDecoder))
    src, tgt = torch.tensor([[3, 4, 5]]), torch.tensor([[1, 6, 7]])
    torch.testing.assert_close(mine(src, tgt), made(src, tgt))
    assert mine.calls == 1
    memory, cache = mine.encode(src), mine.decoder.new_cache()
    steps = [mine.decode(tgt[:, t : t + 1], memory, cache) for t in range(3)]
    torch.testing.assert_close(torch.cat(steps, 1), made.decode(tgt, memory))
    assert mine.calls == 1  # with a cache it is the package that answers
    assert mine.decode(tgt, memory, None).shape == (1, 3, 8)
    assert mine.calls == 2
    assert mine.device == torch.device("cpu")
    with pytest.raises(TypeError, match="decode"):
        mine.decode(tgt)


def test_where_nothing_is_missing_a_version_stays_as_it_is():
    class Whole(EncoderDecoder):
        def decode(self, tgt, memory, cache=None):
            return super().decode(tgt, memory, cache)

    assert served(Whole, EncoderDecoder) is Whole
    assert served(Frame, nn.Linear) is Frame  # which has no service
    assert served(len, EncoderDecoder) is len
    again = served(Tied, EncoderDecoder)
    assert served(again, EncoderDecoder) is again


def test_what_is_not_asked_for_can_be_named():
    assert names_served(EncoderDecoder) == {"Movable", "cache"}
    idea_of, whole, lines = forms(EncoderDecoder)
    assert "cache" in whole
    assert "cache" not in idea_of
    assert len(lines) == 3
