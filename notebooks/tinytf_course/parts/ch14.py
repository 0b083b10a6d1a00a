"""Chapters 14 and 15: the Transformer, what it is trained for, and how."""

import torch
from torch import nn

from tinytf.training.config import TrainingConfig
from tinytf.training.losses import Batch, make_batch
from tinytf.transformer import Memory, Transformer, TransformerConfig
from tinytf_course.parts import Part, arrived, frozen, says, shapes, twin
from tinytf_course.parts.ch05 import dtypes, wide

SENTENCES = ([[5, 6, 7], [8], [9, 9, 9, 4]], [[3, 4], [5, 6, 7, 8, 3], [6]])
SIZES = {"d_model": 8, "num_heads": 2, "num_layers": 2, "d_ff": 12, "max_len": 16}


def _config(**choices):
    return TransformerConfig(**({"src_vocab_size": 12, "tgt_vocab_size": 10} | SIZES | choices))


def _model(dropout=0.0):
    return twin(Transformer, _config(dropout=dropout, num_layers=1))


# Memory and config


def _memory(memory):
    both = memory(torch.ones(2, 3, 4), torch.ones(2, 1, 1, 3, dtype=torch.bool))
    return [*both, both.states, both.mask, torch.tensor(both == tuple(both))]


# The frame, on the package's parts


def _framed(frame, pad_id=0):
    """The reader's frame around the parts of a package's Transformer, in float64."""
    return twin(_around(frame), _config(dropout=0.0, pad_id=pad_id))


def _around(frame):

    def framed(config):
        model, whole = frame(), Transformer(config)
        model.config = config
        for name in ("src_embedding", "tgt_embedding", "positions", "encoder", "decoder"):
            setattr(model, name, getattr(whole, name))
        model.output = nn.Linear(config.d_model, config.tgt_vocab_size, bias=False)
        return model

    return framed


def _batch(pad_id=0):
    src = torch.tensor([[5, 6, 7, 4], [8, 3, 2, 11], [9, 9, 4, 4]])
    tgt = torch.tensor([[1, 3, 4, 5, 7], [1, 5, 6, 7, 8], [1, 6, 4, 4, 4]])
    src[0, 3], src[1, 1:] = pad_id, pad_id
    tgt[0, 4], tgt[2, 2:] = pad_id, pad_id
    return src, tgt


def _words(out, tgt, pad_id=0):
    """Only what is said at words: at padding anything may be."""
    return out[tgt != pad_id]


def _forward(frame, pad_id=0):
    src, tgt = _batch(pad_id)
    return _words(_framed(frame, pad_id)(src, tgt), tgt, pad_id)


def _encoded(frame):
    memory = _framed(frame).encode(_batch()[0])
    return [memory.mask, memory.states[memory.mask[:, 0, 0]]]


def _decoded(frame):
    model, (src, tgt) = _framed(frame), _batch()
    other = model.encode(src.flip(0))
    return _words(model.decode(tgt, Memory(other.states, other.mask)), tgt)


def _cached(frame):
    model, (src, _) = _framed(frame), _batch()
    tgt = torch.tensor([[1, 3, 4, 5, 7], [1, 5, 6, 7, 8], [1, 6, 4, 2, 9]])
    memory, cache = model.encode(src), model.decoder.new_cache()
    return [model.decode(tgt[:, t : t + 1], memory, cache) for t in range(5)]


def _cached_padding(frame):
    """Two sentences of which one begins with two pads."""
    model, (src, _) = _framed(frame), _batch()
    tgt = torch.tensor([[1, 3, 4, 5], [0, 0, 1, 7]])
    memory, cache = model.encode(src[:2]), model.decoder.new_cache()
    out = [model.decode(tgt[:, t : t + 1], memory, cache) for t in range(4)]
    return _words(torch.cat(out, dim=1), tgt)


def _frame_single(frame):
    model, (src, tgt) = _around(frame)(_config(dropout=0.0)), _batch()
    memory = model.encode(src)
    return dtypes(memory.states, model.decode(tgt, memory), model(src, tgt))


def _frame_gradients(frame):
    model, (src, tgt) = _framed(frame), _batch()
    return arrived(_words(model(src, tgt), tgt), module=model)


def _table(frame):
    models = _around(frame)(_config()), _framed(frame)
    return {
        "it can be tied": callable(getattr(models[0], "tie", None)),
        "its table is the target's": [m.table is m.tgt_embedding.weight for m in models],
    }


# The Transformer


def _made(transformer, **choices):
    return transformer(_config(**choices))


def _run(transformer, **choices):
    model = twin(transformer, _config(dropout=0.0, **choices))
    src, tgt = _batch()
    return _words(model(src % model.config.src_vocab_size, tgt), tgt)


def _start(transformer, **choices):
    """By which rule each weight seems to have been drawn, in whatever order they were."""
    torch.manual_seed(0)
    sizes = {"src_vocab_size": 90, "tgt_vocab_size": 70, "d_model": 32, "d_ff": 80}
    model = _made(transformer, **sizes, **choices)
    return {name: _rule(p.detach()) for name, p in sorted(model.named_parameters())}


def _rule(p):
    if p.dim() == 1:
        return "ones" if bool((p == 1).all()) else "zeros" if bool((p == 0).all()) else "others"
    rules = {
        "N(0, 1 / d_model)": p.size(1) ** -0.5,
        "xavier": (2 / sum(p.shape)) ** 0.5,
        "N(0, 0.02²)": 0.02,
    }
    near = [name for name, std in rules.items() if abs(p.std().item() / std - 1) < 0.1]
    return " or ".join(near) or "another start"


def _single(transformer, **choices):
    model = _made(transformer, src_vocab_size=10, **choices)
    src, tgt = _batch()
    return dtypes(model(src % 10, tgt), *model.parameters())


def _dropped(transformer):
    model = twin(transformer, _config(dropout=0.5), mode="train")
    torch.manual_seed(0)
    return model(*_batch())


def _ties(transformer):
    made = {
        "tied": _made(transformer),
        "apart": _made(transformer, tie_output=False),
        "shared": _made(transformer, src_vocab_size=10, share_embeddings=True),
    }
    return {
        name: [model.output.weight is model.table, model.src_embedding is model.tgt_embedding]
        for name, model in made.items()
    }


# Loss, optimiser, loop


def _loss(f, *smoothing):
    loss, tokens = f(_model(), make_batch(*SENTENCES), *smoothing)
    whole = type(tokens) is int
    return {"the loss": loss, "the words": int(tokens), "the count is a plain integer": whole}


def _scored(f):
    """Whether the output map gives logits for padding as well."""
    model, rows, batch = _model(), [], make_batch(*SENTENCES)
    model.output.register_forward_hook(
        lambda module, inputs, out: rows.append(out.numel() // out.size(-1))
    )
    f(model, batch)
    return {"padding has logits": sum(rows) > batch.num_tokens}


def _half_loss(f):
    loss, _ = f(_model().bfloat16(), make_batch(*SENTENCES))
    return dtypes(loss)


def _gradients(f):
    model = _model()
    loss, _ = f(model, make_batch(*SENTENCES), 0.1)
    return arrived(loss, module=model)


def _groups(f, **settings):
    parts = {"embedding": nn.Embedding(5, 3), "map": nn.Linear(3, 4), "norm": nn.LayerNorm(4)}
    model = nn.ModuleDict(parts)
    groups = f(model, TrainingConfig(steps=10, warmup=1, **settings)).param_groups
    kept = ("lr", "betas", "eps", "weight_decay")
    return [
        {"shapes": [list(p.shape) for p in group["params"]]} | {name: group[name] for name in kept}
        for group in groups
    ]


def _stepped(f):
    """The parameters after a step of the optimiser."""
    model = twin(nn.Sequential, nn.Linear(3, 4), nn.LayerNorm(4))
    optimizer = f(model, TrainingConfig(steps=10, warmup=1, lr=0.5))
    model[1](model[0](wide(2, 3, seed=1))).pow(3).sum().backward()
    optimizer.step()
    return {name: p.detach() for name, p in model.named_parameters()}


class _Elsewhere(torch.Tensor):
    """Ids on another device, as it were: nothing is done with them before they are moved."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in (torch.Tensor.to, torch.Tensor.cpu):
            return args[0].as_subclass(torch.Tensor)
        raise RuntimeError("Expected all tensors to be on the same device: a batch is on another")


def _moved(f):
    batch = Batch(*(part.as_subclass(_Elsewhere) for part in make_batch(*SENTENCES)))
    (row,) = f(_model().train(), lambda step: batch, TrainingConfig(steps=1, warmup=1))
    return float(row["loss"])


def _rows(f):
    batch = make_batch(*SENTENCES)
    rows = f(_model().train(), lambda step: batch, TrainingConfig(steps=2, warmup=1))
    return [{name: type(value).__name__ for name, value in row.items()} for row in rows]


def _trained(f, **settings):
    model = _model().train()
    config = TrainingConfig(**({"steps": 4, "warmup": 2, "lr": 0.02} | settings))
    batches = [make_batch(*SENTENCES), make_batch(*reversed(SENTENCES)), make_batch([[5]], [[3]])]
    history = f(model, lambda step: batches[step % 3], config)
    rows = [torch.tensor([row["step"], row["loss"]]) for row in history]
    return [*rows, *(p.detach() for p in model.parameters())]


def _rates(*cases):
    return lambda f: [f(*case) for case in cases]


ALIKE = "every layer's cache has the same length, and remembers padding as well"
IN_FLOAT32 = "the loss is made of logits in float32 anyway"
ONE_KERNEL = "one kernel or several take the same step, but for rounding"

PARTS = (
    Part(
        "tinytf.transformer.Memory",
        {"it holds states and mask, by name and in order": _memory},
    ),
    Part(
        "tinytf.transformer.TransformerConfig",
        {
            "two vocabularies are given, the rest is the paper's": lambda f: says(f, 5, 6),
            "sizes are given in order": lambda f: says(f, 5, 6, 8, 2, 3, 12, 0.2, 9, "pre"),
            "choices are given by name": lambda f: says(
                f, 5, 5, share_embeddings=True, tie_output=False, init="normal", pad_id=3
            ),
            "it is frozen": lambda f: frozen(f, 5, 6),
        },
    ),
    Part(
        "tinytf.transformer.EncoderDecoder",
        {
            "source and target go in, and logits come out": _forward,
            "the source alone is read": _encoded,
            "a memory is given, and not made": _decoded,
            "the padding has the id 4": lambda f: _forward(f, 4),
            "words come one by one, with a cache": _cached,
            "they do, and one sentence begins with padding": _cached_padding,
            "its table is the target's": _table,
            "numbers are in float32": _frame_single,
            "gradients go back to every weight": _frame_gradients,
        },
        equivalent={
            "… => start = len(cache[1].self_attention) if cache else 0": ALIKE,
            "… => start = len(cache[-1].self_attention) if cache else 0": ALIKE,
        },
    ),
    Part(
        "tinytf.transformer.Transformer",
        {
            "its weights are counted": lambda f: shapes(_made(f)),
            "it is tied, or not, or one table serves both languages": _ties,
            "it reads a padded batch, Post-LN": _run,
            "norms come first, and the activation is another": lambda f: _run(
                f, norm="pre", activation="gelu"
            ),
            "the output has a matrix of its own": lambda f: _run(f, tie_output=False),
            "each weight starts by its rule": _start,
            "each weight starts by its rule, the output untied": lambda f: _start(
                f, tie_output=False
            ),
            "they start as GPT-2's": lambda f: _start(f, init="normal", norm="pre"),
            "half of what is said is dropped": _dropped,
            "numbers are in float32": lambda f: {
                "two tables": _single(f),
                "one table": _single(f, share_embeddings=True),
            },
        },
        equivalent={
            "…c.… => …config.…": "c is another name of config",
        },
    ),
    Part(
        "tinytf.training.losses.make_batch",
        {
            "there is one pair": lambda f: list(f([[5]], [[3]])),
            "three pairs differ in length on both sides": lambda f: list(f(*SENTENCES)),
        },
    ),
    Part(
        "tinytf.training.losses.sequence_loss",
        {
            "targets are padded": _loss,
            "labels are smoothed": lambda f: _loss(f, 0.1),
            "the model computes in bfloat16": _half_loss,
            "logits are made": _scored,
            "gradients go back to every weight": _gradients,
        },
        tolerance=1e-5,
        equivalent={
            "… => logits = model.output(hidden[real]).float()": IN_FLOAT32,
            "… => logits = model.output(hidden[real]).double()": IN_FLOAT32,
            "… => loss = ….float()": IN_FLOAT32,
            "… => return (loss.float(), logits.size(0))": IN_FLOAT32,
            "… => loss = F.cross_entropy(logits.float().float(), …": IN_FLOAT32,
        },
    ),
    Part(
        "tinytf.training.optimizer.adamw",
        {
            "a table, a matrix, its bias and a norm are given": _groups,
            "the settings are others": lambda f: _groups(
                f, lr=0.5, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.3
            ),
            "a step is taken": _stepped,
        },
        equivalent={
            "… => …eps=config.eps)": ONE_KERNEL,
            "… => …fused=False)": ONE_KERNEL,
        },
    ),
    Part(
        "tinytf.training.schedules.warmup_inverse_sqrt",
        {
            "the first step is taken": _rates((1, 512, 4000), (1, 16, 10)),
            "the warm-up ends": _rates((9, 16, 10), (10, 16, 10), (11, 16, 10)),
            "it is long over": _rates((400, 64, 100), (100_000, 512, 4000)),
        },
    ),
    Part(
        "tinytf.training.schedules.warmup_cosine",
        {
            "it rises": _rates((1, 0.5, 10, 100), (9, 0.5, 10, 100), (10, 0.5, 10, 100)),
            "it falls": _rates((11, 0.5, 10, 100), (55, 0.5, 10, 100), (100, 0.5, 10, 100)),
            "there is a floor, and training goes on": _rates(
                (55, 0.5, 10, 100, 0.1), (100, 0.5, 10, 100, 0.1), (150, 0.5, 10, 100, 0.1)
            ),
            "there is a floor, which the rise does not know": _rates((1, 0.5, 10, 100, 0.1)),
            "lr is reached at once": _rates((1, 0.5, 1, 4), (2, 0.5, 1, 4)),
            "the warm-up takes all steps, and training goes on": _rates(
                (3, 0.5, 4, 4), (4, 0.5, 4, 4), (5, 0.5, 4, 4)
            ),
            "one step is left to fall": _rates((3, 0.5, 3, 4), (4, 0.5, 3, 4)),
        },
        equivalent={
            "if step < warmup: => if step <= warmup:": "both branches give lr at the end of warm-up"
        },
    ),
    Part(
        "tinytf.training.loop.train",
        {
            "it takes one step": lambda f: _trained(f, steps=1, warmup=1),
            "it takes four, on batches in turn": _trained,
            "rows are plain numbers": _rows,
            "batches come from another device": _moved,
            "gradients are clipped hard": lambda f: _trained(f, clip=0.01),
            "labels are not smoothed": lambda f: _trained(f, label_smoothing=0.0),
            "the schedule is the paper's, and decay is strong": lambda f: _trained(
                f, schedule="inverse_sqrt", weight_decay=2.0
            ),
        },
        tolerance=1e-5,
        changes=("model",),
        equivalent={
            "… => (loss.float() / tokens).backward()": "the loss is in float32 as it is",
            "… => ….detach().item() / tokens})": "a number taken out carries no gradient",
            "… => ….float().item() / tokens})": "the loss is in float32 as it is",
        },
    ),
)
