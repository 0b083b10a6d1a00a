"""Models of a header and its tensors: sizes compared first, then filled."""

import dataclasses

import pytest
import torch
from torch import nn

from tinytf.gpt import GPT, GPTConfig
from tinytf.related.recurrent_seq2seq import RecurrentConfig, RecurrentSeq2Seq
from tinytf.support.files import CheckpointError
from tinytf.training.checkpointing import model_tensors
from tinytf.training.model_files import build, fill
from tinytf.transformer import Transformer, TransformerConfig

KINDS = {
    "gpt": (GPT, GPTConfig(11, 12, 3, 2, 20, 16)),
    "transformer": (Transformer, TransformerConfig(11, 9, 12, 3, 2, 20, max_len=24)),
    "recurrent": (RecurrentSeq2Seq, RecurrentConfig(11, 9, 12, 8)),
}
EVERY = pytest.mark.parametrize(("model_class", "config"), KINDS.values(), ids=KINDS)


class Tied(nn.Module):
    """A table that is also the output's matrix, and a map."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 3)
        self.inner = nn.Sequential(nn.Linear(3, 3))
        self.output = nn.Linear(3, 5, bias=False)
        self.output.weight = self.table.weight


def test_a_model_on_the_meta_device_is_filled_with_copies_and_stays_tied():
    with torch.device("meta"):
        model = Tied()
    given = {"table.weight": torch.rand(5, 3).half(), "inner.0.weight": torch.rand(3, 3).t(),
             "inner.0.bias": torch.rand(3)}  # fmt: skip
    before = torch.get_rng_state()
    model = fill(model, given)
    assert torch.equal(before, torch.get_rng_state())
    assert not model.training
    assert model.output.weight is model.table.weight
    for name, p in model.named_parameters():
        assert torch.equal(p, given[name].float()), name
        assert p.requires_grad
        assert p.is_contiguous()
        assert p.dtype == torch.float32
        assert p.data_ptr() != given[name].data_ptr()


def test_what_has_no_value_is_named():
    with torch.device("meta"):
        model = Tied()
        model.register_buffer("positions", torch.arange(3.0))
    with pytest.raises(ValueError, match=r"no values yet: inner\.0\.bias, positions$"):
        fill(model, {"table.weight": torch.rand(5, 3), "inner.0.weight": torch.rand(3, 3)})


@EVERY
def test_a_model_is_built_with_its_weights_and_nothing_is_drawn(model_class, config):
    model = model_class(config)
    before = torch.get_rng_state()
    again = build(model_class, type(config), dataclasses.asdict(config), model_tensors(model), "w")
    assert torch.equal(before, torch.get_rng_state())
    assert not again.training
    assert again.config == config
    assert again.state_dict().keys() == model.state_dict().keys()
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name
    assert [n for n, _ in again.named_buffers()] == [n for n, _ in model.named_buffers()]


@EVERY
@pytest.mark.parametrize("size", [10**12, 10**8, 10**5, -1, 0, 2.0, "12", True, [1]])
def test_sizes_that_no_tensor_backs_are_refused_at_once(model_class, config, size):
    tensors, said = model_tensors(model_class(config)), dataclasses.asdict(config)
    for name, value in said.items():
        if type(value) is not int or name == "pad_id":
            continue
        if name == "max_len" and size == 10**5 and model_class is not GPT:
            continue  # a table of a few megabytes may be computed
        if name == "max_len" and size == 10**8 and model_class is RecurrentSeq2Seq:
            continue  # a limit, no table
        with pytest.raises(CheckpointError, match=r"^some\.file: "):
            build(model_class, type(config), said | {name: size}, tensors, "some.file")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": 1}, "says colour=1, which this version's GPTConfig does not know; a later"),
        ({"num_layers": 10**8}, r"num_layers=100000000, the file has 3\d tensors$"),
        ({"num_layers": 3}, "missing decoder.layers.2"),
        ({"d_model": 24}, r"final_norm.bias has shape \(12,\), the model expects \(24,\)"),
        ({"num_heads": 5}, "d_model=12 is not divisible by num_heads=5"),
        ({"dropout": float("nan")}, "dropout must be a finite number, got nan"),
        ({"d_ff": 10**40}, "d_ff must be .*, got 1000000"),
    ],
)
def test_a_configuration_that_can_not_be_used_is_named(change, message):
    model_class, config = KINDS["gpt"]
    tensors, said = model_tensors(model_class(config)), dataclasses.asdict(config)
    with pytest.raises(CheckpointError, match=message):
        build(GPT, GPTConfig, said | change, tensors, "w")


def test_tensors_that_are_no_weights_are_named():
    model_class, config = KINDS["gpt"]
    tensors, said = model_tensors(model_class(config)), dataclasses.asdict(config)
    bad = tensors | {"embedding.weight": tensors["embedding.weight"].to(torch.int8)}
    with pytest.raises(
        CheckpointError, match=r"embedding\.weight is of torch\.int8, the model exp"
    ):
        build(GPT, GPTConfig, said, bad, "w")
    bad = tensors | {"positions.table": tensors["positions.table"] / 0}
    with pytest.raises(CheckpointError, match=r"positions\.table\[0, 0\] is -?inf, and a weight"):
        build(GPT, GPTConfig, said, bad, "w")
    for said in (7, [1], None, {"d_model": {}}):
        with pytest.raises(CheckpointError, match=r"^w: "):
            build(GPT, GPTConfig, said, tensors, "w")


def test_a_table_that_no_tensor_backs_is_refused():
    model_class, config = KINDS["transformer"]
    tensors, said = model_tensors(model_class(config)), dataclasses.asdict(config)
    with pytest.raises(CheckpointError, match=r"positions.table would take 1200000000 numbers"):
        build(Transformer, TransformerConfig, said | {"max_len": 10**8}, tensors, "w")
