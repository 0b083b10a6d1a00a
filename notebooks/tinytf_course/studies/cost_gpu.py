"""The study of cost on a GPU: training GPT-2 small, and decoding with and without graphs."""

from collections.abc import Callable

import torch
from torch import Tensor

from tinytf.decoding.generate import generate
from tinytf.gpt import GPT, GPTConfig
from tinytf.metrics.cost import flops, gpt_products, parameters
from tinytf_course.studies.cost import TrainingStep
from tinytf_course.studies.interleaved import interleave, make_clock

__all__ = [
    "cost_gpu",
]


def cost_gpu(steps: int = 20, new_tokens: int = 200) -> list[dict]:
    """Measure GPT-2 small on a CUDA GPU: training, and decoding with and without graphs.

    Utilisation is of the rate that a large bfloat16 product reaches in the same run. A way to train
    that fails has a row that says why. Raises RuntimeError without such a GPU.
    """
    if not torch.cuda.is_available():
        raise RuntimeError("the study cost_gpu needs a CUDA GPU, and torch sees none")
    device, name = torch.device("cuda"), torch.cuda.get_device_name()
    config, batch = GPTConfig.preset("gpt2"), 16
    rate = _matmul_rate(device)
    rows = [{"what": "product of 8192 x 8192 matrices, bfloat16", "device": name,
             "tflops": round(rate / 1e12, 1)}]  # fmt: skip
    whole = sum(flops(gpt_products(config, config.max_len, batch), backward=True).values())
    for rung in ("fused AdamW", "bfloat16", "bfloat16, compiled"):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        what = {"what": f"training, {'float32' if rung == 'fused AdamW' else rung}", "device": name}
        try:
            tokens, taken = _training(rung, device, config, batch, steps)
        except RuntimeError as error:  # too little memory, or nothing to compile with
            rows.append(what | {"failed": str(error).partition("\n")[0]})
            continue
        rows.append(what | {
            "tokens_per_second": round(tokens / taken),
            "tflops": round(whole / taken / 1e12, 1),
            "share_of_product": round(whole / taken / rate, 3),
            "peak_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2),
        })  # fmt: skip
    model = GPT(config).to(device, torch.bfloat16).eval()
    prompt = torch.randint(config.vocab_size, (1, 32), device=device)
    eager = _seconds(lambda: generate(model, prompt, new_tokens)) / new_tokens
    rows.append(_decoding("eager, growing cache", name, eager, config))
    graphed = _Graphed(model, config.max_len)
    for how, run in (
        ("eager, full cache", graphed.step),
        ("CUDA graph, full cache", graphed.replay),
    ):
        rows.append(_decoding(how, name, _seconds(run), config))
    return rows


def _training(
    rung: str, device: torch.device, config: GPTConfig, batch: int, steps: int
) -> tuple[int, float]:
    """Give the tokens of a training step, and the median of its seconds."""
    step = TrainingStep(rung, device, config, batch)
    timings = interleave({"it": step}, steps, warm_up=3, clock=make_clock(device=device))
    return step.tokens, timings.of("it").median


class _Graphed:
    """One decoding step as a CUDA graph: the newest token against a full cache of fixed size."""

    @torch.no_grad()
    def __init__(self, model: GPT, length: int) -> None:
        self.model, c = model, model.config
        self.ids = torch.zeros(1, 1, dtype=torch.int64, device=model.device)
        shape = (1, c.num_heads, length - 1, c.d_model // c.num_heads)
        dtype = model.output.weight.dtype
        self.room = [
            (torch.zeros(shape, device=model.device, dtype=dtype),
             torch.zeros(shape, device=model.device, dtype=dtype))
            for _ in range(c.num_layers)
        ]  # fmt: skip
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # warm up off the graph, as its capture asks
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.next = self.step()

    @torch.no_grad()
    def step(self) -> Tensor:
        """Read one token: as the model does, but without looking at the ids' values."""
        model = self.model
        x = model.embedding(self.ids) + model.positions.table[self.room[0][0].size(2)]
        for layer, (k, v) in zip(model.decoder.layers, self.room, strict=True):
            x = layer(x, None, _Full(k, v))
        return model.output(model.decoder.final_norm(x)[:, -1]).argmax(dim=-1)

    def replay(self) -> None:
        """Make the step again."""
        self.graph.replay()


class _Full:
    """A cache that stays as it is: the time of a step does not depend on what is in it."""

    def __init__(self, k: Tensor, v: Tensor) -> None:
        self.k, self.v = k, v

    def __len__(self) -> int:
        return self.k.size(2)

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return torch.cat([self.k, k], dim=2), torch.cat([self.v, v], dim=2)


def _decoding(how: str, device: str, seconds: float, config: GPTConfig) -> dict:
    read = 2 * sum(parameters(config).values()) / seconds
    return {
        "what": f"decoding one text, {how}",
        "device": device,
        "tokens_per_second": round(1 / seconds),
        "weights_gb_per_second": round(read / 1e9),
    }


def _matmul_rate(device: torch.device, size: int = 8192) -> float:
    a = torch.randn(size, size, device=device, dtype=torch.bfloat16)
    return 2 * size**3 / _seconds(lambda: a @ a)


def _seconds(run: Callable[[], object], rounds: int = 10) -> float:
    """The median time of a run on a GPU, which is waited for."""
    clock = make_clock(device="cuda")
    return interleave({"it": run}, rounds, clock=clock).of("it").median


STUDIES = {"cost_gpu": cost_gpu}
