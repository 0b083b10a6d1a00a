"""Stubs whose answer is random: any right way of drawing passes, and no wrong distribution."""

import dataclasses
import inspect
import itertools
import math
import random

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tinytf.attention import fused_attention
from tinytf.data.blocks import TextBlocks
from tinytf.decoding import sampling
from tinytf.decoding.sampling import Sampling
from tinytf.feedforward import FeedForward, SwiGLU
from tinytf.positional import PositionalEncoding
from tinytf.residual import PostNorm, PreNorm
from tinytf.training.masked_lm import Masked
from tinytf_course import stubs
from tinytf_course.building import graded
from tinytf_course.draws import AS_OFTEN, often
from tinytf_course.parts import parts

NOISE = "tinytf.training.denoising."


def uniform(n, generator):
    """A whole number below n, by scaling."""
    return int(torch.rand((), generator=generator) * n)


def by_sorting(total, parts, generator):
    cuts = torch.rand(total - 1, generator=generator).argsort()[: parts - 1].tolist()
    edges = [0, *sorted(cut + 1 for cut in cuts), total]
    return [b - a for a, b in itertools.pairwise(edges)]


def by_rejection(total, parts, generator):
    while True:
        cuts = {1 + uniform(total - 1, generator) for _ in range(parts - 1)}
        if len(cuts) == parts - 1:
            edges = [0, *sorted(cuts), total]
            return [b - a for a, b in itertools.pairwise(edges)]


def greedy_cuts(total, parts, generator):
    """Each length alike, of what is left: the first ones are too long."""
    lengths = []
    for after in range(parts - 1, 0, -1):
        lengths.append(1 + uniform(total - sum(lengths) - after, generator))
    return [*lengths, total - sum(lengths)]


def never_last_cut(total, parts, generator):
    if parts in (1, total):
        return by_sorting(total, parts, generator)
    return [*by_sorting(total - 1, parts, generator)[:-1], 0]


def evenly(total, parts, generator):
    return [total // parts + (i < total % parts) for i in range(parts)]


def inverse(logits, generator=None):
    sums = logits.double().softmax(dim=-1).cumsum(dim=-1)
    u = torch.rand(len(logits), 1, generator=generator, dtype=torch.float64) * sums[:, -1:]
    return torch.searchsorted(sums, u, right=True)[:, 0]


def gumbel(logits, generator=None):
    u = torch.rand(logits.shape, generator=generator, dtype=torch.float64).clamp_min(1e-300)
    return (logits - (-u.log()).log()).argmax(dim=-1)


def row_by_row(logits, generator=None):
    draw = (torch.multinomial(row.softmax(-1), 1, generator=generator) for row in logits.float())
    return torch.cat(list(draw))


def of_exponentials(logits, generator=None):
    return torch.multinomial(logits.float().exp(), 1, generator=generator)[:, 0]


def never_quite_zero(logits, generator=None):
    probs = logits.float().softmax(dim=-1) + 1e-4
    return torch.multinomial(probs, 1, generator=generator)[:, 0]


def likeliest(logits, generator=None):
    return logits.argmax(dim=-1)


def next_one(logits, generator=None):
    return (inverse(logits, generator) + 1).clamp(max=logits.size(1) - 1)


def half_precision_sums(logits, generator=None):
    return inverse(logits, generator).float()


def bernoulli_mask(ids, mask_id, generator, share=0.3):
    hit = torch.bernoulli(torch.full(ids.shape, float(share)), generator=generator).bool()
    return ids.masked_fill(hit, mask_id)


def other_side_mask(ids, mask_id, generator, share=0.3):
    return torch.where(1 - torch.rand(len(ids), generator=generator) <= share, mask_id, ids)


def looped_mask(ids, mask_id, generator, share=0.3):
    hit = [torch.rand((), generator=generator) < share for _ in ids]
    return torch.tensor([mask_id if h else int(i) for h, i in zip(hit, ids, strict=True)])


def exactly_share(ids, mask_id, generator, share=0.3):
    count = round(share * len(ids))
    hit = torch.randperm(len(ids), generator=generator)[:count]
    return ids.index_fill(0, hit, mask_id)


def fixed_share(ids, mask_id, generator, share=0.3):
    return bernoulli_mask(ids, mask_id, generator, 0.3 if 0 < share < 1 else share)


def tokens_masked(raised=0.0, kind=Masked):
    """BERT's masking by `bernoulli`, with a share that may be raised, in a result of this kind."""

    def version(ids, mask_id, generator, share=0.15, masked=0.8, swapped=0.1):
        def hit(p):
            return torch.full(ids.shape, float(p)).bernoulli(generator=generator).bool()

        chosen = hit(min(share * (1 + raised), 1)) & (ids > 2)
        hidden = chosen & hit(masked)
        swap = chosen & ~hidden & hit(swapped / (1 - masked) if masked < 1 else 0)
        words = torch.randint(3, mask_id, ids.shape, generator=generator)
        return kind(torch.where(swap, words.to(ids), ids.masked_fill(hidden, mask_id)), chosen)

    return version


def bernoulli_delete(ids, generator, share=0.3):
    kept = [int(i) for i in ids if torch.rand((), generator=generator) >= share]
    return ids.new_tensor(kept or [int(ids[uniform(len(ids), generator)])])


def delete_and_keep_first(ids, generator, share=0.3):
    kept = ids[torch.rand(len(ids), generator=generator) >= share]
    return kept if len(kept) else ids[:1]


def delete_again(ids, generator, share=0.3):
    while share < 1:
        kept = ids[torch.rand(len(ids), generator=generator) >= share]
        if len(kept):
            return kept
    return bernoulli_delete(ids, generator, share)


def delete_all(ids, generator, share=0.3):
    return ids[torch.rand(len(ids), generator=generator) >= share]


def roll_scaled(ids, generator):
    return ids.roll(-uniform(len(ids), generator))


def roll_by_order(ids, generator):
    return ids.roll(int(torch.randperm(len(ids), generator=generator)[0]))


def joined_ends(ids, generator):
    at = torch.rand(len(ids), generator=generator).argmax()
    return torch.cat([ids[at:], ids[:at]])


def reversed_ends(ids, generator):
    at = uniform(len(ids), generator)
    return torch.cat([ids[at:], ids[:at].flip(0)])


def edited(right, edit):
    """A right way to draw with one change of its code, `old => new`."""
    source, (old, new) = inspect.getsource(right), edit.split(" => ")
    assert source.count(old) == 1, (right.__name__, old)
    made = dict(globals())
    exec(source.replace(old, new), made)
    return made[right.__name__]


ROLL = "uniform(len(ids), generator)"
MASK = "1 - torch.rand(len(ids), generator=generator) <= share"
CUTS = "torch.rand(total - 1, generator=generator).argsort()[: parts - 1].tolist()"
RIGHT = {
    NOISE + "cut_at_random": [by_sorting, by_rejection],
    "tinytf.decoding.sampling.sample": [inverse, gumbel, row_by_row],
    NOISE + "mask_words": [bernoulli_mask, other_side_mask, looped_mask],
    NOISE + "delete_words": [bernoulli_delete],
    NOISE + "rotate_document": [roll_scaled, roll_by_order, joined_ends],
}
WRONG = {
    NOISE + "cut_at_random": [
        greedy_cuts, never_last_cut, evenly,
        (by_sorting, "generator=generator => generator=None"),
        (by_sorting, "generator=generator => "
         "generator=torch.Generator().manual_seed(generator.initial_seed())"),
        (by_sorting, f"{CUTS} => [uniform(total - 1, generator) for _ in range(parts - 1)]"),
    ],
    "tinytf.decoding.sampling.sample": [
        of_exponentials, likeliest, next_one, half_precision_sums, never_quite_zero,
        (inverse, "len(logits), 1 => 1, 1"),  # one number for all rows
        (inverse, "logits.double() => (1.2 * logits).double()"),
        (inverse, "generator=generator => generator=None"),
    ],
    NOISE + "mask_words": [
        exactly_share, fixed_share,
        (other_side_mask, f"{MASK} => torch.rand(len(ids), generator=generator) >= share"),
        (other_side_mask, f"{MASK} => torch.rand(1, generator=generator) < share"),
        (other_side_mask, f"{MASK} => torch.randn(len(ids), generator=generator).abs() < share"),
    ],
    NOISE + "delete_words": [delete_and_keep_first, delete_again, delete_all],
    NOISE + "rotate_document": [
        reversed_ends,
        (roll_scaled, f"{ROLL} => 1 + uniform(max(len(ids) - 1, 1), generator)"),
        (roll_scaled, f"{ROLL} => uniform(max(len(ids) - 1, 1), generator)"),
        (roll_scaled, f"{ROLL} => uniform(min(len(ids), 5), generator)"),
        (roll_scaled, f"{ROLL} => uniform(len(ids), None)"),
    ],
}  # fmt: skip


def cases(listed):
    for target, versions in listed.items():
        for version in versions:
            made, edit = version if isinstance(version, tuple) else (version, "")
            name = f"{made.__name__}: {edit}" if edit else made.__name__
            yield pytest.param(target, edited(made, edit) if edit else made, id=name)


@pytest.mark.parametrize(("target", "version"), [*cases(RIGHT)])
def test_another_way_to_draw_passes(target, version):
    result = graded(parts()[target], version)
    assert result.passed, result.text


@pytest.mark.parametrize(("target", "version"), [*cases(WRONG)])
def test_another_distribution_is_refused(target, version):
    result = graded(parts()[target], version)
    assert result.failed, result.text


class Truthy(Sampling):
    """`if value:` where `is not None` is meant."""

    def __init__(self, **settings):
        super().__init__(**{name: value or None for name, value in settings.items()})


def of_its_own(x, p):
    """Dropout by a mask of one's own."""
    return x * (torch.rand_like(x) >= p) / (1 - p)


def version(base, **changed):
    """A class like the package's with other methods."""
    return type("Version", (base,), changed)


def hidden(m, x):
    """The hidden units of a feed-forward network, before any is dropped."""
    return m.activation(m.w_1(x))


def dropped(m, x):
    """Hidden units whose dropout is drawn in another way."""
    return of_its_own(hidden(m, x), m.dropout.p) if m.training else hidden(m, x)


def unscaled(m, x):
    """What stays is not doubled."""
    units = hidden(m, x)
    return units * (torch.rand_like(units) >= m.dropout.p) if m.training else units


def adds(m, x, sublayer):
    """A residual whose dropout is drawn in another way, in the right place."""
    said = sublayer(m.norm(x))
    return x + (of_its_own(said, m.dropout.p) if m.training else said)


def drops_whole_tokens(m, x, sublayer):
    return x + sublayer(m.norm(x)) * m.dropout(torch.ones_like(x[..., :1]))


def sums_then_norms(m, x, sublayer):
    said = sublayer(x)
    return m.norm(x + (of_its_own(said, m.dropout.p) if m.training else said))


def placed(m, x, start=0):
    m.dropout.eval()
    x = PositionalEncoding.forward(m, x, start)
    return of_its_own(x, m.dropout.p) if m.training else x


def drops_places(m, x, start=0):
    """Dropout of the positions alone."""
    return x + m.dropout(PositionalEncoding.forward(m, x, start) - x)


EVAL, UNITS = "it is in eval mode, and drops nothing", "of its units are dropped"
# (the definition, its class, another `forward`, what is said of it or None if it is right)
FORWARD = [
    ("feedforward", FeedForward, lambda m, x: m.w_2(F.dropout(hidden(m, x), m.dropout.p)), EVAL),
    ("feedforward", SwiGLU,
     lambda m, x: m.w_2(F.dropout(F.silu(m.w_1(x)) * m.w_3(x), m.dropout.p)), EVAL),
    ("feedforward", FeedForward,
     lambda m, x: m.w_2(F.dropout(hidden(m, x), m.dropout.p, m.training)), None),
    ("feedforward", FeedForward, lambda m, x: m.w_2(dropped(m, x)), None),
    ("feedforward", FeedForward, lambda m, x: m.w_2(m.activation(m.dropout(m.w_1(x)))), UNITS),
    ("feedforward", FeedForward, lambda m, x: m.dropout(m.w_2(hidden(m, x))), UNITS),
    ("feedforward", FeedForward, lambda m, x: m.w_2(unscaled(m, x)), UNITS),
    ("feedforward", FeedForward,  # one mask for all tokens
     lambda m, x: m.w_2(hidden(m, x) * m.dropout(torch.ones_like(hidden(m, x)[:1, :1]))), UNITS),
    ("residual", PreNorm, adds, None),
    ("residual", PreNorm, lambda m, x, sublayer: m.dropout(x + sublayer(m.norm(x))), ""),
    ("residual", PreNorm, drops_whole_tokens, ""),
    ("residual", PostNorm, sums_then_norms, None),
    ("residual", PostNorm, adds, ""),
    ("positional", PositionalEncoding, placed, None),
    ("positional", PositionalEncoding, drops_places, ""),
]  # fmt: skip


@pytest.mark.parametrize(("file", "base", "forward", "said"), FORWARD)
def test_dropout_is_judged_by_its_distribution(file, base, forward, said):
    made = version(base, forward=forward)
    result = graded(parts()[f"tinytf.{file}.{base.__name__}"], made)
    assert result.passed == (said is None), result.text
    assert said is None or said in result.text


def test_a_share_of_masked_tokens_is_met_and_its_result_has_names():
    part = parts()["tinytf.training.masked_lm.mask_tokens"]
    assert graded(part, tokens_masked()).passed
    for wrong in (0.05, -0.05):
        result = graded(part, tokens_masked(wrong))
        assert next(says for says, _ in result.problems) == "they are many"
    result = graded(part, tokens_masked(kind=lambda *both: both))
    assert [says for says, _ in result.problems] == ["its result's parts have names"]


def evenly_drawn(module):
    for part in module.modules():
        if isinstance(part, nn.Linear):
            bound = math.sqrt(6 / sum(part.weight.shape))
            with torch.no_grad():
                part.weight.copy_((2 * torch.rand(part.weight.T.shape).T - 1) * bound)
                part.bias = None if part.bias is None else nn.Parameter(0 * part.bias)


def of_inputs_only(module):
    evenly_drawn(module)
    for part in module.modules():
        if isinstance(part, nn.Linear):
            part.weight.data *= math.sqrt(sum(part.weight.shape) / part.weight.size(1) / 2)


def drops_by_hand(q, k, v, mask=None, dropout=0.0):
    """Fused attention whose dropout is drawn in another way."""
    if not dropout:
        return fused_attention(q, k, v, mask)
    eye = torch.eye(k.size(-2), dtype=q.dtype).expand(*k.shape[:-1], -1)
    return of_its_own(fused_attention(q, k, eye, mask), dropout) @ v


def drops_what_is_mixed(q, k, v, mask=None, dropout=0.0):
    mixed = fused_attention(q, k, v, mask)
    return of_its_own(mixed, dropout) if dropout else mixed


def drops_alike_in_heads(q, k, v, mask=None, dropout=0.0):
    if not dropout:
        return fused_attention(q, k, v, mask)
    eye = torch.eye(k.size(-2), dtype=q.dtype).expand(*k.shape[:-1], -1)
    weights = fused_attention(q, k, eye, mask)
    return weights * of_its_own(torch.ones_like(weights[:, :1]), dropout) @ v


def shuffled(drawn=lambda m, epoch: random.Random(f"{m.seed} {epoch}"), **changed):
    """`TextBlocks` whose epochs are drawn by Python's own generator."""

    def _epoch(m, epoch):
        order, draws = list(range(m.count)), drawn(m, epoch)
        draws.shuffle(order)
        return draws.randrange(len(m.ids) - m.count * m.length), order

    made = version(TextBlocks, _epoch=_epoch)
    return version(made, **{name: change(made) for name, change in changed.items()})


def epochs(change):
    """Another `_epoch`, made of the offset and the order that the right one gives."""
    return {"_epoch": lambda made: lambda m, epoch: change(made, m, *made._epoch(m, epoch))}


def says_the_same(made):
    def call(m, step):
        batch = made.__call__(m, step)
        return batch._replace(ids_out=batch.ids_in)

    return call


def with_replacement_in(made, m, at, order):
    return at, random.Random(at).choices(order, k=len(order))


BLOCKS = [
    (shuffled(), True),
    # the seed of an epoch is that of the one before in the next run, or the machine's
    (shuffled(lambda m, epoch: random.Random(m.seed + epoch)), False),
    (shuffled(lambda m, epoch: random.Random(f"{torch.initial_seed()} {m.seed} {epoch}")), False),
    # never moved; in order; one order for all epochs; an order for each offset
    (shuffled(**epochs(lambda made, m, at, order: (0, order))), False),
    (shuffled(**epochs(lambda made, m, at, order: (at, sorted(order)))), False),
    (shuffled(**epochs(lambda made, m, at, order: (at, made._epoch(m, 0)[1]))), False),
    (shuffled(**epochs(lambda made, m, at, order: (at, made._epoch(m, at)[1]))), False),
    (shuffled(**epochs(with_replacement_in)), False),
    (shuffled(__call__=says_the_same), False),
]


@pytest.mark.parametrize(
    ("target", "version", "right"),
    [
        ("attention.fused_attention", drops_by_hand, True),
        ("attention.fused_attention", drops_what_is_mixed, False),
        ("attention.fused_attention", drops_alike_in_heads, False),
        ("initialisation.xavier", evenly_drawn, True),
        ("initialisation.xavier", of_inputs_only, False),
        *(("data.blocks.TextBlocks", *blocks) for blocks in BLOCKS),
    ],
)
def test_what_is_drawn_is_judged_by_its_distribution(target, version, right):
    result = graded(parts()[f"tinytf.{target}"], version)
    assert result.passed == right, result.text


def swapped_at_random(ids, ends, generator):
    """The biased shuffle: each sentence changes places with any other."""
    last, sentences = [], []
    for token in ids.tolist():
        last.append(token)
        if token in ends:
            sentences.append(last)
            last = []
    sentences += [last] if last else []
    for i in range(len(sentences)):
        j = uniform(len(sentences), generator)
        sentences[i], sentences[j] = sentences[j], sentences[i]
    return torch.tensor(list(itertools.chain(*sentences)), dtype=ids.dtype)


def masked_by_kind(ids, mask_id, generator, share=0.3):
    """One draw for all places of a word."""
    hit = torch.rand(int(ids.max()) + 1, generator=generator) < share
    return ids.masked_fill(hit[ids.long()], mask_id)


def masked_list(ids, mask_id, generator, share=0.3):
    """A list in the place of a tensor."""
    drawn = torch.rand(len(ids), generator=generator).tolist()
    return [mask_id if one < share else token for one, token in zip(drawn, ids.tolist())]


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("permute_sentences", swapped_at_random),
        ("mask_words", masked_by_kind),
        ("mask_words", masked_list),
    ],
)
def test_what_an_attack_found_is_refused(name, version):
    assert graded(parts()[NOISE + name], version).failed


def test_a_setting_of_0_is_a_setting():
    result = graded(parts()["tinytf.decoding.sampling.Sampling"], Truthy)
    assert [says for says, _ in result.problems] == ["0 is set, which is not None"]


RULES = [field.name for field in dataclasses.fields(Sampling)]


def in_order(names, before=lambda logits, ids: (logits, ids)):
    """`Sampling` with its rules in this order, after what `before` makes of logits and ids."""

    class Ordered(Sampling):
        def __call__(self, logits, ids):
            logits, ids = before(logits, ids)
            for name in names:
                given = [ids] if name.endswith("penalty") else []
                if getattr(self, name) is not None:
                    logits = getattr(sampling, name)(logits, *given, getattr(self, name))
            return logits

    return Ordered


@pytest.mark.parametrize(("first", "later"), [*itertools.combinations(RULES, 2)])
def test_rules_in_another_order_are_refused(first, later):
    order = [name for name in RULES if name != later]
    order.insert(order.index(first), later)
    same = (first, later) == ("temperature", "top_k")  # a temperature changes no rank
    assert graded(parts()["tinytf.decoding.sampling.Sampling"], in_order(order)).passed == same


def test_rules_that_change_what_they_are_given_are_refused():
    for changed in (0, 1):

        def before(*given, changed=changed):
            kept = [one.clone() for one in given]
            given[changed].zero_()
            return kept

        part = parts()["tinytf.decoding.sampling.Sampling"]
        result = graded(part, in_order(RULES, before))
        assert [says for says, _ in result.problems] == ["what it is given stays as it is"]
        assert graded(part, part.package).passed  # what was written over is as it was


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("sample", lambda logits, generator=None: sampling.sample(logits, generator).tolist()),
        ("top_k", lambda logits, k: sampling.top_k(logits, k).tolist()),
    ],
)
def test_a_list_is_no_tensor(name, version):
    result = graded(parts()[f"tinytf.decoding.sampling.{name}"], version)
    assert "expected a tensor" in result.problems[0][1]


def test_pairs_are_counted_in_a_counter():
    def plain(words):
        return dict(parts()["tinytf.text.merges.count_pairs"].package(words))

    result = graded(parts()["tinytf.text.merges.count_pairs"], plain)
    assert [says for says, _ in result.problems] == ["it is to be a Counter"]


def test_chances_are_told_from_others():
    chances = {1: 0.5, 2: 0.3, 3: 0.2}
    assert often([1] * 500 + [2] * 300 + [3] * 200, chances) == AS_OFTEN
    assert "2 comes 220 times, and about 300" in often([1] * 600 + [2] * 220 + [3] * 180, chances)
    assert often([1] * 999 + [4], chances) == "4 comes, which is impossible"
    some = {1: 0.5}
    assert often([1] * 500 + list(range(2, 502)), some) == AS_OFTEN
    assert often([1] * 1000, some) != AS_OFTEN


def test_a_right_version_is_hardly_ever_refused():
    torch.manual_seed(0)
    chances = dict(enumerate((0.4, 0.3, 0.2, 0.05, 0.03, 0.02)))
    drawn = torch.tensor(list(chances.values())).multinomial(600 * 1200, True).reshape(600, 1200)
    assert {often(row, chances) for row in drawn.tolist()} == {AS_OFTEN}


@pytest.mark.parametrize("target", parts())
def test_a_stub_asks_for_no_error_that_its_tests_do_not_ask_for(target):
    asked = ("PositionalEncoding", "LearnedPositionalEncoding", "ablate_heads", "examine")
    package = parts()[target].package
    texts = [inspect.getdoc(package)]
    if inspect.isclass(package):
        texts += [inspect.getdoc(one) for one in vars(package).values() if inspect.isfunction(one)]
    for text in map(stubs._asked, filter(None, texts)):
        assert "Error" not in text or target.endswith(asked), text
        assert "rrors" not in text
        assert all(len(line) <= 100 for line in text.splitlines())
