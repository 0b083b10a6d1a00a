"""Pairs of sentences that differ in one word, as a model reads them."""

import torch

from tinytf_course.phrasebook import Phrasebook
from tinytf_course.studies.twins import count_runs, twin_runs


def test_twins_have_their_places_and_one_beginning(translator, twins):
    runs = twin_runs(translator, [two[::-1] for two in twins])
    for row, two in enumerate(twins):
        first, second = sorted(two, key=lambda pair: pair.antecedent[1])
        words = first.source
        assert words[runs.places["it"][row]] == "it"
        assert words[runs.places["adjective"][row]] == words[-1] != second.source[-1]
        assert words[runs.places["because"][row]] == "because"
        at = int(runs.at[row])
        assert first.target[:at] == second.target[:at]
        assert translator.target.tokens[runs.right[row]] == first.target[at]
        assert translator.target.tokens[runs.wrong[row]] == second.target[at]
    apart = (runs.first != runs.second).nonzero()
    assert apart[:, 1].tolist() == runs.places["adjective"].tolist()


def test_counts_differ_in_one_number(translator):
    runs = count_runs(translator, Phrasebook(), 150)
    rows, words = torch.arange(len(runs.at)), translator.source.tokens
    assert len(rows) > 5
    assert ((runs.first != runs.second).sum(dim=1) == 1).all()
    one, two = (source[rows, runs.places["number"]] for source in (runs.first, runs.second))
    assert {words[i] for i in torch.cat([one, two]).tolist()} <= {"two", "three", "four", "five"}
    assert (one != two).all()
    said = {translator.target.tokens[i] for i in torch.cat([runs.right, runs.wrong]).tolist()}
    assert said <= {"两", "三", "四", "五"}
    assert (runs.ask(translator.model, runs.first) > 0).all()
    assert (runs.ask(translator.model, runs.second) < 0).all()
