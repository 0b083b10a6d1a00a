"""How fast a model writes: greedy decoding beside Hugging Face's `generate`, in equal models."""

import functools

import torch

from benchmarks import peers
from benchmarks.comparing import aim, compare
from tinytf.decoding.fast import fast_decoder
from tinytf.decoding.generate import generate
from tinytf.decoding.search import greedy
from tinytf.gpt import GPT, GPTConfig
from tinytf.metrics.counting import count_parameters
from tinytf.text.words import EOS
from tinytf.transformer import Transformer, TransformerConfig

MARIAN = {1: 3.0, 16: 2.5}  # by batch size, Marian's time over ours that is aimed at
GPT2 = {"float16": 2.0, "int8": 2.5}  # by the weights' kind, Hugging Face's time over ours


@torch.no_grad()
def translator(vocab=500, d_model=128, num_heads=4, num_layers=2):
    """Make a model that never says <eos>, so that every run has the full length."""
    sizes = (vocab, vocab, d_model, num_heads, num_layers, 4 * d_model)
    model = Transformer(TransformerConfig(*sizes, dropout=0.0, max_len=256, norm="pre"))
    model.tgt_embedding.weight[EOS] = 0.0
    model.decoder.final_norm.bias.add_(model.tgt_embedding.weight[5])
    return model.eval()


def alike(options, *names):
    """Texts that must be equal; on a GPU rounding may decide between two words."""
    return [names] if options.device.type == "cpu" else ()


def ways(model, batch, length, options):
    """Time three ways to write the same translations."""
    src = torch.randint(3, model.config.src_vocab_size, (batch, 20)).to(options.device)
    twin = fast_decoder(model)
    runs = {
        "fast": lambda: greedy(twin, src, length),
        "cached": lambda: greedy(model, src, length),
        "uncached": lambda: greedy(model, src, length, use_cache=False),
    }
    if runs["cached"]().size(1) != length:
        raise AssertionError("a text ended early")
    title = f"batch {batch}, {length} tokens a sentence"
    return compare(title, runs, options, 7, same=alike(options, *runs))


@torch.no_grad()
def beside_marian(model, batch, ragged, length, options):
    """Time ours in Marian's shape, and Hugging Face's `generate` with its weights."""
    ours = peers.like_marian(model.config).eval()
    theirs = peers.marian(ours)
    if theirs is None:
        return None
    theirs, ours = theirs.to(options.device).eval(), ours.to(options.device)
    ours.tgt_embedding.weight[EOS] = 0.0
    twin = fast_decoder(ours)
    src = torch.randint(3, ours.config.src_vocab_size, (batch, 20)).to(options.device)
    if ragged:
        for row in range(batch):
            src[row, 20 - row % 8 :] = 0
    settings = {"attention_mask": (src != 0).long(), "do_sample": False, "num_beams": 1}
    settings |= {"max_new_tokens": length, "min_new_tokens": length, "use_cache": True}
    runs = {
        "fast": lambda: greedy(twin, src, length),
        "plain": lambda: greedy(ours, src, length),
        "Marian": lambda: theirs.generate(src, **settings),
    }
    title = f"in Marian's shape, batch {batch}{', ragged' if ragged else ''}, {length} tokens"
    return compare(title, runs, options, 7, same=alike(options, "fast", "plain"))


def decoding(options):
    """greedy decoding of the encoder-decoder, with and without the cache, beside Marian."""
    model = translator().to(options.device)
    for batch in (1, 16, 64):
        for length in (20, 60, 120):
            yield ways(model, batch, length, options)
    for batch, least in MARIAN.items():
        for ragged in (False, True)[:batch]:
            if timed := beside_marian(model, batch, ragged, 60, options):
                yield timed
                ratio = timed.ratio("Marian", "fast")
                yield aim(f"Marian over fast, {timed.title}", ratio, least=least)


def ways_to_go_on(model, ids, tokens, options):
    """Give every way to continue ids (B, T) by a number of tokens."""
    go_on = {"fast": fast_decoder(model), "plain": model}
    if model.device.type == "cpu":
        go_on |= {f"fast {kind}": fast_decoder(model, kind) for kind in KINDS}
    runs = {name: functools.partial(generate, one, ids, tokens) for name, one in go_on.items()}
    if not options.small:
        runs["no cache"] = lambda: generate(model, ids, tokens, use_cache=False)
    if theirs := peers.hugging_face_gpt2(model):
        theirs.to(model.device).eval()
        settings = {"attention_mask": torch.ones_like(ids), "do_sample": False, "pad_token_id": 0}
        runs["Hugging Face"] = lambda: theirs.generate(ids, max_new_tokens=tokens, **settings)
    return runs


KINDS = ("float16", "bfloat16", "int8")


def reading(model, tokens):
    """Read as many bytes as the model has weights, once a token: a vector times a matrix."""
    tall = torch.ones(max(count_parameters(model) // 4096, 1), 4096, device=model.device)

    def run():
        for _ in range(tokens):
            tall[:1] @ tall.t()

    return run


@torch.no_grad()
def agreement(model, twin, text):
    """Compare two models' scores along one text (1, T), the second's token by token."""
    text = text[:, : model.config.max_len]
    cache = twin.decoder.new_cache()
    a = model(text).double()
    b = torch.cat([twin(token, cache) for token in text.split(1, dim=1)], dim=1).double()
    p, q = a.log_softmax(-1), b.log_softmax(-1)
    return (
        f"same likeliest token {(a.argmax(-1) == b.argmax(-1)).double().mean():.2%}, "
        f"largest difference of a logit {(a - b).abs().max():.1e} "
        f"(they deviate by {a.std():.2f}), "
        f"mean KL {(p.exp() * (p - q)).sum(-1).mean():.1e} nats"
    )


def gpt_decoding(options, config=None):
    """greedy decoding of GPT beside Hugging Face's generate; weights of fewer bits."""
    toy = GPTConfig(4096, 192, 6, 6, max_len=256)
    config = config or (GPTConfig.preset("gpt2") if options.small else toy)
    model = GPT(config).to(options.device).eval()
    ids = torch.randint(config.vocab_size, (1, min(32, config.max_len // 2))).to(options.device)
    runs = ways_to_go_on(model, ids, options.tokens, options)
    same = alike(options, *(name for name in runs if name.removeprefix("fast ") not in KINDS))
    timed = compare(
        f"{options.tokens} tokens, milliseconds a token; {count_parameters(model):,} parameters",
        runs | {"weights read": reading(model, options.tokens)},
        options, 7, same=same, per=options.tokens,
    )  # fmt: skip
    yield timed
    text = runs["plain"]()
    for kind in KINDS:
        if f"fast {kind}" in runs:
            yield f"{kind}: {agreement(model, fast_decoder(model, kind), text)}"
    if options.small:
        yield aim("weights read over fast", timed.ratio("weights read", "fast"), least=0.9)
    if "Hugging Face" in runs:
        aims = {f"fast {kind}": least for kind, least in GPT2.items()}
        for name, least in aims.items() if options.small else (("fast", 2.6),):
            if name in runs:
                ratio = timed.ratio("Hugging Face", name)
                yield aim(f"Hugging Face over {name}", ratio, least=least)
