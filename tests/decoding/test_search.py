"""Greedy and beam search: against step-by-step and exhaustive search, cached and uncached."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from support import random_ids, randomise, small_model

from tinytf.decoding.search import beam_search, greedy, length_penalty, scored_greedy
from tinytf.text.words import BOS, EOS, PAD
from tinytf_course.lessons.exact import best_of_all, every_sentence

NORMS = pytest.mark.parametrize("norm", ["post", "pre"])
ALPHAS = pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
SEEDS = pytest.mark.parametrize("seed", range(4))


def decided_model(seed, device, **changes):
    """A model with opinions: sentences differ, and end at all lengths."""
    torch.manual_seed(seed)
    model = small_model(device, tie_output=False, **changes)
    with torch.no_grad():
        model.src_embedding.weight.mul_(3)
        model.output.weight.normal_(std=0.7)
    return model


def log_probs(model, src, ids):
    """Log-probability of each token after `ids`, by a forward pass without any cache."""
    tgt = torch.tensor([[BOS, *ids]], device=src.device)
    scores = model(src, tgt)[0, -1]
    scores[[PAD, BOS]] = -math.inf
    return scores.log_softmax(-1).tolist()


def score(log_prob, ids, alpha):
    return log_prob / ((5 + len(ids)) / 6) ** alpha


def brute_force(model, src, alpha, max_len):
    """Score every sentence there is: all that end, and all cut at max_len. Best first."""
    words = range(EOS + 1, model.config.tgt_vocab_size)
    found = []
    for n in range(max_len + 1):
        for body in itertools.product(words, repeat=n):
            ids = [*body, EOS][:max_len]
            total = sum(log_probs(model, src, ids[:i])[token] for i, token in enumerate(ids))
            found.append((score(total, ids, alpha), ids))
    return sorted(found, reverse=True)


def naive_beam(model, src, beam, alpha, max_len):
    """Beam search on one sentence as a book would write it, stopping only at max_len."""
    alive, done = [(0.0, [])], []
    for _ in range(max_len):
        grown = [
            (total + p, [*ids, token])
            for total, ids in alive
            for token, p in enumerate(log_probs(model, src, ids))
            if token not in (PAD, BOS)
        ]
        grown.sort(reverse=True)
        best = grown[: 2 * beam]
        done += [(score(total, ids, alpha), ids) for total, ids in best if ids[-1] == EOS]
        alive = [c for c in best if c[1][-1] != EOS][:beam]
    done += [(score(total, ids, alpha), ids) for total, ids in alive]
    return sorted(done, reverse=True)[:beam]


def assert_same_hypotheses(ours, expected):
    assert [h.ids for h in ours] == [ids for _, ids in expected]
    assert [h.score for h in ours] == pytest.approx([s for s, _ in expected], abs=1e-5)


# ---- greedy


@NORMS
@SEEDS
def test_greedy_equals_step_by_step(norm, seed, exact):
    model = decided_model(seed, exact, norm=norm)
    src = random_ids([6, 3, 1, 5], 11, exact)
    out = greedy(model, src, max_len=12)
    assert torch.equal(out, greedy(model, src, 12, use_cache=False))
    assert out.size(1) <= 12
    for row, (one, n) in enumerate(zip(src, (6, 3, 1, 5), strict=True)):
        ids = []
        while len(ids) < 12 and EOS not in ids:
            scores = log_probs(model, one[None, :n], ids)
            ids.append(max(range(len(scores)), key=scores.__getitem__))
        assert out[row].tolist() == ids + [PAD] * (out.size(1) - len(ids))


def test_the_cases_above_end_at_different_lengths(exact):
    """Otherwise they would prove little: some rows must finish before others, some be cut."""
    lengths = set()
    for seed in range(4):
        out = greedy(decided_model(seed, exact), random_ids([6, 3, 1, 5], 11, exact), 12)
        lengths |= set((out != PAD).sum(1).tolist())
    assert len(lengths) >= 4, lengths


def test_cached_scores_equal_uncached_ones(exact):
    model = decided_model(0, exact)
    src, tgt = random_ids([5, 3], 11, exact), random_ids([6, 6], 9, exact, end=False)
    memory, cache = model.encode(src), model.decoder.new_cache()
    steps = [model.decode(tgt[:, t : t + 1], memory, cache) for t in range(6)]
    whole = model.decode(tgt, memory)
    torch.testing.assert_close(torch.cat(steps, 1), whole, atol=1e-11, rtol=0)
    cache = model.decoder.new_cache()
    chunks = [model.decode(tgt[:, part], memory, cache) for part in (slice(0, 2), slice(2, 6))]
    torch.testing.assert_close(torch.cat(chunks, 1), whole, atol=1e-11, rtol=0)


def test_encoder_and_memory_projection_run_once(exact):
    model = decided_model(0, exact)
    calls = {"encoder": 0, "decoder": 0}

    def count(name):
        def hook(*_):
            calls[name] += 1

        return hook

    model.encoder.register_forward_hook(count("encoder"))
    model.decoder.register_forward_hook(count("decoder"))
    out = greedy(model, random_ids([4, 4], 11, exact), 8)
    assert calls == {"encoder": 1, "decoder": out.size(1)}


# ---- beam


@ALPHAS
@SEEDS
@pytest.mark.parametrize("beam", [31, 50])
def test_a_wide_beam_is_exhaustive_search(alpha, seed, beam, exact):
    """With a beam for every prefix nothing is pruned: the answer is the best of all sentences.

    Beams that hold no prefix must not turn into hypotheses.
    """
    model = decided_model(seed, exact, tgt_vocab_size=5, num_layers=1)
    src = random_ids([4, 2], 11, exact)
    found = beam_search(model, src, beam, alpha, max_len=4)
    for one, n, hypotheses in zip(src, (4, 2), found, strict=True):
        expected = brute_force(model, one[None, :n], alpha, 4)
        assert len(expected) == 31  # 1 + 2 + 4 + 8 that end, 16 that are cut
        assert_same_hypotheses(hypotheses, expected)


@ALPHAS
@NORMS
@SEEDS
@pytest.mark.parametrize("beam", [1, 2, 3])
def test_a_narrow_beam_equals_the_textbook(alpha, norm, seed, beam, exact):
    model = decided_model(seed, exact, norm=norm, num_layers=1, tgt_vocab_size=7)
    src = random_ids([5, 2, 3], 11, exact)
    found = beam_search(model, src, beam, alpha, max_len=7)
    for one, n, hypotheses in zip(src, (5, 2, 3), found, strict=True):
        assert_same_hypotheses(hypotheses, naive_beam(model, one[None, :n], beam, alpha, 7))


@SEEDS
def test_log_prob_is_that_of_the_sentence(seed, exact):
    model = decided_model(seed, exact)
    src = random_ids([5], 11, exact)
    for h in beam_search(model, src, beam=4, alpha=0.6, max_len=9)[0]:
        total = sum(log_probs(model, src, h.ids[:i])[token] for i, token in enumerate(h.ids))
        assert h.log_prob == pytest.approx(total, abs=1e-5)
        assert h.score == pytest.approx(h.log_prob / length_penalty(len(h.ids), 0.6))
        assert EOS not in h.ids[:-1]


def test_the_search_stops_as_soon_as_nothing_can_change(exact):
    """With <eos> far ahead, one step settles a beam of 1, and K beams need a few."""
    model, src = decided_model(0, exact), random_ids([4, 3], 11, exact)
    scores = torch.full((9,), -8.0, dtype=torch.float64, device=exact)
    scores[EOS] = 0.0
    model.output.forward = lambda h: scores.repeat(len(h), 1)
    passes = []
    model.decoder.register_forward_hook(lambda *_: passes.append(1))
    beam_search(model, src, 1, alpha=0.0, max_len=24)
    assert len(passes) == 1
    passes.clear()
    found = beam_search(model, src, 3, alpha=0.0, max_len=24)
    assert len(passes) == 2
    assert [[len(h.ids) for h in row] for row in found] == [[1, 2, 2]] * 2


def test_a_beam_of_one_also_keeps_an_end_that_comes_second(exact):
    """The boundary that the docstring draws: greedy goes on, and says something less likely."""
    model, src = small_model(exact), random_ids([3], 11, exact)
    scores = torch.full((9,), -20.0, dtype=torch.float64, device=exact)
    scores[EOS], scores[5] = -0.1, 0.0
    model.output.forward = lambda h: scores.repeat(len(h), 1)
    assert beam_search(model, src, 1, alpha=0.0, max_len=6)[0][0].ids == [EOS]
    assert greedy(model, src, 6)[0].tolist() == [5] * 6


def test_length_penalty_equals_the_paper():
    assert length_penalty(1, 0.9) == 1
    assert length_penalty(7, 1) == 2
    assert length_penalty(19, 0.5) == 2
    assert length_penalty(19, 0) == 1


# ---- both


@NORMS
@pytest.mark.parametrize("search", [greedy, lambda *a, **k: beam_search(*a, beam=2, **k)])
@pytest.mark.parametrize("training", [True, False])
def test_search_uses_evaluation_mode_and_leaves_the_model_as_it_was(norm, search, training, exact):
    model = decided_model(0, exact, norm=norm, dropout=0.5).train(training)
    src = random_ids([5, 3], 11, exact)

    def ids(found):
        return found.tolist() if torch.is_tensor(found) else [[h.ids for h in row] for row in found]

    first = search(model, src, max_len=10)
    assert ids(first) == ids(search(model, src, max_len=10))  # dropout is off
    assert all(m.training is training for m in model.modules())
    assert all(p.grad is None for p in model.parameters())


def test_special_tokens_are_never_words(exact):
    model = small_model(exact, tie_output=False)
    with torch.no_grad():
        model.output.weight.zero_()  # all tokens alike, <pad> first in any order
    src = random_ids([3, 3], 11, exact)
    assert set(greedy(model, src, 5).flatten().tolist()) == {EOS}
    for row in beam_search(model, src, 4, max_len=5):
        assert not {PAD, BOS} & {i for h in row for i in h.ids}


@pytest.mark.parametrize("max_len", [0, -1, 25])
@pytest.mark.parametrize("search", [greedy, lambda m, s, n: beam_search(m, s, max_len=n)])
def test_bad_lengths_are_refused(search, max_len):
    message = rf"max_len={max_len} must lie in 1\.\.24, the model's own max_len"
    with pytest.raises(ValueError, match=message):
        search(small_model(), random_ids([3], 11), max_len)


@pytest.mark.parametrize(("own", "written"), [(24, 24), (100, 64)])
def test_outputs_are_as_long_as_the_model_allows_and_unless_told_have_64_tokens(
    own, written, exact
):
    model, src = small_model(exact, max_len=own), random_ids([3], 11, exact)
    endless = torch.zeros(9, dtype=torch.float64, device=exact)
    endless[EOS] = -torch.inf
    model.output.forward = lambda h: endless.repeat(len(h), 1)
    assert greedy(model, src).size(1) == len(beam_search(model, src, 1)[0][0].ids) == written
    assert greedy(model, src, own).shape == (1, own)
    assert [len(h.ids) for h in beam_search(model, src, 2, max_len=own)[0]] == [own, own]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beam": 0}, "beam must be at least 1, got 0"),
        ({"beam": 2.5}, "beam must be a whole number, got 2.5"),
        ({"beam": True}, "beam must be a whole number, got True"),
        ({"beam": "4"}, "beam must be a whole number, got '4'"),
        ({"alpha": -1.0}, "alpha .* got -1.0"),
        ({"alpha": float("nan")}, "alpha .* got nan"),
        ({"alpha": float("inf")}, "alpha .* got inf"),
    ],
)
def test_bad_beams_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        beam_search(small_model(), random_ids([3], 11), max_len=5, **changes)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_empty_source_is_refused(shape):
    with pytest.raises(ValueError, match="non-empty batch"):
        greedy(small_model(), torch.empty(shape, dtype=torch.long), 5)


# ---- scores that say nothing


SEARCHES = {
    "greedy": greedy,
    "greedy, no cache": lambda model, src: greedy(model, src, use_cache=False),
    "beam": beam_search,
    "all": lambda model, src: every_sentence(model, src, 3),
    "best of all": best_of_all,
}


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("part", ["src_embedding", "decoder.layers.0.feed_forward", "output"])
def test_weights_that_are_nan_are_an_error(search, part, device):
    model = small_model(device, torch.float32, tie_output=False)
    with torch.no_grad():
        next(model.get_submodule(part).parameters()).fill_(math.nan)
    # (of queries that are NaN, torch's attention on a CPU makes zeros while there are few keys)
    with pytest.raises(ValueError, match="step 1: row 0 of the logits has a logit of nan"):
        SEARCHES[search](model, random_ids([4], 11, device))


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("search", ["greedy", "beam"])
def test_the_step_and_the_row_are_named(search, value, device):
    model, steps = small_model(device, torch.float32), []

    def spoil(_module, _inputs, logits):
        steps.append(1)
        if len(steps) == 3:
            logits[-1, 5] = value
        return logits.index_fill(-1, torch.tensor([EOS], device=device), -1e4)  # nobody ends

    model.output.register_forward_hook(spoil)
    row = {"greedy": 1, "beam": 7}[search]
    with pytest.raises(ValueError, match=f"step 3: row {row} of the logits has a logit of {value}"):
        SEARCHES[search](model, random_ids([4, 4], 11, device))


# ---- compiled


def counting_backend(runs):
    def backend(graph, _inputs):
        def run(*inputs):
            runs.append(1)
            return graph.forward(*inputs)

        return run

    return backend


@pytest.mark.parametrize("search", ["greedy", "beam"])
def test_a_compiled_model_decodes_compiled(search, exact):
    model, runs = randomise(small_model(exact)).eval(), []
    compiled = torch.compile(model, backend=counting_backend(runs))
    src = random_ids([4, 2], 11, exact)
    expected = SEARCHES[search](model, src, max_len=6)
    assert not runs
    found = SEARCHES[search](compiled, src, max_len=6)
    assert len(runs) >= 3
    if search == "greedy":
        assert torch.equal(found, expected)
    else:
        assert [[h.ids for h in row] for row in found] == [[h.ids for h in row] for row in expected]


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_scored_greedy_is_greedy_with_its_scores(norm, exact):
    """The scores are those that the model gives the tokens in one pass over the whole output."""
    for seed in range(4):
        model = decided_model(seed, exact, norm=norm)
        src = random_ids([5, 2, 7, 3], 11, exact)
        for max_len in (None, 6, 1):
            rows, found = greedy(model, src, max_len), scored_greedy(model, src, max_len)
            assert [h.ids for h in found] == [[i for i in row if i != PAD] for row in rows.tolist()]
            with torch.no_grad():
                logits = model(src, F.pad(rows[:, :-1], (1, 0), value=BOS))
            logits[..., [PAD, BOS]] = -torch.inf
            log_probs = logits.log_softmax(-1).gather(-1, rows[..., None])[..., 0]
            expected = log_probs.masked_fill(rows == PAD, 0).sum(-1)
            assert [h.log_prob for h in found] == pytest.approx(expected.tolist(), abs=1e-5)
            assert all(h.score == h.log_prob for h in found)
