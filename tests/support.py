"""What the oracle tests share: twins of torch's modules with equal weights, and small models."""

import signal
import warnings
from contextlib import contextmanager
from importlib.util import find_spec

import pytest
import torch
from hypothesis import HealthCheck, settings
from torch import nn

from tinytf.text.words import EOS, PAD
from tinytf.training import checkpointing
from tinytf.transformer import Transformer, TransformerConfig

# for properties: the same examples every time; the `device` fixture does not change between them
bounded = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

# asked without importing it, which takes a second of every worker
needs_scikit_learn = pytest.mark.skipif(not find_spec("sklearn"), reason="no scikit-learn")

# largest difference allowed against an oracle, absolute and relative
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


@contextmanager
def warnings_as_errors():
    """Raise what is warned of in the block, but for what other tests left open.

    That is closed, and warned of, whenever Python next looks for cycles.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("default", ResourceWarning)
        yield


def randomise(module, std=0.3):
    """Draw every parameter anew, so that no gain of 1 or bias of 0 hides a mistake."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=std)
    return module


def small_model(device="cpu", dtype=torch.float64, **changes):
    """A Transformer small enough for hundreds of runs, in training mode without dropout."""
    sizes = {"src_vocab_size": 11, "tgt_vocab_size": 9, "d_model": 12, "num_heads": 3,
             "num_layers": 2, "d_ff": 20, "dropout": 0.0, "max_len": 24}  # fmt: skip
    return Transformer(TransformerConfig(**sizes | changes)).to(device, dtype)


def random_ids(lengths, vocab_size, device="cpu", width=None, end=True):
    """Rows of words, each of its length with the final <eos>, padded to `width`."""
    ids = torch.full((len(lengths), width or max(lengths)), PAD)
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = torch.randint(3, vocab_size, (length,))
        if end:
            row[length - 1] = EOS
    return ids.to(device)


# Twins: pairs of ([our parameters], their parameter), where theirs is ours one below the other.


def attention_twins(ours, theirs):
    projections = (ours.w_q, ours.w_k, ours.w_v)
    return [
        ([p.weight for p in projections], theirs.in_proj_weight),
        ([p.bias for p in projections], theirs.in_proj_bias),
        *module_twins(ours.w_o, theirs.out_proj),
    ]


def module_twins(ours, theirs):
    return [([ours.weight], theirs.weight), ([ours.bias], theirs.bias)]


def layer_twins(ours, theirs):
    """Of an encoder or a decoder layer."""
    twins = attention_twins(ours.self_attention, theirs.self_attn)
    twins += module_twins(ours.feed_forward.w_1, theirs.linear1)
    twins += module_twins(ours.feed_forward.w_2, theirs.linear2)
    twins += module_twins(ours.residual_1.norm, theirs.norm1)
    twins += module_twins(ours.residual_2.norm, theirs.norm2)
    if hasattr(ours, "cross_attention"):
        twins += attention_twins(ours.cross_attention, theirs.multihead_attn)
        twins += module_twins(ours.residual_3.norm, theirs.norm3)
    return twins


def stack_twins(ours, theirs):
    """Of a whole encoder or decoder; torch's final norm goes where ours has none."""
    twins = [t for a, b in zip(ours.layers, theirs.layers, strict=True) for t in layer_twins(a, b)]
    if isinstance(ours.final_norm, nn.Identity):
        theirs.norm = None
    else:
        twins += module_twins(ours.final_norm, theirs.norm)
    return twins


def copy_twins(twins):
    with torch.no_grad():
        for ours, theirs in twins:
            theirs.copy_(torch.cat(ours))


def assert_equal_with_gradients(run_ours, run_theirs, inputs, twins=()):
    """Both compute the same, and pass the same gradient to every input and every parameter."""
    copy_twins(twins)
    mine = [x.detach().clone().requires_grad_() for x in inputs]
    yours = [x.detach().clone().requires_grad_() for x in inputs]
    a, b = run_ours(*mine), run_theirs(*yours)
    probe = torch.randn_like(b)
    a.backward(probe)
    b.backward(probe)
    limit = TOLERANCE[b.dtype]
    torch.testing.assert_close(a, b, atol=limit, rtol=limit)
    for x, y in zip(mine, yours, strict=True):
        torch.testing.assert_close(x.grad, y.grad, atol=limit, rtol=limit)
    for ours, theirs in twins:
        grad = torch.cat([p.grad for p in ours])
        torch.testing.assert_close(grad, theirs.grad, atol=limit, rtol=limit)


def assert_same_tensors(found, expected):
    """The same names, and behind each the same bits; nothing is a view that a file can't hold."""
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name
        assert found[name].is_contiguous(), name


def assert_same_file(a, b):
    """Two runs ended in the same bits: weights, optimiser and random state."""
    first, second = (checkpointing.read(path)[0] for path in (a, b))
    assert first.keys() == second.keys()
    assert any(name.startswith("optimizer/") for name in first)
    assert not [name for name in first if not torch.equal(first[name], second[name])]


def interrupt_at(patch, batches, step):
    """Press Ctrl-C when this step's batch is asked of a class of batches, as long as `patch` is."""
    asked = batches.__call__

    def interrupting(self, number):
        if number == step:
            signal.raise_signal(signal.SIGINT)
        return asked(self, number)

    patch.setattr(batches, "__call__", interrupting)
