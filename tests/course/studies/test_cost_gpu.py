"""The study of cost on a GPU, where there is none."""

import pytest
import torch

from tinytf.gpt import GPT, GPTConfig
from tinytf_course.studies.cost_gpu import _Graphed, cost_gpu

TINY = GPTConfig(61, 12, 3, 2, max_len=16)


def test_the_step_that_becomes_a_graph_is_the_models():
    model = GPT(TINY).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    ids, cache = torch.randint(61, (1, 16)), model.decoder.new_cache()
    with torch.no_grad():
        model(ids[:, :15], cache)
        step = object.__new__(_Graphed)  # capturing takes a GPU
        step.model, step.ids = model, ids[:, 15:]
        step.room = [(layer.k, layer.v) for layer in cache]
        found = [step.step() for _ in range(2)]
        assert found[0] == found[1] == model(ids)[:, -1].argmax(dim=-1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_the_gpus_study_says_what_it_needs():
    with pytest.raises(RuntimeError, match="needs a CUDA GPU, and torch sees none"):
        cost_gpu()
