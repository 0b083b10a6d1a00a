"""Generation: step by step against the plain loop, row by row, past the window, on bad input."""

import pytest
import torch
from gpt_support import decided_gpt, prompts, seeded
from hypothesis import given
from hypothesis import strategies as st
from support import bounded, randomise

from tinytf.decoding.fast import fast_decoder
from tinytf.decoding.generate import choose, generate, pad_left
from tinytf.decoding.sampling import Sampling, repetition_penalty, sample
from tinytf.llama import Llama, LlamaConfig

CHOICES = {
    "greedy": None,
    "penalised": Sampling(repetition_penalty=1.5, top_k=1),
    "drawn": Sampling(temperature=1.3, top_k=7, top_p=0.95),
}
choices = pytest.mark.parametrize("choice", CHOICES)


def plain(model, ids, steps, sampling=None, generator=None, end_id=None, keep=None):
    """As a book would write it: every context read anew, no cache, one row's end at a time."""
    max_len, start = model.config.max_len, 0
    done = [False] * len(ids)
    for _ in range(steps):
        if ids.size(1) - start > max_len:
            start = ids.size(1) - (keep or max_len)
        logits = model.eval()(ids[:, start:])[:, -1].float()
        token = logits.argmax(-1) if sampling is None else sample(sampling(logits, ids), generator)
        for row, over in enumerate(done):
            if over:
                token[row] = end_id
            done[row] = over or token[row] == end_id
        ids = torch.cat([ids, token[:, None]], dim=1)
        if all(done):
            break
    return ids


# ---- the loop


@choices
@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("keep", [None, 1, 5, 12])
def test_equals_the_plain_loop_also_past_the_window(choice, use_cache, keep, exact):
    sampling = CHOICES[choice]
    for seed in range(3):
        model = decided_gpt(seed, exact)
        ids = prompts(3, 4, exact)
        out = generate(model, ids, 30, sampling, generator=seeded(), keep=keep, use_cache=use_cache)
        assert torch.equal(out, plain(model, ids, 30, sampling, seeded(), keep=keep))
        assert out.shape == (3, 34)
        assert torch.equal(out[:, :4], ids)


@choices
def test_each_row_ends_by_itself(choice, exact):
    lengths = set()
    for seed in range(6):
        model = decided_gpt(seed, exact)
        ids = prompts(5, 3, exact) % 10
        out = generate(model, ids, 25, CHOICES[choice], generator=seeded(), end_id=10)
        expected = plain(model, ids, 25, CHOICES[choice], seeded(), end_id=10)
        assert torch.equal(out, expected)
        for row in out.tolist():
            said = row.index(10) if 10 in row else len(row)
            assert set(row[said:]) <= {10}
            lengths.add(said)
        assert out.size(1) == 28 or (out[:, -1] == 10).all()
    assert len(lengths) > 3, lengths


def test_an_end_in_the_prompt_is_no_end(exact):
    model = decided_gpt(0, exact)
    ids = torch.full((1, 3), 10, device=exact)
    assert generate(model, ids, 4, end_id=10).size(1) > 3
    assert torch.equal(generate(model, ids, 4, end_id=10), plain(model, ids, 4, end_id=10))


def test_a_prompt_longer_than_the_window_is_read_from_its_last_tokens(exact):
    model = decided_gpt(1, exact)
    ids = prompts(2, 20, exact)
    out = generate(model, ids, 1)
    assert torch.equal(out[:, :20], ids)
    assert torch.equal(out[:, 20:], generate(model, ids[:, -12:], 1)[:, 12:])
    kept = generate(model, ids, 1, keep=5)
    assert torch.equal(kept[:, 20:], generate(model, ids[:, -5:], 1)[:, 5:])


def test_each_context_is_read_as_seldom_as_documented(exact):
    model = decided_gpt(2, exact)
    read = []
    model.decoder.register_forward_hook(
        lambda _module, inputs, _out: read.append(inputs[0].size(1))
    )
    generate(model, prompts(1, 4, exact), 8)
    assert read == [4] + [1] * 7
    read.clear()
    generate(model, prompts(1, 12, exact), 21, keep=3)  # refilled once in 12 - 3 + 1 tokens
    assert read == [12] + ([3] + [1] * 9) * 2
    read.clear()
    generate(model, prompts(1, 12, exact), 4)
    assert read == [12] * 4


def test_penalties_count_what_has_left_the_window(exact):
    model = decided_gpt(3, exact, max_len=4)
    ids = torch.tensor([[7, 1, 2, 3, 4]], device=exact)
    logits = model(ids[:, -4:])[:, -1].float()
    out = generate(model, ids, 1, Sampling(repetition_penalty=1e6, top_k=1))
    assert out[0, -1] == repetition_penalty(logits, ids, 1e6).argmax()
    assert out[0, -1] not in ids


def test_drawing_follows_the_generator(exact):
    model, ids = decided_gpt(0, exact), prompts(2, 3, exact)
    first, again, other = (
        generate(model, ids, 8, Sampling(), generator=seeded(s)) for s in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("use_cache", [True, False])
def test_a_rule_gets_float32_also_from_a_model_in_bfloat16(use_cache):
    """In bfloat16, 7 bits of each probability would be left, and cumulative sums would stall."""
    model, ids = decided_gpt(0, dtype=torch.bfloat16), prompts(2, 3)
    seen = []

    def rule(logits, said):
        seen.append(logits.dtype)
        return Sampling(repetition_penalty=1.2, temperature=0.7)(logits, said)

    first, again = (
        generate(model, ids, 4, sampling=rule, generator=seeded(), use_cache=use_cache)
        for _ in range(2)
    )
    assert seen == [torch.float32] * 8
    assert torch.equal(first, again)


def test_sampled_equals_hugging_faces_draw_for_draw():
    """Both draw from one generator in one way, so the texts are equal, not just alike."""
    transformers = pytest.importorskip("transformers")
    from tinytf.pretrained import gpt2

    ours = decided_gpt(4, max_len=32)
    config = transformers.GPT2Config(**gpt2.to_config(ours))
    theirs = transformers.GPT2LMHeadModel(config).double().eval()
    theirs.load_state_dict(gpt2.to_state(ours), strict=False)
    theirs.tie_weights()
    ids = prompts(3, 5)
    settings = {"repetition_penalty": 1.3, "temperature": 0.9, "top_k": 8, "top_p": 0.9}
    torch.manual_seed(7)
    expected = theirs.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=20, do_sample=True,
        pad_token_id=0, **settings,
    )  # fmt: skip
    torch.manual_seed(7)
    assert torch.equal(generate(ours, ids, 20, Sampling(**settings)), expected)


# ---- what it leaves behind


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_in_the_mode_it_was_found_in(training, exact):
    model = decided_gpt(0, exact, dropout=0.5).train(training)
    ids = prompts(2, 3, exact)
    first = generate(model, ids, 6)
    assert model.training is training
    assert torch.equal(first, generate(model, ids, 6))  # no dropout in it
    assert torch.equal(first, generate(model, ids, 6, Sampling(top_k=1)))
    with pytest.raises(ValueError, match="top_k=99"):
        generate(model, ids, 6, Sampling(top_k=99))
    assert all(m.training is training for m in model.modules())
    assert all(p.grad is None and p.requires_grad for p in model.parameters())


def test_prompts_are_left_alone_and_no_graph_is_kept(exact):
    model, ids = decided_gpt(0, exact), prompts(2, 3, exact)
    before = ids.clone()
    assert not generate(model, ids, 3).requires_grad
    assert torch.equal(ids, before)
    assert torch.equal(generate(model, ids, 0), ids)
    assert generate(model, ids.int(), 2).dtype == torch.int32


# ---- bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ids": torch.zeros(1, 0, dtype=torch.long)}, r"non-empty batch \(B, T\), .* \(1, 0\)"),
        ({"ids": torch.zeros(0, 3, dtype=torch.long)}, r"non-empty batch \(B, T\), .* \(0, 3\)"),
        ({"ids": torch.zeros(3, dtype=torch.long)}, r"non-empty batch \(B, T\), .* \(3,\)"),
        ({"ids": torch.tensor([[11]])}, "id 11 is outside the vocabulary of 11"),
        ({"max_new_tokens": -1}, "max_new_tokens must be at least 0, got -1"),
        ({"end_id": 11}, r"end_id=11 is outside the vocabulary 0..10"),
        ({"end_id": -1}, "end_id=-1 is outside"),
        ({"keep": 0}, r"keep=0 must lie in 1..12"),
        ({"keep": 13}, r"keep=13 must lie in 1..12, the model's max_len"),
        ({"sampling": Sampling(top_k=12)}, r"top_k=12 must lie in 1..11"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    model = decided_gpt(0)
    with pytest.raises(ValueError, match=message):
        generate(model, **{"ids": prompts(1, 2), "max_new_tokens": 3} | arguments)


# ---- prompts of different lengths


def llama(seed, device):
    torch.manual_seed(seed)
    sizes = LlamaConfig(11, 12, 3, 1, 2, 20, 12)
    return randomise(Llama(sizes).to(device, torch.float64).eval(), 0.6)


MODELS = {"GPT": decided_gpt, "Llama": llama}


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("use_cache", [True, False])
@bounded
@given(st.lists(st.integers(1, 6), min_size=2, max_size=4), st.booleans(), st.integers(0, 999))
def test_prompts_of_different_lengths_are_continued_as_they_are_alone(
    family, use_cache, exact, lengths, penalised, seed
):
    """Also past the window, which holds 12 tokens."""
    model = MODELS[family](seed, exact)
    rows = [torch.randint(11, (n,)).tolist() for n in lengths]
    ids, mask = pad_left(rows, pad_id=seed % 11, device=exact)
    options = {"end_id": 10, "use_cache": use_cache}
    sampling = Sampling(repetition_penalty=1.7, top_k=1) if penalised else None
    together = generate(model, ids, 14, sampling, mask=mask, **options)
    assert torch.equal(together[:, : ids.size(1)], ids)
    for row, out in zip(rows, together.tolist(), strict=True):
        alone = generate(model, torch.tensor([row], device=exact), 14, sampling, **options)
        new = alone[0, len(row) :].tolist()
        assert out[ids.size(1) :] == new + [10] * (len(out) - ids.size(1) - len(new))


def test_padding_goes_before_the_prompt(device):
    ids, mask = pad_left([[5, 2], [3]], pad_id=9, device=device)
    assert ids.tolist() == [[5, 2], [9, 3]]
    assert mask.tolist() == [[[[True, True]]], [[[False, True]]]]
    model = decided_gpt(0, device, torch.float32)
    with pytest.raises(ValueError, match="row 1 ends in padding: put it before the prompt"):
        generate(model, ids, 3, mask=mask.flip(-1))
    with pytest.raises(ValueError, match=r"mask of shape \(2, 2\) does not fit ids \(2, 2\)"):
        generate(model, ids, 3, mask=mask[:, 0, 0])
    with pytest.raises(TypeError, match=r"mask must be boolean .*, got torch.int64"):
        generate(model, ids, 3, mask=mask.long())
    for prompts_ in ([], [[1], []]):
        with pytest.raises(ValueError, match="prompts must have a token or more each"):
            pad_left(prompts_)


# ---- logits that say nothing, and compiled models


@pytest.mark.parametrize("make", [lambda m: m, fast_decoder])
@pytest.mark.parametrize("sampling", [None, Sampling(temperature=1.0)])
def test_weights_that_are_nan_are_an_error_that_names_the_step(make, sampling, device):
    model = decided_gpt(0, device, torch.float32)
    with torch.no_grad():
        model.positions.table[5].fill_(float("nan"))  # first read for the fourth new token
    model = make(model)
    with pytest.raises(ValueError, match="step 4: row 0 of the logits has a logit of nan"):
        generate(model, prompts(2, 3, device), 8, sampling)


@pytest.mark.parametrize("family", MODELS)
def test_a_compiled_model_generates_compiled(family, exact):
    model, runs = MODELS[family](1, exact), []

    def backend(graph, _inputs):
        return lambda *inputs: runs.append(1) or graph.forward(*inputs)

    ids = prompts(2, 3, exact)
    expected = generate(model, ids, 8)
    assert not runs
    assert torch.equal(generate(torch.compile(model, backend=backend), ids, 8), expected)
    assert len(runs) >= 8


def test_a_choice_is_the_likeliest_or_drawn_from_what_the_rule_leaves():
    logits, said = torch.tensor([[0.0, 2.0, 1.0], [3.0, 2.0, 3.0]]), torch.tensor([[1], [2]])
    assert choose(logits, said).tolist() == [1, 0]

    def others(logits, ids):
        return logits.scatter(1, ids, -torch.inf)

    drawn = torch.stack([choose(logits, said, others) for _ in range(200)])
    assert set(drawn[:, 0].tolist()) == {0, 2}
    assert set(drawn[:, 1].tolist()) == {0, 1}
    first, again = (
        choose(logits, said, others, torch.Generator().manual_seed(1)).tolist() for _ in range(2)
    )
    assert first == again
