"""Runs take turns, and their ratios are taken round by round."""

import itertools
import time
from collections import Counter

import pytest
import torch

from tinytf_course.studies import interleaved as study

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")  # nn.Transformer's


class Made:
    """A clock that moves only when a run says so."""

    def __init__(self):
        self.now, self.order = 0.0, []

    def __call__(self):
        return self.now

    def run(self, name, *seconds):
        taken = itertools.cycle(seconds)

        def go():
            self.order.append(name)
            self.now += next(taken)
            return name.upper()

        return go


@pytest.mark.parametrize("names", ["ab", "abc", "abcd", "abcdefghi"])
def test_each_is_first_in_turn_and_follows_each_other_equally_often(names):
    rounds = [study.in_turn(names, i) for i in range(2 * len(names))]
    assert all(sorted(order) == sorted(names) for order in rounds)
    firsts = Counter(order[0] for order in rounds[: len(names)])
    assert firsts == Counter(names)
    follows = Counter(pair for order in rounds for pair in itertools.pairwise(order))
    assert set(follows.values()) == {2}
    assert len(follows) == len(names) * (len(names) - 1)


def test_warming_rounds_do_not_count():
    clock = Made()
    runs = {"a": clock.run("a", 100, 1, 2, 3), "b": clock.run("b", 50, 2, 2, 12)}
    timings = study.interleave(runs, rounds=3, warm_up=1, clock=clock)
    assert timings.seconds == {"a": [1, 2, 3], "b": [2, 2, 12]}
    assert "".join(clock.order) == "ab" + "ba" + "ba" + "ab"


def test_ratios_are_taken_round_by_round():
    timings = study.Timings({"a": [1.0, 10.0, 100.0], "b": [2.0, 20.0, 100.0]})
    assert timings.ratio("a", "b").median == 0.5  # of medians: 10 / 20, too; of means, 0.91
    timings = study.Timings({"a": [1.0, 10.0, 2.0], "b": [4.0, 20.0, 1.0]})
    assert timings.ratio("a", "b") == study.Spread(0.5, 0.375, 1.25)  # of medians it would be 2 / 4
    assert timings.of("a") == study.Spread(2.0, 1.5, 6.0)


def test_the_spread_is_quartiles():
    assert study.spread([5.0, 1.0, 4.0, 2.0, 3.0]) == study.Spread(3.0, 2.0, 4.0)
    assert study.spread([7.0]) == study.Spread(7.0, 7.0, 7.0)
    assert study.spread([1.0, 3.0]).scaled(10) == study.Spread(20.0, 15.0, 25.0)


def test_short_runs_are_repeated_and_their_seconds_are_of_one_call():
    clock = Made()
    runs = {"short": clock.run("short", 0.25), "long": clock.run("long", 8)}
    timings = study.interleave(runs, rounds=2, warm_up=1, clock=clock, least=2.0)
    assert clock.order.count("short") == 1 + 2 * 8
    assert clock.order.count("long") == 1 + 2
    assert timings.seconds == {"short": [0.25, 0.25], "long": [8.0, 8.0]}


def test_what_runs_return_is_given_to_be_compared():
    clock, seen = Made(), []
    runs = {n: clock.run(n, 1) for n in "ab"}
    study.interleave(runs, rounds=1, warm_up=1, clock=clock, after=lambda i, r: seen.append((i, r)))
    assert seen == [(0, {"a": "A", "b": "B"}), (1, {"b": "B", "a": "A"})]


@pytest.mark.parametrize(("runs", "rounds"), [({}, 3), ({"a": int}, 0)])
def test_no_runs_and_no_rounds_are_refused(runs, rounds):
    with pytest.raises(ValueError, match=f"{len(runs)} runs in {rounds} rounds"):
        study.interleave(runs, rounds)


def test_a_clock_is_the_wall_s_or_the_processor_s():
    assert study.make_clock() is time.perf_counter
    assert study.make_clock(cpu=True) is time.process_time


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_a_gpus_clock_waits_for_it(kind, monkeypatch):
    waited = []
    monkeypatch.setattr(getattr(torch, kind), "synchronize", lambda *a: waited.append(a))
    clock = study.make_clock(device=kind)
    assert clock() <= clock()
    assert len(waited) == 2
