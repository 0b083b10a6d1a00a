"""Which noun a pronoun looks at, and which one a translation says."""

import pytest
import torch

from tinytf.inspect import replace
from tinytf.interpret.head_roles import (
    Head,
    heads_of,
)
from tinytf.text.words import BOS, EOS
from tinytf_course.lessons.ablation import ablated
from tinytf_course.lessons.coreference import (
    antecedent_preferences,
    coreference_scores,
    noun_shares,
)


def test_coreference_scores_of_made_up_heads(shipped, twins):
    """A head fixed on the first noun scores about -1, one that finds the right noun 1."""
    model, name = shipped.model, "decoder.layers.1.cross_attention"
    first = {False: torch.tensor([two[0].antecedent[1] for two in twins])}
    right = {i: torch.tensor([two[i].antecedent[1] for two in twins]) for i in (0, 1)}
    calls = []

    def looks(at):
        def change(weights):
            calls.append(1)
            where = at[(len(calls) - 1) % len(at)] if len(at) > 1 else at[False]
            weights = torch.zeros_like(weights)
            weights.scatter_(-1, where[:, None, None, None].expand(*weights.shape[:3], 1), 1.0)
            return weights

        return change

    with replace(model, name, looks(first)):
        assert coreference_scores(shipped, twins)[Head(name, 0)] == pytest.approx(-1)
    calls.clear()
    with replace(model, name, looks(right)):
        assert coreference_scores(shipped, twins)[Head(name, 3)] == pytest.approx(1)
    swapped = [two[::-1] for two in twins]
    assert coreference_scores(shipped, swapped) == coreference_scores(shipped, twins)
    assert antecedent_preferences(shipped, swapped) == antecedent_preferences(shipped, twins)
    with pytest.raises(ValueError, match="no twins"):
        coreference_scores(shipped, [])


@pytest.mark.parametrize("kind", ["encoder.self", "decoder.self", "decoder.cross"])
def test_preferences_of_a_layer_made_to_look_at_the_second_noun(shipped, twins, kind):
    """Read at `it`, or where the noun is about to be said again: elsewhere it looks away."""
    name, calls = "{}.layers.0.{}_attention".format(*kind.split(".")), []

    def change(weights):
        weights = torch.zeros_like(weights)
        for row, two in enumerate(twins):
            pair, second = two[len(calls)], two[1]
            query, key = pair.antecedent[2], second.antecedent[1]
            if kind == "encoder.self":
                query = pair.source.index("it")
            elif kind == "decoder.self":
                key = ("<bos>", *pair.target).index(second.target[second.antecedent[2]])
            weights[row, 1:, query, key] = 1.0
        calls.append(1)
        return weights

    with replace(shipped.model, name, change):
        first, second = antecedent_preferences(shipped, twins)
    heads = [Head(name, index) for index in range(4)]
    assert [first[head] for head in heads] == pytest.approx([0, -1, -1, -1])
    assert [second[head] for head in heads] == pytest.approx([0, 1, 1, 1])


def test_noun_shares_against_a_loop(shipped, twins):
    model = shipped.model
    silent = [h for h in heads_of(model) if h.depth == 1 and h.kind == "cross" and h.index < 3]
    silent += [h for h in heads_of(model) if h.depth == 0 and h.kind == "cross"]
    right = other = 0
    for two in twins:
        for pair, twin in (two, two[::-1]):
            again = pair.antecedent[2]
            src = torch.tensor([[*shipped.source.encode(pair.source), EOS]])
            read = torch.tensor([[BOS, *shipped.target.encode(pair.target[:again])]])
            with torch.no_grad(), ablated(model, silent):
                scores = model.output(model.decode(read, model.encode(src)))[0, -1]
            (word,) = shipped.target.decode([scores.argmax().item()])
            right += word == pair.target[again]
            other += word == twin.target[twin.antecedent[2]]
    found = noun_shares(shipped, twins, iter(silent))
    assert found == pytest.approx((right / 24, other / 24))
    assert found.right > 0.2
    assert found.other > 0.2
    assert noun_shares(shipped, twins) == (1, 0)
    with pytest.raises(ValueError, match="no twins"):
        noun_shares(shipped, [])
