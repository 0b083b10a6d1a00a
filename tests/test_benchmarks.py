"""The benchmarks' statistics on made-up clocks, their floors, and that peers compute the same.

No number of a benchmark is asserted here: they are run by hand, `python tests/benchmarks`.
"""

import argparse
import importlib
import itertools
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from benchmarks import (
    BENCHMARKS,
    against,
    attention,
    contestants,
    decoding,
    exact_match,
    gpt_decoding,
    gpt_training_step,
    gpu,
    limits,
    memory,
    phrasebook,
    products,
    recipe,
    report,
    steps,
    texts,
    training_step,
)
from torch.utils._python_dispatch import TorchDispatchMode

from tinytf.apps.translator import Translator
from tinytf.attention import explicit_attention
from tinytf.decoding.search import greedy
from tinytf.gpt import GPT, GPTConfig
from tinytf.metrics.translation import exact_match as graded
from tinytf.training.trainer import TrainingConfig
from tinytf.transformer import Transformer
from tinytf_course import studies
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.studies.interleaved import Timings, make_clock

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")  # nn.Transformer's

FOLDER = Path(__file__).parent / "benchmarks"
TINY = training_step.Size(16, 2, 2, 3, 7, 50)
TINY_GPT = GPTConfig(50, 16, 2, 2, max_len=16)


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


def options(**changes):
    settings = {"dropout": 0.0, "small": False, "device": "cpu", "clock": make_clock()}
    return argparse.Namespace(**settings | changes)


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


# ---- the report


def test_a_table_is_lined_up_and_leaves_out_what_is_empty():
    rows = [["a", "1.0", "", "first"], ["long", "12.5", "", ""]]
    expected = "        ms  note\na      1.0  first\nlong  12.5"
    assert report.table(["", "ms", "empty", "note"], rows) == expected


def test_a_report_says_ratios_first_and_keeps_every_second(tmp_path):
    said = []
    told = report.Report("made", said.append)
    timings = Timings({"tinytf": [1.0, 2.0, 3.0], "peer": [2.0, 4.0, 4.0]})
    told.timings("a step", timings, ["tinytf"], {"peer": "slow"}, per=10, size={"peer": 1234})
    told.value("rate", 5.0, "GB/s")
    told.aim("ratio", 0.5, 0.8)
    told.aim("rate", 0.5, 0.8, least=True)
    lines = said[0].splitlines()
    assert lines[2].split() == ["tinytf", "/", "it", "ms", "size", "note"]
    assert lines[4].split() == ["peer", "0.500", "(0.500-0.625)", "400.000", "(300.000-400.000)",
                                "1,234", "slow"]  # fmt: skip
    assert said[2].endswith("at most 0.8 is aimed at: reached")
    assert said[3].endswith("at least 0.8 is aimed at: missed")
    where = report.machine()
    report.write(tmp_path / "r.json", [told.record({"rounds": 3, "json": tmp_path}, where)])
    (kept,) = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert kept["rows"][1]["seconds"] == [2.0, 4.0, 4.0]
    assert kept["rows"][1]["over it"]["tinytf"]["median"] == 0.5
    assert kept["rows"][1]["size"] == 1234
    assert kept["values"] == {"rate [GB/s]": 5.0}
    assert [aim["reached"] for aim in kept["aims"]] == [True, False]
    assert kept["machine"]["torch"] == torch.__version__
    assert {"device", "threads", "date", "processor"} <= kept["machine"].keys()


# ---- the machine's limits


def test_all_matrix_products_of_a_step_are_written_down():
    """A linear map of (6, 4) by (4, 5): forward, gradient of the weight, gradient of the input."""
    linear, x = torch.nn.Linear(4, 5), torch.randn(2, 3, 4, requires_grad=True)
    calls = products.recorded(lambda: linear(x).sum().backward())
    assert products.shapes(calls) == {(6, 4, 5): 1, (5, 6, 4): 1, (6, 5, 4): 1}


def test_attention_is_written_down_as_products_or_as_a_kernel():
    q = torch.randn(2, 3, 7, 4, requires_grad=True)
    calls = products.recorded(lambda: explicit_attention(q, q, q).sum().backward())
    assert products.shapes(calls)[7, 4, 7] == 2 * 6  # scores, and the gradient of the weights
    assert products.shapes(calls).total() == 6 * 6
    attend = torch.nn.functional.scaled_dot_product_attention
    calls = products.recorded(lambda: attend(q, q, q, is_causal=True).sum().backward())
    assert len(calls) == 2
    assert not products.shapes(calls)


def test_replaying_makes_the_same_calls_in_the_same_layout():
    calls = products.recorded(training_step.peers(TINY)["reference"].step)
    again = products.recorded(products.replay(calls))
    assert len(calls) > 60
    assert [call[:2] for call in again] == [call[:2] for call in calls]


class Ticking:
    """A clock that has moved on by half a second whenever it is read."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 0.5
        return self.now


def test_rates_are_operations_over_seconds():
    rates = limits.matmul_rates([(2, 3, 4), (5, 6, 7)], clock=Ticking())
    assert rates == {(2, 3, 4): 2 * 24 / 0.5, (5, 6, 7): 2 * 210 / 0.5}
    read = limits.bandwidth(megabytes=1, clock=Ticking())
    assert read == {"sum": 2**21, "matrix times vector": 2**21}


# ---- peers compute the same


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_training_steps_agree(precision, capsys):
    found = training_step.peers(TINY, precision=precision)
    told = report.Report("training_step")
    steps.measure(told, options(), found, 1, "tiny", megabytes=1)
    losses = {row["name"]: row.get("last loss") for row in told.rows}
    assert losses["tinytf"] == losses["reference"] == losses["nn.Transformer"]
    if "Marian" in found:
        assert losses["tinytf post-norm"] == losses["Marian"] != losses["tinytf"]
    assert steps.FLOOR in losses
    assert "matmul share" in capsys.readouterr().out


def test_gpt_training_steps_agree():
    found = gpt_training_step.peers(TINY_GPT, 2, 8, "bfloat16")
    told = report.Report("gpt_training_step", [].append)
    steps.measure(told, options(), found, 1, "tiny", megabytes=1)
    losses = {row["name"]: row.get("last loss") for row in told.rows}
    exact = [losses[name] for name, peer in found.items() if peer.exact]
    assert len(exact) >= 3
    assert len(set(exact)) == 1
    counts = {row["parameters"] for row in told.rows if "parameters" in row}
    assert len(counts) == 1


@pytest.mark.parametrize("layer", ["encoder", "decoder"])
def test_another_weight_in_a_peer_is_found(layer):
    found = training_step.peers(TINY)
    with torch.no_grad():
        getattr(found["reference"].model, layer)[1].up.weight[0, 0] += 1
    with pytest.raises(AssertionError, match="the loss of reference is"):
        steps.measure(report.Report("", [].append), options(), found, 1, "tiny", megabytes=1)


def test_gradients_agree():
    found = training_step.peers(TINY)
    for name in ("tinytf", "reference", "nn.Transformer"):
        found[name].step()
    wanted = found["tinytf"].model.src_embedding.weight.grad
    assert wanted.abs().max() > 1e-3
    for name in ("reference", "nn.Transformer"):
        grad = found[name].model.source.weight.grad
        torch.testing.assert_close(grad, wanted, atol=1e-6, rtol=1e-4)


def test_dropout_is_in_every_peer(monkeypatch):
    """Without learning, a step's loss changes by dropout alone."""
    monkeypatch.setitem(recipe.RECIPE, "lr", 0.0)
    for dropout in (0.0, 0.5):
        config = GPTConfig(50, 16, 2, 2, max_len=16, dropout=dropout)
        translators = training_step.peers(TINY, dropout)
        for found in (translators, gpt_training_step.peers(config, 2, 8)):
            for name, peer in found.items():
                losses = [peer.step() for _ in range(3)]
                assert (max(losses) - min(losses) > 1e-5) == (dropout > 0), name


class Dropping(TorchDispatchMode):
    """Counts what draws which numbers to drop."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        self.count += name in ("native_dropout", "bernoulli_", "bernoulli")
        return function(*args, **(kwargs or {}))


def test_the_references_drop_as_often_as_ours():
    config = GPTConfig(50, 16, 2, 2, max_len=16, dropout=0.5)
    for found, sublayers in (
        (training_step.peers(TINY, 0.5), 2 * 2 + 2 * 3 + 2),  # and two embeddings
        (gpt_training_step.peers(config, 2, 8), 2 * 2 + 1),
    ):
        for name in ("tinytf", "reference"):
            with Dropping() as dropping:
                found[name].step()
            assert dropping.count == sublayers, name


def test_decoding_agrees():
    model = decoding.build(20, 16, 2, 1)
    timings = decoding.compare(model, 2, 6, options(), 1)
    assert set(timings.seconds) == {"fast", "cached", "uncached", decoding.FLOOR}
    timings = decoding.beside_marian(2, True, 5, options(), 1)
    assert set(timings.seconds) == {"fast", "plain", "Marian"}
    model = GPT(TINY_GPT).eval()
    ids = torch.randint(50, (1, 4))
    timings, text = gpt_decoding.compare(model, ids, 8, 1, options())
    assert text.shape == (1, 12)
    assert {"tinytf", "tinytf fast", *gpt_decoding.PRODUCTS} <= timings.seconds.keys()
    assert gpt_decoding.agreement(model, model, text).startswith("same likeliest token 100.00%")


def test_texts_may_part_at_a_near_tie_and_only_where_that_is_allowed():
    want = torch.tensor([[4, 5, 6], [7, 8, 9]])
    other, asked = torch.tensor([[4, 5, 6], [7, 3, 2]]), []
    logits = torch.zeros(10)

    def score(row, place):
        asked.append((row, place))
        return logits

    texts.check_same("it", want.clone(), want, score)
    texts.check_same("it", other, want, score, exact=False)
    assert asked == [(1, 1)]
    logits[8] = 0.5
    for exact, said in ((None, "it wrote another text$"), (False, "row 1, at place 1, .* by 0.5")):
        with pytest.raises(AssertionError, match=said):
            texts.check_same("it", other, want, score, exact)
    with pytest.raises(AssertionError, match="another text"):
        texts.check_same("it", want[:, :2], want, score, exact=False)


@pytest.mark.parametrize("kind", ["translator", "GPT"])
def test_the_scores_that_a_near_tie_is_judged_by_are_those_that_chose(kind, monkeypatch):
    seen = []
    module = decoding if kind == "translator" else gpt_decoding
    monkeypatch.setattr(module, "check_same", lambda *a: seen.append(a))
    if kind == "translator":
        decoding.compare(decoding.build(20, 16, 2, 1), 2, 6, options(), 1)
    else:
        gpt_decoding.compare(GPT(TINY_GPT).eval(), torch.randint(50, (2, 4)), 8, 1, options())
    _, _, want, score = seen[-1]
    first = 0 if kind == "translator" else 4
    for row, place in ((0, first), (1, 5)):
        logits = score(row, place).detach().clone()
        if kind == "translator":
            logits[[0, 1]] = -torch.inf  # <pad> and <bos> are never written
        assert logits.argmax() == want[row, place]


def test_ways_to_attend_agree():
    assert set(attention.compare(24, 1, options(), 0.0).seconds) >= set(attention.WAYS)


def test_a_slope_is_the_power():
    assert attention.slope({n: 3.0 * n**2 for n in (64, 128, 1024)}) == pytest.approx(2.0)
    assert attention.slope({10: 5.0, 1000: 50.0}) == pytest.approx(0.5)


def takes(megabytes):
    """Make a run that fills a tensor of that size."""
    return lambda: torch.zeros(megabytes, 2**18).add_(1).sum()


@pytest.mark.skipif(sys.platform == "win32", reason="needs the module resource")
def test_peak_memory_is_that_of_the_run():
    assert memory.peak_bytes(takes, 64, warm=(1,)) / 2**20 == pytest.approx(64, abs=8)


def test_phrasebook_and_tokenizing():
    assert phrasebook.compare(20, 1, make_clock()).ratio("drawn", phrasebook.FLOOR).median > 1
    pytest.importorskip("tokenizers")
    from benchmarks import tokenizing

    from tinytf.text.bpe import train_bpe
    from tinytf.text.gpt2_files import GPT2_BYTE_ORDER

    text = "the cat sat on the mat, the dog on the log.\n" * 20
    assert "Hugging Face" in tokenizing.training(text, 20, 1, options()).seconds
    bpe = train_bpe(text, 20, byte_order=GPT2_BYTE_ORDER)
    assert "tinytf cold" in tokenizing.coding(text, bpe, 1, options()).seconds


# ---- the race to exact match


def small_race(**changes):
    config = TrainingConfig(steps=4, warmup=2)
    return contestants.contestants(
        config, 8, "cpu", mixed=True, d_model=16, num_heads=2, num_layers=1, d_ff=32, **changes
    )


def test_contestants_begin_equal_and_see_the_same_sentences():
    racers = small_race()
    (batch,) = exact_match.held_out(20, 20)
    ours, theirs, mixed = (racer.model.eval() for racer in racers.values())
    wanted = ours(batch.src, batch.tgt_in)
    for other in (theirs, mixed):
        torch.testing.assert_close(other(batch.src, batch.tgt_in), wanted, atol=1e-5, rtol=1e-5)
    assert torch.equal(greedy(theirs, batch.src, 8), greedy(ours, batch.src, 8))
    book = Phrasebook()
    drawn = contestants.InDrawnOrder(book, 8, seed=3, pool=5)
    by_length = contestants.PhrasebookBatches(book, 8, seed=3, pool=5)
    one, other = ([p for s in range(5) for p in b.pairs(s)] for b in (drawn, by_length))
    assert sorted(one) == sorted(other)
    assert one != other


def test_contestants_train_on_the_same_sentences(monkeypatch):
    made = []
    plain = contestants.PhrasebookBatches.__init__

    def noted(self, *arguments, **named):
        plain(self, *arguments, **named)
        made.append(self)

    monkeypatch.setattr(contestants.PhrasebookBatches, "__init__", noted)
    small_race()
    seen = [sorted(p for step in range(8) for p in b.pairs(step)) for b in made]
    assert len(seen) == 3
    assert seen[0] == seen[1] == seen[2]


def test_a_race_counts_training_until_the_target():
    clock, shares = Made(), {"fast": 1.0, "slow": 0.5}
    racers = {
        name: contestants.Contestant(name, lambda step, n=name: clock.run(n, 2.0)())
        for name in shares
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_match, "share_exact", lambda model, batches: shares[model])
        results = exact_match.race(racers, [], 0.9, steps=30, clock=clock, chunk=10)
    assert results["fast"] == (2.0, 10, 1.0, True)
    assert results["slow"] == (6.0, 30, 0.5, False)


def test_all_contestants_learn():
    racers = small_race()
    grading = exact_match.held_out(20, 20)
    before = [racer.model.output.weight.detach().clone() for racer in racers.values()]
    results = exact_match.race(racers, grading, 2.0, 4, make_clock(), chunk=2)
    for old, racer, result in zip(before, racers.values(), results.values(), strict=True):
        assert not torch.equal(old, racer.model.output.weight)
        assert result.steps == 4


def test_one_pass_tells_what_greedy_decoding_writes():
    translator = Translator.load(device="cpu")
    with torch.no_grad():
        for layer in translator.model.decoder.layers:
            weight = layer.feed_forward.w_2.weight
            weight.add_(0.25 * torch.randn_like(weight))  # so that it errs
    book = Phrasebook()
    pairs = contestants.PhrasebookBatches(book, 100, 1, "validation", pool=1)
    share = contestants.share_exact(translator.model, [pairs(0)])
    assert 0.05 < share < 0.95
    assert share == pytest.approx(graded(translator, pairs.pairs(0)), abs=0.011)


# ---- the command


def test_every_benchmark_is_found_by_name():
    files = {path.stem for path in FOLDER.glob("*.py")}
    assert set(BENCHMARKS) <= files
    for name in BENCHMARKS:
        if name != "tokenizing":
            assert callable(importlib.import_module(f"benchmarks.{name}").run)


def test_the_command_runs_by_name_and_writes_json(tmp_path, capsys, monkeypatch):
    command = importlib.import_module("benchmarks.__main__")
    path, threads = tmp_path / "out.json", torch.get_num_threads()
    monkeypatch.setattr(phrasebook, "PAIRS", 50)
    arguments = ["--rounds", "2", "--threads", "1", "--cpu", "--json", str(path)]
    try:
        assert command.main(["phrasebook", *arguments]) == 0
    finally:
        torch.set_num_threads(threads)
    assert "aim: pairs a second" in capsys.readouterr().out
    (kept,) = json.loads(path.read_text(encoding="utf-8"))
    assert kept["benchmark"] == "phrasebook"
    assert kept["machine"]["threads"] == 1
    assert kept["options"]["cpu"] is True
    assert [len(row["seconds"]) for row in kept["rows"]] == [2, 2]


def test_without_a_name_it_lists_and_an_unknown_one_is_refused():
    command = [sys.executable, str(FOLDER)]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [*BENCHMARKS]
    refused = subprocess.run([*command, "decode"], capture_output=True, text=True, timeout=120)
    assert refused.returncode == 2
    assert "there is no decode; there are training_step" in refused.stderr


def test_post_norm_start_is_a_model_of_ours():
    """The shape that is compared with Marian has the same sizes, and other outputs."""
    found = training_step.peers(TINY)
    if "tinytf post-norm" not in found:
        pytest.skip("needs transformers")
    assert isinstance(found["tinytf post-norm"].model, Transformer)
    assert found["tinytf post-norm"].model.config.norm == "post"


def test_two_checkouts_are_compared_turn_by_turn(monkeypatch, capsys):
    command, asked = importlib.import_module("benchmarks.__main__"), []
    speeds = {against.HERE: iter((3.0, 8.0)), FOLDER.resolve(): iter((2.0, 4.0))}

    def medians(checkout, arguments):
        asked.append((checkout, arguments))
        return {("t", "both"): next(speeds[checkout]), ("t", checkout.name): 1.0}

    monkeypatch.setattr(against, "medians", medians)
    arguments = ["phrasebook", "--cpu", "--against", str(FOLDER), "--turns", "2", "--threads", "1"]
    assert command.main(arguments) == 0
    told = capsys.readouterr().out
    assert "t, both  1.750 (1.625-1.875)  5500.00   3000.00" in told
    assert FOLDER.name not in told  # a row that only one of them has
    here, there = against.HERE, FOLDER.resolve()
    assert [checkout for checkout, _ in asked] == [here, there, there, here]
    assert all(given == ["phrasebook", "--cpu", "--threads", "1"] for _, given in asked)


def test_a_gpus_debts_fit_into_half_an_hour_and_name_what_there_is():
    assert sum(part.limit for part in gpu.PARTS) <= 1800
    assert [p.writes for p in gpu.PARTS if p.writes] == [studies.FOLDER / "cost_gpu.json"]
    for part in gpu.PARTS:
        known = set(part.arguments) & {*BENCHMARKS, "cost_gpu", "pytest"}
        assert len(known) == 1, part


def test_each_of_a_gpus_debts_is_tried_whatever_became_of_the_others(capsys, tmp_path):
    parts = [
        gpu.Part("good", ("-c", "print('all is well')"), 60),
        gpu.Part("bad", ("-c", "raise SystemExit(3)"), 60),
        gpu.Part("endless", ("-c", ENDLESS, str(tmp_path)), 3),
        gpu.Part("writes", ("-c", "pass"), 60, tmp_path / "table"),
    ]
    (tmp_path / "table").write_text("what it wrote")
    told = report.Report("gpu")
    gpu.run(options(), told, parts, lambda: True)
    said = capsys.readouterr().out
    assert "all is well" in said
    assert "so far" in said
    assert "what it wrote" in said
    before = (tmp_path / "alive").read_text()
    time.sleep(0.5)
    assert (tmp_path / "alive").read_text() == before  # what a part has started ends with it
    table = said[said.index("what a GPU owes") :]
    for line in ("good done", "bad failed (3)", "endless stopped after its 3 s"):
        assert line in " ".join(table.split())
    assert len(told.values) == 4
    with pytest.raises(RuntimeError, match="this needs a CUDA GPU"):
        gpu.run(options(), told, parts, lambda: False)
