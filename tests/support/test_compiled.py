"""Methods of a compiled model run compiled."""

import pytest
import torch
from gpt_support import decided_gpt, prompts

from tinytf.support.compiled import compiled_method


def test_a_plain_models_method_is_its_own():
    model = decided_gpt(0)
    assert compiled_method(model, "decode") == model.decode


def test_a_compiled_models_method_is_compiled_once_and_as_the_model_is(exact):
    graphs, runs = [], []

    def backend(graph, _inputs):
        graphs.append(1)
        return lambda *inputs: runs.append(1) or graph.forward(*inputs)

    model, ids = decided_gpt(0, exact), prompts(2, 5, exact)
    compiled = torch.compile(model, backend=backend)
    expected = model.decode(ids)
    assert torch.equal(compiled.decode(ids), expected)
    assert not runs  # which is why this function exists
    for _ in range(3):
        assert torch.equal(compiled_method(compiled, "decode")(ids), expected)
    assert (graphs, runs) == ([1], [1, 1, 1])


def test_a_method_that_is_not_there_is_an_error():
    with pytest.raises(AttributeError):
        compiled_method(torch.compile(decided_gpt(0)), "encode")
