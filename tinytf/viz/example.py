"""One example for the explorer: words and weights, and the check that they belong together."""

from collections.abc import Mapping

import numpy as np

from .attention import check_links
from .style import as_array, phrasebook_pinyin

KINDS = {  # kind -> (tokens that look, tokens looked at)
    "cross": ("target", "source"),
    "encoder": ("source", "source"),
    "decoder": ("target", "read"),
}
NAMES = {
    "cross": "Cross-attention",
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
}


def checked(example, index=0):
    """A copy of `example` with every part present; ValueError names what disagrees."""
    where = f"example {index}"
    if not isinstance(example, Mapping):
        names = ("source", "target", "attention", "pinyin", "gold", "read")
        example = {name: getattr(example, name) for name in names if hasattr(example, name)}
    if missing := {"source", "target", "attention"} - set(example):
        raise ValueError(f"{where} lacks {sorted(missing)}; it has {sorted(example)}")
    out = {}
    for name in ("source", "target"):
        if isinstance(example[name], str) or not len(example[name]):
            raise ValueError(f"{where}: {name} is a list of tokens, got {example[name]!r}")
        out[name] = [str(token) for token in example[name]]
    pinyin = example.get("pinyin")
    pinyin = (
        pinyin.split() if isinstance(pinyin, str) else list(pinyin or map(_sound, out["target"]))
    )
    pinyin += [token for token in out["target"][len(pinyin) :] if token.startswith("<")]
    read = [str(token) for token in example.get("read") or ["<bos>", *out["target"][:-1]]]
    for name, tokens in (("pinyin entries", pinyin), ("read tokens", read)):
        if len(tokens) != len(out["target"]):
            raise ValueError(
                f"{where}: {len(tokens)} {name} for {len(out['target'])} target tokens: "
                f"{tokens} for {out['target']}"
            )
    known = dict(zip(out["target"], pinyin, strict=True))
    sounds = [known.get(token) or _sound(token) for token in read]
    out |= {"read": read, "pinyin": pinyin, "read_pinyin": sounds}
    try:
        out["gold"] = check_links(example.get("gold"), len(out["source"]), len(out["target"]))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    out["attention"] = {}
    attention = example["attention"]
    if any("." in name for name in attention):  # by layer, as tinytf.inspect records it
        attention = _stacked(attention)
    for kind, weights in attention.items():
        if kind not in KINDS:
            raise ValueError(f"{where}: attention kind {kind!r} is none of {list(KINDS)}")
        weights = as_array(weights, f"{where}: {kind} attention (layers, heads, T, S)", ndim=4)
        looking, looked_at = KINDS[kind]
        rows, columns = len(out[looking]), len(out[looked_at])
        if weights.shape[2:] != (rows, columns) or 0 in weights.shape:
            raise ValueError(
                f"{where}: {kind} attention has shape {weights.shape}, but {rows} {looking} and "
                f"{columns} {looked_at} tokens need (layers, heads, {rows}, {columns})"
            )
        if not (np.isfinite(weights).all() and -1e-3 <= weights.min() <= weights.max() <= 1.001):
            raise ValueError(
                f"{where}: {kind} attention weights must lie in 0..1, "
                f"got {weights.min():.4g} to {weights.max():.4g}"
            )
        out["attention"][kind] = weights.clip(0, 1)
    return out


def _sound(token):
    return phrasebook_pinyin(token) or token


def _stacked(attention):
    """{kind: (L, H, T, S)} from {"decoder.layers.0.cross_attention": (H, T, S), ...}.

    A batch of one sentence, as `tinytf.inspect.record` has it, is (1, H, T, S).
    """
    stacks = {}
    for name, weights in attention.items():
        parts = name.split(".")
        kind = "cross" if "cross" in parts[-1] else parts[0]
        number = next((int(part) for part in parts if part.isdigit()), 0)
        weights = as_array(weights, name)
        weights = weights[0] if weights.ndim == 4 and len(weights) == 1 else weights
        stacks.setdefault(kind, {})[number] = as_array(weights, name, ndim=3)
    return {kind: np.stack([maps[i] for i in sorted(maps)]) for kind, maps in stacks.items()}


def choose(example, kind, layer, head):
    """The (T, S) map of one head, or with head="mean" of a layer's heads together."""
    if kind not in example["attention"]:
        raise ValueError(f"kind={kind!r} is none of {list(example['attention'])}")
    weights = example["attention"][kind]
    layers, heads = weights.shape[:2]
    if not 0 <= layer < layers:
        raise ValueError(f"layer={layer} is outside the {layers} layers 0..{layers - 1}")
    if head == "mean":
        return weights[layer].mean(0)
    if isinstance(head, str) or not 0 <= head < heads:
        raise ValueError(f'head={head!r} is neither "mean" nor one of 0..{heads - 1}')
    return weights[layer, head]


def causal(weights, kind):
    """True if no word looks past itself."""
    return kind == "decoder" and not np.triu(weights, 1).any()


def sounds(example, side):
    """The pinyin of one side, or None."""
    return {"source": None, "target": example["pinyin"], "read": example["read_pinyin"]}[side]
