"""The writer, and `python -m tinytf pretrain` and `tinytf.cli.write` as a person uses them."""

import os
from dataclasses import replace

import pytest
import torch
from support import assert_same_file, interrupt_at

from tinytf.apps.writer import SHIPPED, Writer
from tinytf.cli import pretrain, write
from tinytf.data.blocks import TextBlocks
from tinytf.data.corpus import END_OF_TEXT, Corpus, corpus
from tinytf.decoding.generate import generate
from tinytf.decoding.likelihood import bits_per_byte
from tinytf.decoding.sampling import Sampling
from tinytf.gpt import GPT, GPTConfig
from tinytf.text.bpe import train_bpe
from tinytf.training import checkpointing
from tinytf.training.checkpointing import CheckpointError
from tinytf.training.trainer import TrainingConfig

TEXT = "the cat sat on the mat and the dog sat on the log.\n\n" * 40
TINY = [
    "--steps", "6", "--warmup", "2", "--batch-size", "2", "--precision", "float32", "--max-len",
    "16", "--d-model", "12", "--num-heads", "3", "--num-layers", "1", "--vocab-size", "280",
]  # fmt: skip


def small_writer(seed=0, **changes):
    tokenizer = train_bpe(TEXT, vocab_size=270, special_tokens=[END_OF_TEXT])
    torch.manual_seed(seed)
    sizes = {"d_model": 12, "num_heads": 3, "num_layers": 1, "max_len": 16}
    model = GPT(GPTConfig(len(tokenizer), **sizes | changes))
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(std=0.5)
        model.positions.table.mul_(3)  # so that texts differ by prompt and position
        model.decoder.final_norm.bias.zero_()
    return Writer(model, tokenizer)


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


# ---- the writer


def test_it_writes_on_after_the_prompt():
    writer = small_writer()
    greedy = writer.write("the cat", 9)
    assert greedy.startswith("the cat")
    assert len(greedy) > len("the cat")
    assert writer.write("the cat", 9) == greedy
    drawn = {seed: writer.write("the cat", 9, Sampling(temperature=2.0), seed) for seed in range(5)}
    assert len(set(drawn.values())) > 1
    assert writer.write("the cat", 9, Sampling(temperature=2.0), 3) == drawn[3]
    assert writer.write("the cat", 0) == "the cat"


def test_it_stops_at_the_end_of_the_text():
    writer = small_writer()
    with torch.no_grad():
        writer.model.embedding.weight[writer.end_id] *= 10  # so that it is nearest to itself
        writer.model.decoder.final_norm.weight.zero_()
        writer.model.decoder.final_norm.bias.copy_(
            100 * writer.model.embedding.weight[writer.end_id]
        )
    assert writer.write("the cat", 50) == "the cat"
    assert writer.write("", 50) == ""


@pytest.mark.parametrize("prompt", ["", "the cat", "the cat sat " * 20])
def test_it_writes_what_its_model_generates(prompt):
    """Up to the first end of text, though the model would go on; an empty prompt begins one."""
    writer = small_writer(seed=4)
    ids = torch.tensor([writer.tokenizer.encode(prompt) or [writer.end_id]])
    greedy = generate(writer.model, ids, 9, end_id=writer.end_id, keep=8)[0, ids.size(1) :].tolist()
    said = writer.tokenizer.decode([i for i in greedy if i != writer.end_id])
    assert writer.write(prompt, 9) == prompt + said != prompt
    hot, ended = Sampling(temperature=20.0), 0
    for seed in range(8):
        draw = torch.Generator().manual_seed(seed)
        out = generate(writer.model, ids, 150, hot, generator=draw, keep=8)  # half of its context
        new = out[0, ids.size(1) :].tolist()
        if writer.end_id in new[:-1]:
            new, ended = new[: new.index(writer.end_id)], ended + 1
        assert writer.write(prompt, 150, hot, seed) == prompt + writer.tokenizer.decode(new)
    assert ended > 1


def test_its_bits_are_those_of_its_model():
    writer, text = small_writer(), "the cat sat on the café, the dog on the log. " * 3
    ids = torch.tensor([writer.end_id, *writer.tokenizer.encode(text)])
    for context in (None, 4):
        expected = bits_per_byte(writer.model, ids, len(text.encode()), context)
        assert writer.bits_per_byte(text, context) == expected
    assert writer.bits_per_byte(text) != writer.bits_per_byte(text, 4)


def test_saved_and_loaded_it_writes_the_same(tmp_path):
    writer = small_writer()
    writer.save(tmp_path / "w", torch.float32)
    again = Writer.load(tmp_path / "w", "cpu")
    assert not again.model.training
    assert again.tokenizer.merges == writer.tokenizer.merges
    assert again.write("the", 20) == writer.write("the", 20)
    writer.save(tmp_path / "half")
    for a, b in zip(Writer.load(tmp_path / "half", "cpu").model.parameters(),
                    writer.model.parameters(), strict=True):  # fmt: skip
        assert torch.equal(a, b.half().float())


def test_a_writer_refuses_what_does_not_fit(tmp_path):
    writer = small_writer()
    with pytest.raises(ValueError, match="vocabulary has 270 entries, the tokenizer 269"):
        Writer(writer.model, train_bpe(TEXT, vocab_size=269, special_tokens=[END_OF_TEXT]))
    with pytest.raises(ValueError, match="one special token"):
        Writer(writer.model, train_bpe(TEXT, vocab_size=270))
    with pytest.raises(ValueError, match="one special token"):
        Writer(writer.model, train_bpe(TEXT, vocab_size=270, special_tokens=[END_OF_TEXT, "x"]))
    writer.tokenizer.byte_order = bytes(range(255, -1, -1))
    with pytest.raises(ValueError, match="numbers bytes by their value"):
        writer.save(tmp_path / "order")
    writer = small_writer()
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        Writer.load(tmp_path / "none")
    checkpointing.write(
        tmp_path / "other", {"a": torch.ones(2)}, {"kind": "translator", "model": {}}
    )
    with pytest.raises(CheckpointError, match="not a writer: it lacks merges, special_tokens"):
        Writer.load(tmp_path / "other")
    tensors, header = dict(writer.model.named_parameters()), writer.header()
    for change, message in (
        ({"merges": [[300, 2]]}, "is not a writer: merge 0 joins"),
        ({"model": header["model"] | {"d_model": 13}}, "d_model=13 is not divisible"),
        ({"model": header["model"] | {"d_model": 24}}, "has shape .* the model expects"),
        ({"model": header["model"] | {"colour": 1}}, "colour"),
        ({"special_tokens": ["x", "y"]}, "is not a writer"),
    ):
        checkpointing.write(tmp_path / "bad", tensors, header | {"kind": "writer"} | change)
        with pytest.raises(CheckpointError, match=message):
            Writer.load(tmp_path / "bad")
    writer.save(tmp_path / "cut")
    whole = (tmp_path / "cut").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CheckpointError, match="truncated"):
        Writer.load(tmp_path / "cut")


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


def test_a_text_of_ones_own_is_divided_once(tmp_path):
    (tmp_path / "text").write_text("".join(map(chr, range(300, 400))), encoding="utf-8")
    train, validation = pretrain.own_text(tmp_path / "text")
    assert (len(train[0]), len(validation[0])) == (90, 10)
    assert train[0] + validation[0] == (tmp_path / "text").read_text(encoding="utf-8")


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


# ---- the shipped one


def test_the_shipped_writer_is_small_and_knows_the_manual(device):
    assert SHIPPED.stat().st_size <= 8_000_000
    writer = Writer.load(device=device)
    held_out = corpus(docstrings=False).validation
    assert pretrain.evaluate(writer, held_out[:3]) < 2.5  # 8 without a model
    text = writer.write('The "with" statement', 60, Sampling(temperature=0.7, top_p=0.9))
    words = set(" ".join(corpus(docstrings=False).train).split())
    new = text.removeprefix('The "with" statement').split()[:-1]
    assert len(new) > 15
    assert sum(word in words for word in new) / len(new) > 0.7


# ---- the commands


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
    chosen = {"steps": 5, "warmup": 3, "lr": 0.004, "accumulate": 2, "seed": 7}
    precision = {"precision": "bfloat16", "attention": "explicit"}
    sizes = {"d_model": 8, "num_heads": 2, "num_layers": 2, "max_len": 12, "dropout": 0.3}
    options = chosen | precision | sizes | {"vocab_size": 270, "batch_size": 3}
    assert run(*[f"--{k.replace('_', '-')}={v}" for k, v in options.items()]) == 0
    header = checkpointing.read(tmp_path / "run")[1]
    assert {k: header["training"][k] for k in chosen | precision} == chosen | precision
    sizes["vocab_size"] = 270
    assert {k: header["model"][k] for k in sizes} == sizes
    assert header["batch_size"] == 3


def test_a_short_run_warms_up_for_half_of_it(text, tmp_path):
    pretrain.main([*TINY[:2], *TINY[4:], "--text", str(text), "--out", str(tmp_path / "run")])
    assert checkpointing.read(tmp_path / "run")[1]["training"]["warmup"] == 3


def test_an_interrupted_run_resumes_to_the_same_bits(run, tmp_path, capsys, monkeypatch):
    assert run(out="whole") == 0
    with monkeypatch.context() as patch:
        interrupt_at(patch, TextBlocks, 3)
        assert run() == 130
    assert "stopped after step 4 of 6; add --resume to go on" in capsys.readouterr().out
    assert checkpointing.read(tmp_path / "run")[1]["step"] == 4
    assert run("--resume") == 0
    assert_same_file(tmp_path / "run", tmp_path / "whole")


def test_evaluating_on_the_way_changes_nothing(run, tmp_path):
    run(out="often")
    run("--evaluate-every", "1", out="each")
    assert_same_file(tmp_path / "often", tmp_path / "each")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--batch-size", "3"], "trained with batch_size=2, but this run has batch_size=3"),
        (["--steps", "9"], "trained with steps=6, but this run has steps=9"),
        (["--d-model", "24"], "d_model=12"),
    ],
)
def test_a_run_is_not_resumed_with_other_options(run, tmp_path, capsys, options, message):
    run()
    before = (tmp_path / "run").read_bytes()
    assert run("--resume", *options) == 2
    assert message in capsys.readouterr().err
    assert (tmp_path / "run").read_bytes() == before


def test_a_run_is_not_resumed_on_another_text(run, text, capsys):
    run()
    text.write_text(TEXT.replace(".", "!"))  # the same number of tokens
    assert run("--resume") == 2
    assert "was trained on another text" in capsys.readouterr().err


def test_commands_say_what_is_wrong(run, tmp_path, text, capsys):
    run()
    before = (tmp_path / "run").read_bytes()
    assert run() == 2
    assert "run exists: add --resume to go on, or choose another --out" in capsys.readouterr().err
    assert (tmp_path / "run").read_bytes() == before
    for options, message in (
        (["--text", str(tmp_path / "none")], "none"),
        (["--max-len", "5000"], "too short for one block of length=5000"),
        (["--num-heads", "5"], "d_model=12 is not divisible by num_heads=5"),
        (["--vocab-size", "100"], "vocab_size=100 is less than the 256 bytes"),
        (["--evaluate-every", "0"], "--evaluate-every must be at least 1, got 0"),
        (["--resume"], "there is no checkpoint"),
    ):
        assert run(*options, out="other") == 2
        assert message in capsys.readouterr().err
    text.write_text("x")
    assert run(out="other") == 2
    assert "holds 1 characters: too few to divide" in capsys.readouterr().err
    for options, message in (
        (["--temperature", "0"], "temperature must be positive"),
        (["--top-p", "1.5"], "top_p"),
        (["--tokens", "-1"], "max_new_tokens must be at least 0"),
        (["--model", str(tmp_path / "none")], "there is no checkpoint"),
    ):
        assert write.main(["a", "--model", str(tmp_path / "run"), *options]) == 2
        assert message in capsys.readouterr().err
