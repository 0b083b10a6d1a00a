"""Computing without gradients, where nobody can notice how: what is made can be used as before."""

import pytest
import torch
from gpt_support import decided_gpt, prompts
from support import random_ids, small_model
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

from tinytf.decoding.fast import fast_decoder
from tinytf.decoding.generate import generate
from tinytf.decoding.search import beam_search, greedy
from tinytf.inspect import record
from tinytf.support.modes import without_gradients


class Watching(TorchFunctionMode):
    """A mode that is told of every call of a function of torch's."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


def modes_of(model):
    """Whether torch's inference mode holds, and whether gradients are computed."""
    with without_gradients(model):
        return torch.is_inference_mode_enabled(), torch.is_grad_enabled()


def test_inference_mode_is_for_models_into_which_nobody_looks():
    model = small_model()
    assert modes_of(model) == modes_of(fast_decoder(model)) == (True, False)
    assert torch.is_grad_enabled()
    handle = model.encoder.layers[0].register_forward_hook(lambda *_: None)
    assert modes_of(model) == (False, False)
    handle.remove()
    with record(model):
        assert modes_of(model) == (False, False)
    model.output.forward = model.output.forward  # a method of its own may keep what it is given
    assert modes_of(model) == (False, False)


def test_a_readers_own_part_and_a_compiled_model_compute_as_before():
    class Mine(torch.nn.Linear):
        pass

    model = small_model()
    model.encoder.layers[0].feed_forward.w_1 = Mine(12, 20)
    assert modes_of(model) == (False, False)
    model = small_model()
    model.compile()
    assert modes_of(model) == (False, False)


def test_what_counts_operations_is_told_of_them():
    model = small_model()
    src = random_ids([4, 2], model.config.src_vocab_size)
    with FlopCounterMode(display=False) as counter:
        assert modes_of(model) == (False, False)
        greedy(model, src, 3)
    assert counter.get_total_flops() > 0
    with Watching():
        assert modes_of(model) == (False, False)
    assert modes_of(model) == (True, False)


@pytest.mark.parametrize("fast", [False, True])
def test_what_is_written_can_be_learned_from_and_changed(fast):
    gpt, seq2seq = decided_gpt(0).eval(), small_model().eval()
    src = random_ids([4, 2], seq2seq.config.src_vocab_size)
    made = [fast_decoder(m) if fast else m for m in (gpt, seq2seq)]
    text, translation = generate(made[0], prompts(2, 3), 4), greedy(made[1], src, 5)
    beam_search(made[1], src, 2, max_len=3)
    for ids in (text, translation):
        assert not ids.is_inference()
        ids[0, 0] = 3
    gpt(text).sum().backward()  # torch refuses to save what inference mode made
    seq2seq(src, translation).sum().backward()
    assert gpt.embedding.weight.grad.any()
    assert seq2seq.tgt_embedding.weight.grad.any()


def test_what_is_recorded_while_it_writes_can_be_learned_from():
    model = small_model()
    name = "decoder.layers.0"
    with record(model, name) as seen:
        greedy(model, random_ids([4, 2], model.config.src_vocab_size), 3)
    probe = torch.nn.Linear(seen[name].size(-1), 2, dtype=seen[name].dtype)
    probe(seen[name]).sum().backward()
    assert probe.weight.grad.any()
