"""What training on many GPUs asks of each: memory, operations and bytes sent, counted by hand.

Of a GPT, by data-parallel training (DDP) or fully sharded (FSDP2), as `training.Trainer` does it:
weights, gradients and Adam's moments in float32. The tests hold each count of bytes against what
processes of ours keep and send; seconds follow from them and from a GPU's data sheet, no more.
"""

from dataclasses import replace
from typing import NamedTuple

from tinytf.gpt import GPTConfig
from tinytf.metrics.cost import check_at_least_one, flops, gpt_products, parameters
from tinytf_course.lessons.storage import activation_bytes, shard, state_bytes

__all__ = ["GPU", "H100", "memory_per_gpu", "sent_per_step", "step_seconds"]


class GPU(NamedTuple):
    """What a data sheet says of a card; a wire's speed is that of one direction, for each card."""

    operations: float  # a second
    memory: float  # bytes
    together: int  # in one machine
    inside: float  # bytes a second between those
    between: float  # bytes a second from machine to machine


H100 = GPU(operations=989e12, memory=80e9, together=8, inside=450e9, between=50e9)


def memory_per_gpu(
    config: GPTConfig,
    gpus: int,
    parallel: str,
    texts: int = 1,
    length: int = 1024,
    recompute: bool = False,
) -> dict[str, float]:
    """Count the bytes on each card while it reads `texts` texts at a time, by part.

    Sharded, a card also holds what it has fetched: all embeddings, the layer it is at and the next
    one, and a layer's undivided gradients beside the embeddings'. Activations are those of float32;
    bfloat16 halves most of them. With `recompute`, each layer keeps its input, and one all of it.
    Raises ValueError for sizes below 1 and for `parallel` that is neither "ddp" nor "fsdp".
    """
    embeddings, layer = _groups(config, parallel)
    stage = 3 if parallel == "fsdp" and gpus > 1 else 0
    held = shard(state_bytes(embeddings + config.num_layers * layer), gpus, stage)
    held["fetched"] = 4 * (2 * embeddings + 3 * layer) if stage else 0
    kept = sum(activation_bytes(config, length, texts).values())
    if recompute:
        kept = sum(activation_bytes(replace(config, num_layers=1), length, texts).values())
        kept += 4 * config.num_layers * texts * length * config.d_model
    return held | {"activations": kept}


def sent_per_step(config: GPTConfig, gpus: int, parallel: str, batches: int = 1) -> float:
    """Count the bytes that each card sends in a step of so many batches, in rings.

    DDP sends a step's gradients once round to add up, and once round to tell. FSDP2 adds them up
    once a step too, but fetches the weights for each batch: all on the way there, the layers' again
    on the way back. Source: Rajbhandari et al. 2020, section 7.
    """
    check_at_least_one(gpus=gpus, batches=batches)
    embeddings, layer = _groups(config, parallel)
    layers = config.num_layers * layer
    if parallel == "ddp":
        numbers = 2 * (embeddings + layers)
    else:
        numbers = batches * (embeddings + 2 * layers) + embeddings + layers
    return 4 * numbers * (gpus - 1) / gpus


def step_seconds(
    config: GPTConfig,
    gpus: int,
    parallel: str,
    texts: int,
    length: int = 1024,
    batches: int = 1,
    recompute: bool = False,
    gpu: GPU = H100,
    utilisation: float = 0.4,
) -> dict[str, float]:
    """Say for how long a step computes and sends; each card takes `batches` times `texts` texts.

    A card reaches `utilisation` of its peak. Sending goes on while computing does, so that a step
    takes the longer of the two at best, and their sum at worst. To `recompute` is a fourth pass.
    """
    check_at_least_one(texts=texts, batches=batches)
    there = sum(flops(gpt_products(config, length, texts)).values())
    operations = batches * there * (4 if recompute else 3)
    wire = gpu.inside if gpus <= gpu.together else gpu.between
    return {
        "computing": operations / (utilisation * gpu.operations),
        "sending": sent_per_step(config, gpus, parallel, batches) / wire,
    }


def _groups(config: GPTConfig, parallel: str) -> tuple[int, int]:
    """Count what FSDP2 fetches together: the embeddings with the last norm, and a layer."""
    if parallel not in ("ddp", "fsdp"):
        raise ValueError(f"parallel={parallel!r} is not one of ('ddp', 'fsdp')")
    one, two = (
        sum(parameters(replace(config, num_layers=number)).values()) for number in (1, 2)
    )  # fmt: skip
    return 2 * one - two, two - one
