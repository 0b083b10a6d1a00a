"""The study of sampling: texts apart, measures as stated, a whole table."""

import pytest
import torch
from gpt_support import decided_gpt, prompts

from tinytf.data.corpus import END_OF_TEXT
from tinytf.decoding.sampling import Sampling
from tinytf.text.bpe import ByteBPE
from tinytf_course.studies import sampling as study


class Bytes:
    """All that `human_texts` asks of a writer."""

    tokenizer = ByteBPE([], [END_OF_TEXT])


def test_each_seed_has_texts_of_its_own():
    texts = [study.human_texts(Bytes, seed, rows=4) for seed in (0, 1, 0)]
    assert all(text.shape == (4, study.PROMPT + study.WRITTEN) for text in texts)
    assert torch.equal(texts[0], texts[2])
    rows = {tuple(row) for text in texts[:2] for row in text.tolist()}
    assert len(rows) == 8
    pieces = [study.human_texts(Bytes, seed, rows=80) for seed in range(3)]
    assert len({tuple(row) for text in pieces for row in text.tolist()}) == 240  # none dealt twice
    with pytest.raises(ValueError, match=r"seed 3 of 4000 rows needs more than the \d+ pieces"):
        study.human_texts(Bytes, 3, rows=4000)


def test_rules_are_those_of_the_families():
    assert study.sampling_of("top-p", 0.9) == Sampling(top_p=0.9)
    greedy = Sampling(repetition_penalty=1.2, top_k=1)
    assert study.sampling_of("greedy, CTRL penalty", 1.2) == greedy


def test_what_a_filter_does_to_human_text():
    model, ids = decided_gpt(0), prompts(3, 12)
    found = study.on_human(model, Sampling(top_k=2), ids, start=4)
    log_p = model.eval()(ids).detach().log_softmax(-1)
    inside, allowed, nats, spread = 0, 0, 0.0, 0.0
    for b in range(3):
        for t in range(4, 12):
            best = log_p[b, t - 1].topk(2)
            two = best.values.log_softmax(-1)
            spread -= float((two.exp() * two).sum())
            inside += 1
            if ids[b, t] in best.indices:
                allowed += 1
                nats -= float(two[best.indices.tolist().index(int(ids[b, t]))])
    assert 0 < allowed < inside
    assert found["kept"] == pytest.approx(2)
    assert found["kept_mean"] == pytest.approx(2)
    assert found["ruled_out"] == pytest.approx(1 - allowed / inside)
    assert found["human_nats"] == pytest.approx(nats / allowed, rel=1e-4)
    assert found["entropy"] == pytest.approx(spread / inside, rel=1e-4)


def test_what_is_left_is_counted_in_two_ways():
    model, ids = decided_gpt(0), prompts(3, 12)
    found = study.on_human(model, Sampling(top_p=0.6), ids, start=4)
    logits = model.eval()(ids).detach()[:, 3:11].flatten(0, 1).float()
    sizes = Sampling(top_p=0.6)(logits, ids[:1]).isfinite().sum(-1).double()
    assert sizes.min() < sizes.max()
    assert found["kept_mean"] == pytest.approx(sizes.mean().item(), rel=1e-4)
    assert found["kept"] == pytest.approx(sizes.log().mean().exp().item(), rel=1e-4)


def test_a_penalty_counts_what_was_read_and_not_what_comes():
    model = decided_gpt(0)
    ids = torch.tensor([[1, 2, 3, 4, 5, 6]])  # no token comes twice
    plain, penalised = (
        study.on_human(model, sampling, ids, start=3)["human_nats"]
        for sampling in (Sampling(), Sampling(presence_penalty=3.0))
    )
    assert penalised < plain  # those that were said lose, those that come gain


def test_without_a_rule_human_text_costs_its_loss():
    model, ids = decided_gpt(1), prompts(2, 12)
    plain = study.on_human(model, Sampling(), ids, start=3)
    assert plain["human_nats"] == pytest.approx(study.measure(model, ids, 3)["nats"], rel=1e-4)
    assert plain["kept"] == pytest.approx(11)
    assert plain["ruled_out"] == 0
    dearer = study.on_human(model, Sampling(presence_penalty=2.0), ids, start=3)
    assert dearer["human_nats"] != pytest.approx(plain["human_nats"], rel=1e-3)
