"""The benchmarks' tables on made-up times, and that what they compare computes the same.

No number of a benchmark is asserted here: they are run by hand, `python tests/benchmarks`.
"""

import argparse
import importlib
import json
import math
import time

import pytest
import torch
from benchmarks import BENCHMARKS, attending, comparing, gpu, peers, texts, training, writing

from tinytf.apps.translator import Translator
from tinytf.gpt import GPT, GPTConfig
from tinytf.metrics.translation import exact_match as graded
from tinytf.training.trainer import TrainingConfig
from tinytf_course import studies
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.phrasebook.batches import PhrasebookBatches
from tinytf_course.studies.interleaved import Timings, make_clock

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")  # nn.Transformer's

COMMAND = importlib.import_module("benchmarks.__main__")
TINY = {"d_model": 16, "num_heads": 2, "num_layers": 2, "vocab": 50, "batch": 3, "length": 7}


def options(**changes):
    made, _ = COMMAND.parse([])
    changes = {"device": torch.device("cpu"), "clock": make_clock(), "rounds": 1} | changes
    return argparse.Namespace(**vars(made) | changes)


def test_a_table_has_the_first_over_each_then_milliseconds_then_columns():
    timings = Timings({"tinytf": [1.0, 2.0, 3.0], "peer": [2.0, 4.0, 4.0]})
    made = comparing.Compared("a step", timings, per=10, columns={"size": {"peer": 1234}})
    _, title, heads, first, second = str(made).splitlines()
    assert (title, heads.split()) == ("a step", ["tinytf", "/", "it", "ms", "size"])
    assert first.split()[1:] == ["1.000", "(1.000-1.000)", "200.00", "(150.00-250.00)"]
    expected = ["peer", "0.500", "(0.500-0.625)", "400.00", "(300.00-400.00)", "1234"]
    assert second.split() == expected
    assert made.ratio("peer", "tinytf") == 2
    assert comparing.aim("a", 0.5, most=0.8).endswith("at most 0.8 is aimed at: reached")
    assert comparing.aim("a", 0.5, least=0.8).endswith("at least 0.8 is aimed at: missed")


def test_work_is_that_of_all_matrix_products():
    linear, x = torch.nn.Linear(4, 5), torch.randn(6, 4, requires_grad=True)
    assert comparing.work(lambda: linear(x).sum().backward()) == 3 * 2 * 6 * 4 * 5
    q = torch.randn(2, 3, 7, 4)
    attend = torch.nn.functional.scaled_dot_product_attention
    assert comparing.work(lambda: attend(q, q, q)) == 2 * 6 * 2 * 7 * 7 * 4
    assert min(comparing.limits(options(), size=8, megabytes=1)) > 0


def test_runs_that_part_are_refused():
    with pytest.raises(AssertionError, match="b is not a"):
        comparing.compare("", {"a": int, "b": lambda: 1}, options(), 1, same=["ab"])


def steps_of(kind, **changes):
    if kind == "translators":
        return training.translators(options(**changes), **TINY)
    config = GPTConfig(50, 16, 2, 2, max_len=16, dropout=changes.get("dropout", 0.0))
    return training.writers(options(**changes), config, 2, 8)


@pytest.mark.parametrize("kind", ["translators", "writers"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_training_steps_agree(kind, precision):
    """The losses of three steps: of equal weights, then of equal gradients."""
    steps, same = steps_of(kind, precision=precision)
    assert [len(names) for names in same] == ([3, 2] if kind == "translators" else [4])
    assert any(name.endswith("bf16") for name in steps) == (precision == "bfloat16")
    timed = training.timed_steps("tiny", steps, same, options(rounds=2), 1)
    assert steps.keys() == timed.columns["GFLOP/s in products"].keys()


@pytest.mark.parametrize("make", [peers.PlainTransformer, peers.TorchTransformer])
def test_another_weight_in_a_peer_is_found(make, monkeypatch):
    def changed(self, model):
        plain(self, model)
        with torch.no_grad():
            self.positions[0, 0] += 1

    plain = make.__init__
    monkeypatch.setattr(make, "__init__", changed)
    with pytest.raises(AssertionError, match="is not tinytf"):
        training.timed_steps("tiny", *steps_of("translators"), options(), 1)


@pytest.mark.parametrize("kind", ["translators", "writers"])
def test_dropout_is_in_every_peer(kind, monkeypatch):
    """Without learning, a step's loss changes by dropout alone."""
    monkeypatch.setitem(training.RECIPE, "lr", 0.0)
    for dropout in (0.0, 0.5):
        for name, step in steps_of(kind, dropout=dropout)[0].items():
            losses = [step() for _ in range(3)]
            assert (max(losses) - min(losses) > 1e-5) == (dropout > 0), name


def test_decoding_agrees():
    model = writing.translator(20, 16, 2, 1)
    assert len(writing.ways(model, 2, 6, options()).timings.seconds) == 3
    assert len(writing.beside_marian(model, 2, True, 5, options()).timings.seconds) == 3
    config = GPTConfig(50, 16, 2, 2, max_len=16)
    timed, *said = writing.gpt_decoding(options(tokens=8), config)
    assert {"fast", "fast int8", "plain", "no cache", "weights read"} <= {*timed.timings.seconds}
    assert sum("same likeliest token" in line for line in said) == 3
    model = GPT(config).eval()
    assert "token 100.00%" in writing.agreement(model, model, torch.randint(50, (1, 12)))


def test_ways_to_attend_agree_and_are_measured(monkeypatch):
    monkeypatch.setattr(attending, "peak_bytes", lambda make, way, n, *a, **b: 8 * n**2)
    lengths = [64, 128, 256, 512]
    monkeypatch.setattr(comparing, "interleave", lambda runs, *a, after, **b: after(
        0, {name: run() for name, run in runs.items()}) or Timings({n: [1.0] for n in runs})
    )  # fmt: skip
    *timed, times, memory = attending.attention(options(longest=512))
    assert [one.title for one in timed] == [f"attention, n = {n}" for n in lengths]
    assert {line.split()[-1] for line in times.splitlines()[3:]} == {"0.00"}
    assert {line.split()[-1] for line in memory.splitlines()[3:]} == {"2.00"}


def test_a_slope_is_the_power_of_the_upper_half():
    assert attending.slope({n: 3.0 * n**2 for n in (64, 128, 1024)}) == pytest.approx(2.0)
    bent = {1: 1.0, 10: 1.0, 100: 1.0, 1000: math.sqrt(10)}
    assert attending.slope(bent) == pytest.approx(0.5)


def takes(megabytes, *others):
    """Make a run that fills a tensor of that size."""
    return lambda: torch.zeros(int(megabytes), 2**18).add_(1).sum()


def test_peak_memory_is_that_of_the_run():
    pytest.importorskip("resource")  # not on Windows
    assert attending.peak_bytes(takes, 64, warm=(1,)) / 2**20 == pytest.approx(64, abs=8)


def test_causal_memory_is_told_as_a_power(monkeypatch):
    monkeypatch.setattr(attending, "peak_bytes", lambda make, way, n, *a, **b: 4000 * n)
    rows, aim = attending.causal_memory(options())
    assert [line.split()[-1] for line in rows.splitlines()[3:]] == ["1.00"] * 6 + ["2.00"]
    assert rows.count("not run") == 2
    assert "0.015" in aim
    for way in attending.CAUSAL:
        attending.read(way, 8)()


def test_texts_are_timed():
    timed, _ = texts.phrasebook(options(), 20)
    assert timed.ratio("drawn", "made of ready parts") > 1
    pytest.importorskip("tokenizers")
    text = "the cat sat on the mat, the dog on the log.\n" * 20
    trained, coded, *said = texts.tokenizing(options(merges=20), text, megabytes=0.1)
    assert "Hugging Face" in trained.timings.seconds
    assert "cold" in coded.timings.seconds
    assert len(said) == 4


# ---- the race to exact match


def test_contestants_begin_equal_and_learn():
    sizes = {"d_model": 16, "num_heads": 2, "num_layers": 1, "d_ff": 32}
    racers = training.contestants(TrainingConfig(steps=4, warmup=2), options(), 8, **sizes)
    grading = [PhrasebookBatches(Phrasebook(), 20, 1, "validation", pool=1)(0)]
    models = [model.eval() for _, model in racers.values()]
    first, *others = [model(grading[0].src, grading[0].tgt_in) for model in models]
    for other in others:
        torch.testing.assert_close(other, first, atol=1e-5, rtol=1e-5)
    before = [model.output.weight.detach().clone() for model in models]
    results = training.race(racers, grading, 2.0, 4, make_clock(), chunk=2)
    for old, model, (_, steps, _) in zip(before, models, results.values(), strict=True):
        assert not torch.equal(old, model.output.weight)
        assert steps == 4


def test_a_race_counts_training_until_the_target(monkeypatch):
    now, shares = [0.0], {"fast": 1.0, "slow": 0.5}

    def train(step):
        now[0] += 2.0

    monkeypatch.setattr(training, "share_exact", lambda model, batches: shares[model])
    racers = {name: (train, name) for name in shares}
    results = training.race(racers, [], 0.9, 30, lambda: now[0], chunk=10)
    assert results == {"fast": (2.0, 10, 1.0), "slow": (6.0, 30, 0.5)}


def test_one_pass_tells_what_greedy_decoding_writes():
    translator = Translator.load(device="cpu")
    with torch.no_grad():
        for layer in translator.model.decoder.layers:
            weight = layer.feed_forward.w_2.weight
            weight.add_(0.25 * torch.randn_like(weight))  # so that it errs
    pairs = PhrasebookBatches(Phrasebook(), 100, 1, "validation", pool=1)
    share = training.share_exact(translator.model, [pairs(0)])
    assert 0.05 < share < 0.95
    assert share == pytest.approx(graded(translator, pairs.pairs(0)), abs=0.011)


# ---- the command


def test_the_command_lists_runs_by_name_and_writes_json(tmp_path, capsys, monkeypatch):
    assert COMMAND.main([]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [*BENCHMARKS]
    path, threads = tmp_path / "out.json", torch.get_num_threads()
    monkeypatch.setattr(texts.phrasebook, "__defaults__", (50,))
    arguments = ["phrasebook", "--rounds", "2", "--threads", "1", "--cpu", "--json", str(path)]
    try:
        assert COMMAND.main(arguments) == 0
    finally:
        torch.set_num_threads(threads)
    assert "aim: pairs a second" in capsys.readouterr().out
    (kept,) = json.loads(path.read_text(encoding="utf-8"))
    assert kept["benchmark"] == "phrasebook"
    assert "1 threads" in kept["machine"]
    assert "--cpu" in kept["options"]
    assert [len(row["seconds"]) for row in kept["rows"]] == [2, 2]
    with pytest.raises(SystemExit):
        COMMAND.main(["decode"])
    assert "there is no decode; there are training_step" in capsys.readouterr().err


def test_two_checkouts_are_compared_turn_by_turn(monkeypatch, capsys, tmp_path):
    speeds, asked = {COMMAND.HERE: iter((3.0, 8.0)), tmp_path: iter((2.0, 4.0))}, []

    def medians(checkout, name, arguments):
        asked.append((checkout, name, arguments))
        return {("t", "both"): next(speeds[checkout]), ("t", checkout.name): 1.0}

    monkeypatch.setattr(COMMAND, "medians", medians)
    arguments = ["phrasebook", "--cpu", "--against", str(tmp_path), "--turns", "2"]
    assert COMMAND.main(arguments) == 0
    told = capsys.readouterr().out
    assert "t, both     1.750 (1.625-1.875)  5500.00   3000.00" in told
    assert tmp_path.name not in told  # a row that only one of them has
    assert [one[0] for one in asked] == [COMMAND.HERE, tmp_path, tmp_path, COMMAND.HERE]
    assert all(one[1:] == ("phrasebook", ["--cpu"]) for one in asked)


# a part that starts another process, which says again and again that it lives, and waits for it
ENDLESS = """
import subprocess, sys
child = '''
import sys, time
from pathlib import Path
for i in range(999):
    Path(sys.argv[1], "alive").write_text(str(i))
    time.sleep(0.1)
'''
print("so far", flush=True)
subprocess.run([sys.executable, "-c", child, sys.argv[1]])
"""


def test_each_of_a_gpus_debts_is_tried_whatever_became_of_the_others(tmp_path):
    assert sum(limit for *_, limit in gpu.PARTS) <= 1800
    assert gpu.COSTS == studies.FOLDER / "cost_gpu.json"
    for _, arguments, _ in gpu.PARTS:
        assert len({*arguments} & {*BENCHMARKS, "cost_gpu", "pytest"}) == 1, arguments
    parts = [
        ("good", ("-c", "print('all is well')"), 60),
        ("bad", ("-c", "raise SystemExit(3)"), 60),
        ("endless", ("-c", ENDLESS, str(tmp_path)), 3),
    ]
    (tmp_path / "table").write_text("what it wrote")
    here = options(device=torch.device("cuda"))
    said = "\n".join(gpu.gpu(here, parts, tmp_path / "table"))
    before = (tmp_path / "alive").read_text()
    assert all(words in said for words in ("all is well", "so far", "what it wrote"))
    time.sleep(0.5)
    assert (tmp_path / "alive").read_text() == before  # what a part has started ends with it
    table = " ".join(said[said.index("what a GPU owes") :].split())
    for line in ("good done", "bad failed (3)", "endless stopped after its 3 s"):
        assert line in table
    with pytest.raises(RuntimeError, match="this needs a CUDA GPU, and here is cpu"):
        [*gpu.gpu(options())]
