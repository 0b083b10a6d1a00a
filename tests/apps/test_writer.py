"""The writer: what it writes, what a text costs it, and its files."""

import pytest
import torch
from gpt_support import TEXT

from tinytf.apps.writer import SHIPPED, Writer
from tinytf.cli import pretrain
from tinytf.data.corpus import END_OF_TEXT, corpus
from tinytf.decoding.generate import generate
from tinytf.decoding.likelihood import bits_per_byte
from tinytf.decoding.sampling import Sampling
from tinytf.gpt import GPT, GPTConfig
from tinytf.text.bpe import train_bpe
from tinytf.training import checkpointing
from tinytf.training.checkpointing import CheckpointError


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


def test_one_that_was_trained_on_whole_documents_begins_one(tmp_path):
    plain = small_writer()
    whole = Writer(plain.model, plain.tokenizer, begins=True)
    read = [plain.end_id, *plain.tokenizer.encode("the cat")]
    keep = plain.model.config.max_len // 2
    ids = generate(plain.model, torch.tensor([read]), 9, end_id=plain.end_id, keep=keep)[0].tolist()
    new = [i for i in ids[len(read) :] if i != plain.end_id]
    assert whole.write("the cat", 9) == "the cat" + plain.tokenizer.decode(new)
    assert whole.write("the cat", 9) != plain.write("the cat", 9)
    assert whole.write("", 9) == plain.write("", 9)
    whole.save(tmp_path / "whole")
    plain.save(tmp_path / "plain")
    assert Writer.load(tmp_path / "whole", "cpu").begins
    assert not Writer.load(tmp_path / "plain", "cpu").begins


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
