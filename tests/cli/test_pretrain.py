"""The command that pretrains a writer: what it trains on, resumes and refuses."""

import os
from dataclasses import replace

import pytest
import torch
from gpt_support import TEXT, TINY
from support import assert_same_file, interrupt_at

from tinytf.apps.writer import Writer
from tinytf.cli import pretrain, write
from tinytf.data.blocks import TextBlocks
from tinytf.data.corpus import END_OF_TEXT, Corpus
from tinytf.decoding.sampling import Sampling
from tinytf.text.bpe import train_bpe
from tinytf.training import checkpointing
from tinytf.training.trainer import TrainingConfig


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text").write_text(TEXT)
    return tmp_path / "text"


@pytest.fixture
def run(tmp_path, text):
    """Run the command on a short text, its file in a folder of its own unless it is named."""

    def command(*options, out="run"):
        return pretrain.main([*TINY, "--text", str(text), "--out", str(tmp_path / out), *options])

    return command


def test_a_text_is_cheaper_for_who_has_read_it():
    trainer, writer = pretrain.build(
        TrainingConfig(steps=80, **pretrain.RECIPE | {"warmup": 5, "lr": 1e-2}),
        Corpus([TEXT], [TEXT]), batch_size=4, vocab_size=270, device="cpu",
        d_model=12, num_heads=3, num_layers=1, max_len=16, dropout=0.0,
    )  # fmt: skip
    before = pretrain.evaluate(writer, [TEXT, TEXT])
    trainer.run()
    after = pretrain.evaluate(writer, [TEXT, TEXT])
    assert after < 1 < 3 < before
    assert after == pytest.approx(writer.bits_per_byte(TEXT))


def test_what_is_held_out_teaches_the_tokenizer_nothing_and_the_seed_decides_the_rest():
    texts, sizes = Corpus(["ab ab " * 99], ["xy xy " * 99]), {"d_model": 12, "num_heads": 3}
    sizes |= {"num_layers": 1, "max_len": 16, "vocab_size": 260, "device": "cpu"}
    config = TrainingConfig(steps=9, warmup=1)
    runs = [pretrain.build(replace(config, seed=seed), texts, 2, **sizes) for seed in (0, 0, 1)]
    (one, writer), (same, _), (other, _) = runs
    assert (
        writer.tokenizer.merges
        == train_bpe(texts.train, vocab_size=260, special_tokens=[END_OF_TEXT]).merges
    )
    order, weight = [[t.batches.starts(i) for i in range(9)] for t in (one, same, other)], [
        t.model.output.weight for t in (one, same, other)
    ]  # fmt: skip
    assert order[0] == order[1] != order[2]
    assert torch.equal(weight[0], weight[1])
    assert not torch.equal(weight[0], weight[2])


def test_it_pretrains_saves_evaluates_and_writes(run, tmp_path, capsys):
    assert run("--export", str(tmp_path / "small"), "--evaluate-every", "2") == 0
    out, err = capsys.readouterr()
    assert "6 steps in" in out
    assert "bits per byte on held-out text" in out
    shown = out + err
    assert "step 2: " in shown
    assert "step 4: " in shown
    assert checkpointing.read(tmp_path / "run")[1]["step"] == 6
    exported, whole = (Writer.load(tmp_path / name, "cpu") for name in ("small", "run"))
    for a, b in zip(exported.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(a, b.half().float())
    assert os.path.getsize(tmp_path / "small") < 0.3 * os.path.getsize(tmp_path / "run")
    command = ["the cat", "--model", str(tmp_path / "small"), "--tokens", "9"]
    writer, hot = Writer.load(tmp_path / "small"), Sampling(temperature=3.0)
    for options, sampling, seed in (([], None, 0), (["--temperature", "3", "--seed", "2"], hot, 2)):
        assert write.main([*command, *options]) == 0
        assert capsys.readouterr().out == writer.write("the cat", 9, sampling, seed) + "\n"
    assert writer.write("the cat", 9, hot, 2) != writer.write("the cat", 9, hot)


def test_options_reach_the_run(run, tmp_path):
    chosen = {"steps": 5, "warmup": 3, "lr": 0.004, "min_lr": 0.001, "accumulate": 2, "seed": 7}
    precision = {"precision": "bfloat16", "attention": "explicit"}
    sizes = {"d_model": 8, "num_heads": 2, "num_layers": 2, "max_len": 12, "dropout": 0.3}
    options = chosen | precision | sizes | {"vocab_size": 270, "batch_size": 3}
    assert run(*[f"--{k.replace('_', '-')}={v}" for k, v in options.items()]) == 0
    header = checkpointing.read(tmp_path / "run")[1]
    assert {k: header["training"][k] for k in chosen | precision} == chosen | precision
    sizes["vocab_size"] = 270
    assert {k: header["model"][k] for k in sizes} == sizes
    assert header["batch_size"] == 3


def test_evaluating_and_stopping_on_the_way_change_nothing(run, tmp_path, monkeypatch):
    assert run(out="whole") == 0
    with monkeypatch.context() as patch:
        interrupt_at(patch, TextBlocks, 3)
        assert run("--evaluate-every", "1") == 130
    assert run("--evaluate-every", "1", "--resume") == 0
    assert_same_file(tmp_path / "run", tmp_path / "whole")


def test_a_run_is_not_resumed_on_another_text(run, text, capsys):
    run()
    text.write_text(TEXT.replace(".", "!"))  # the same number of tokens
    assert run("--resume") == 2
    assert "was trained on another text" in capsys.readouterr().err


def test_it_says_what_is_wrong(run, tmp_path, text, capsys):
    run()
    assert run("--resume", "--d-model", "24") == 2
    assert "d_model=12" in capsys.readouterr().err
    for options, message in (
        (["--text", str(tmp_path / "none")], "none"),
        (["--max-len", "5000"], "too short for one block of length=5000"),
        (["--num-heads", "5"], "d_model=12 is not divisible by num_heads=5"),
        (["--vocab-size", "100"], "vocab_size=100 is less than the 256 bytes"),
        (["--evaluate-every", "0"], "--evaluate-every must be at least 1, got 0"),
    ):
        assert run(*options, out="other") == 2
        assert message in capsys.readouterr().err
    text.write_text("x")
    assert run(out="other") == 2
    assert "holds 1 characters: too few to divide" in capsys.readouterr().err
