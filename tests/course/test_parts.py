"""Every definition that graduates has tests of a reader's version, and the package passes them."""

import ast
import inspect
import json
import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from tinytf.embedding import TiedOutput
from tinytf.positional import LearnedPositionalEncoding, PositionalEncoding, sinusoidal_encoding
from tinytf.text.words import WordTokenizer
from tinytf_course.building import graded
from tinytf_course.parts import Part, arrived, parts, without_parts
from tinytf_course.stubs import graduations, part_of

CHAPTERS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_graduation_is_a_part_or_needs_none(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and "graduate(" in source:
            for name, target in graduations(ast.parse(source)):
                path = part_of(name, target)
                assert path in parts() or without_parts(path)


@pytest.mark.parametrize("target", parts())
def test_the_package_passes(target):
    part = parts()[target]
    result = graded(part, part.package)
    assert result.passed, result.text


@pytest.mark.parametrize("target", parts())
def test_a_stub_is_not_yet(target):
    def stub(*arguments, **named):
        raise NotImplementedError

    assert graded(parts()[target], stub).not_yet


def wrong_scale(q, k, mask=None):
    scores = q @ k.transpose(-2, -1) / q.size(-1)
    scores = scores if mask is None else scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)
    return weights if mask is None else weights.masked_fill(~mask, 0.0)


def uniform_where_all_is_hidden(q, k, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores if mask is None else scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1)


def biased_variance(x, weight, bias, eps=1e-5):
    variance = x.var(dim=-1, keepdim=True)
    return (x - x.mean(dim=-1, keepdim=True)) / torch.sqrt(variance + eps) * weight + bias


def eps_outside(x, weight, bias, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    deviation = (x - mean).square().mean(dim=-1, keepdim=True).sqrt()
    return (x - mean) / (deviation + eps) * weight + bias


class OneMap(torch.nn.Module):
    """A feed-forward network that forgot its activation."""

    def __init__(self, d_model, d_ff, dropout=0.0, activation=F.relu):
        super().__init__()
        self.w_1, self.w_2 = torch.nn.Linear(d_model, d_ff), torch.nn.Linear(d_ff, d_model)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, x):
        return self.w_2(self.dropout(self.w_1(x)))


def float32_angles(max_len, d_model):
    angle = torch.arange(max_len)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d_model]


class Unrefused(torch.nn.Module):
    """Positions that are added where the table has too few rows, too."""

    def __init__(self, d_model, max_len, dropout=0.1):
        super().__init__()
        self.register_buffer("table", sinusoidal_encoding(max_len, d_model), persistent=False)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, x, start=0):
        return self.dropout(x + self.table[start : start + x.size(1)])


class InItsOwnWords(Unrefused):
    """Positions that are refused in other words than the package's."""

    def forward(self, x, start=0):
        if start + x.size(1) > len(self.table):
            raise ValueError("no row left")
        return super().forward(x, start)


class OutOfOrder(LearnedPositionalEncoding):
    """Learned positions that can't be asked for by number."""

    def forward(self, x, start=0, positions=None):
        return super().forward(x, start)


class AlwaysDrops(PositionalEncoding):
    """Positions whose dropout goes on after training."""

    def forward(self, x, start=0):
        return F.dropout(x + self.table[start : start + x.size(1)], self.dropout.p, True)


def bias_rounded_early(slopes, length, keys=None):
    """Places rounded before they are subtracted: in half precision 2,049 is 2,048."""
    place = torch.arange(keys or length, device=slopes.device).to(slopes.dtype)
    return -slopes[:, None, None] * (place[len(place) - length :, None] - place).abs()


class LeftBehind(TiedOutput):
    """A model whose two ends come apart where it is made anew."""

    def _apply(self, fn, recurse=True):
        return torch.nn.Module._apply(self, fn, recurse)


class TiedByConfig(TiedOutput):
    """A model that is tied where it moves, although it was not before."""

    def _apply(self, fn, recurse=True):
        torch.nn.Module._apply(self, fn, recurse)
        self.tie()
        return self


class Unhooked(TiedOutput):
    """A model whose two ends come apart where a state's own tensors are put in."""

    def __init__(self):
        torch.nn.Module.__init__(self)


class NoTokens:
    """A word tokenizer that keeps its list to itself."""

    def __init__(self, words):
        self._tokenizer = WordTokenizer(words)

    def __len__(self):
        return len(self._tokenizer)

    def encode(self, text):
        return self._tokenizer.encode(text)

    def decode(self, ids):
        return self._tokenizer.decode(ids)


@pytest.mark.parametrize(
    ("target", "answer", "where"),
    [
        ("tinytf.embedding.TiedOutput", LeftBehind, "every tensor is made anew"),
        ("tinytf.embedding.TiedOutput", TiedByConfig, "it was not tied"),
        ("tinytf.embedding.TiedOutput", Unhooked, "a state's own tensors are put in"),
        ("tinytf.text.words.WordTokenizer", NoTokens, "counted and listed"),
        ("tinytf.positional.sinusoidal_encoding", float32_angles, "need float64"),
        ("tinytf.positional.PositionalEncoding", Unrefused, "two words come"),
        ("tinytf.positional.LearnedPositionalEncoding", OutOfOrder, "a row of its own"),
        ("tinytf.positional.PositionalEncoding", AlwaysDrops, "in eval mode"),
        ("tinytf.relative.alibi_bias", bias_rounded_early, "keys in the thousands"),
        ("tinytf.attention.attention_weights", wrong_scale, "one query meets two keys"),
        ("tinytf.attention.attention_weights", uniform_where_all_is_hidden, "all of them"),
        ("tinytf.norm.layer_norm", biased_variance, "there is one token"),
        ("tinytf.norm.layer_norm", eps_outside, "eps is large"),
        ("tinytf.feedforward.FeedForward", OneMap, "it reads two sentences"),
    ],
)
def test_a_wrong_version_is_told_where_it_fails(target, answer, where):
    result = graded(parts()[target], answer)
    assert result.failed
    assert any(where in says for says, _ in result.problems), result.text


def test_an_error_may_speak_in_its_own_words():
    result = graded(parts()["tinytf.positional.PositionalEncoding"], InItsOwnWords)
    assert result.passed, result.text


def test_a_version_with_other_names_of_weights_is_told_them():
    class Renamed(torch.nn.Module):
        def __init__(self, d_model, d_ff, dropout=0.0, activation=F.relu):
            super().__init__()
            self.up, self.w_2 = torch.nn.Linear(d_model, d_ff), torch.nn.Linear(d_ff, d_model)

        def forward(self, x):
            return self.w_2(self.up(x).relu())

    result = graded(parts()["tinytf.feedforward.FeedForward"], Renamed)
    assert "up.weight" in result.text
    assert "w_1.weight" in result.text


def test_a_gradient_that_does_not_arrive_is_said():
    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    assert arrived(x.detach() * 2, x) == {"input 1": "no gradient"}
    assert arrived(x * y.detach(), x, y)["input 2"] == "no gradient"


def test_scripts_begin_with_a_case_and_are_words():
    for part in parts().values():
        assert isinstance(part, Part)
        assert all(words == words.strip() and not words[0].isupper() for words in part.scripts)
        assert inspect.isclass(part.package) or inspect.isfunction(part.package)
