"""What training costs: a step beside its peers, and the way to a translator that makes no mistakes.

All peers have the same weights, ids and recipe, and begin with the same loss.
"""

import copy
import functools
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks import peers
from benchmarks.comparing import Compared, aim, compare, work
from tinytf.cli.train import build
from tinytf.gpt import GPT, GPTConfig
from tinytf.support.modes import evaluation_mode
from tinytf.text.words import BOS, PAD
from tinytf.training.losses import Batch, TextBatch, next_token_loss, sequence_loss
from tinytf.training.schedules import warmup_cosine
from tinytf.training.trainer import Trainer, TrainingConfig
from tinytf.transformer import Transformer, TransformerConfig
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.phrasebook.batches import PhrasebookBatches
from tinytf_course.studies.interleaved import Timings, in_turn

RECIPE = {"lr": 1e-4, "weight_decay": 0.01, "betas": (0.9, 0.98), "eps": 1e-9}
TOY = {"d_model": 128, "num_heads": 4, "num_layers": 2, "vocab": 300, "batch": 64, "length": 20}
BASE = {"d_model": 512, "num_heads": 8, "num_layers": 6, "vocab": 8000, "batch": 8, "length": 64}
OURS, THEIRS, MIXED = "tinytf", "nn.Transformer", "nn.Transformer, our recipe"


def our_step(model, batch, objective, precision="float32"):
    """Make a step of the trainer itself, which returns the loss."""
    config = TrainingConfig(
        steps=10**6, warmup=1, schedule="constant", label_smoothing=0.0, precision=precision,
        attention="auto", clip=1.0, **RECIPE,
    )  # fmt: skip
    trainer = Trainer(copy.deepcopy(model), lambda step: batch, config, objective)
    return lambda: trainer.run(trainer.step + 1, log_every=1)[-1]["loss"]


def plain_step(model, forward, labels, precision="float32"):
    """Make a step of AdamW with clipping, as a good script has it; `forward` gives logits."""
    groups = [
        {"params": [p for p in model.parameters() if p.dim() > 1]},
        {"params": [p for p in model.parameters() if p.dim() <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, **RECIPE, fused=True)
    model.train()

    def step():
        optimizer.zero_grad(set_to_none=True)
        half = torch.autocast(labels.device.type, torch.bfloat16)
        with half if precision == "bfloat16" else nullcontext():
            logits = forward()
        loss = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def translators(options, d_model, num_heads, num_layers, vocab, batch, length):
    """Steps of encoder-decoders, all on the same ids, and the names of those that begin alike."""
    ids = Batch(*torch.randint(3, vocab, (3, batch, length)).to(options.device))
    sizes = (vocab, vocab, d_model, num_heads, num_layers, 4 * d_model, options.dropout)
    ours = Transformer(TransformerConfig(*sizes, norm="pre")).to(options.device)
    makes = {"plain": peers.PlainTransformer, THEIRS: peers.TorchTransformer}

    def other(make, precision="float32"):
        model = make(ours).to(options.device)
        forward = functools.partial(model, ids.src, ids.tgt_in)
        return plain_step(model, forward, ids.tgt_out, precision)

    steps = {OURS: our_step(ours, ids, sequence_loss)}
    steps |= {name: other(make) for name, make in makes.items()}
    same = [[*steps]]
    if options.precision == "bfloat16":
        steps["tinytf bf16"] = our_step(ours, ids, sequence_loss, "bfloat16")
        steps |= {f"{name} bf16": other(make, "bfloat16") for name, make in makes.items()}
    post = peers.like_marian(ours.config).to(options.device)
    if marian := peers.marian(post):
        marian.to(options.device)
        mask = torch.ones_like(ids.src)

        def read():
            named = {"attention_mask": mask, "decoder_input_ids": ids.tgt_in}
            return marian(input_ids=ids.src, **named).logits

        steps["tinytf, post-norm"] = our_step(post, ids, sequence_loss)
        steps["Marian"] = plain_step(marian, read, ids.tgt_out)
        same.append(["tinytf, post-norm", "Marian"])
    return steps, same


def writers(options, config, batch, length):
    """Steps of GPTs, all on the same ids, and the names of those that begin alike."""
    ids = torch.randint(config.vocab_size, (batch, length + 1)).to(options.device)
    text = TextBatch(ids[:, :-1].contiguous(), ids[:, 1:].contiguous())
    ours = GPT(config).to(options.device)

    def other(model, precision="float32", call=None):
        model.to(options.device)
        forward = functools.partial(call or model, text.ids_in)
        return plain_step(model, forward, text.ids_out, precision)

    steps = {
        OURS: our_step(ours, text, next_token_loss),
        "plain": other(peers.PlainGPT(ours)),
        "nn.TransformerEncoder": other(peers.PlainGPT(ours, torchs=True)),
    }
    if theirs := peers.hugging_face_gpt2(ours):
        theirs.config.use_cache = False
        steps["GPT-2"] = other(theirs, call=lambda ids: theirs(ids).logits)
    same = [[*steps]]
    if options.precision == "bfloat16":
        steps["tinytf bf16"] = our_step(ours, text, next_token_loss, "bfloat16")
        steps["plain bf16"] = other(peers.PlainGPT(ours), "bfloat16")
    return steps, same


def timed_steps(title, steps, same, options, rounds):
    """Time steps, after one of each whose losses must agree, and say what the products ask for."""
    floating = work(steps["plain"])
    for name in steps:
        if name != "plain":
            steps[name]()
    close = 1e-6 if options.device.type == "cpu" else 1e-5  # a GPU adds up in another order
    timed = compare(
        title, steps, options, rounds, same=() if options.dropout else same, close=close
    )
    rates = {name: floating / timed.timings.of(name).median / 1e9 for name in steps}
    timed.columns["GFLOP/s in products"] = {n: f"{rate:.0f}" for n, rate in rates.items()}
    return timed


def fastest(timed, but="tinytf"):
    """Name the peer in float32 that takes the shortest time."""
    names = [n for n in timed.timings.seconds if not n.startswith(but) and not n.endswith("bf16")]
    return min(names, key=lambda name: timed.timings.of(name).median)


def training_step(options):
    """a step of the encoder-decoder beside a plain one, nn.Transformer, Marian."""
    sizes = BASE if options.base else TOY
    steps, same = translators(options, **sizes)
    title = "a training step: " + ", ".join(f"{name} {n}" for name, n in sizes.items())
    timed = timed_steps(title, steps, same, options, 9 if options.base else 15)
    yield timed
    best = fastest(timed)
    most = 1.0 if options.dropout else 1.02
    yield aim(f"tinytf over the fastest peer ({best})", timed.ratio(OURS, best), most=most)
    most = 0.85 if options.base else 0.80
    yield aim("tinytf over nn.Transformer", timed.ratio(OURS, THEIRS), most=most)


def gpt_training_step(options):
    """a step of GPT beside nanoGPT's shape, GPT-2, nn.TransformerEncoder."""
    sizes = {} if options.small else {"vocab_size": 4096, "d_model": 192, "num_heads": 6,
                                      "num_layers": 6, "max_len": 256}  # fmt: skip
    config, batch = GPTConfig(**sizes, dropout=options.dropout), 1 if options.small else 16
    steps, same = writers(options, config, batch, 256)
    timed = timed_steps(f"a training step: {config}, {batch} x 256 ids", steps, same, options, 9)
    yield timed
    best = fastest(timed)
    most = 1.0 if options.dropout else 1.02
    yield aim(f"tinytf over the fastest peer ({best})", timed.ratio(OURS, best), most=most)
    if "tinytf bf16" in steps:
        faster = timed.ratio(best, "tinytf bf16")
        yield aim(f"{best} in float32 over tinytf in bfloat16", faster, least=2.2)


def contestants(config, options, batch_size=128, pool=4, **sizes):
    """What trains each up to a step, and its model: ours, torch's plainly, torch's by our trainer.

    All start from the same weights, and have the same peak rate, warm-up, cosine, label smoothing
    and clipping. In the second's batches long sentences stand beside short ones, as drawn.
    """
    trainer, translator = build(config, batch_size, options.device, pool=pool, **sizes)
    device = translator.model.device
    theirs, mixed = (peers.TorchTransformer(translator.model).to(device) for _ in range(2))
    drawn = PhrasebookBatches(Phrasebook(), batch_size, config.seed, pool=1)
    sorted_ = PhrasebookBatches(Phrasebook(), batch_size, config.seed, pool=pool)
    by_ours = Trainer(mixed, sorted_, config)
    return {
        OURS: (lambda step: trainer.run(step, log_every=10**9), translator.model),
        THEIRS: (plain_run(theirs, drawn, config), theirs),
        MIXED: (lambda step: by_ours.run(step, log_every=10**9), mixed),
    }


def plain_run(model, batches, config):
    """Train as a good script does: AdamW, fused, the schedule by torch's LambdaLR."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, betas=config.betas, eps=1e-8,
                                  weight_decay=config.weight_decay, fused=True)  # fmt: skip
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: warmup_cosine(step + 1, 1.0, config.warmup, config.steps)
    )

    def until(step):
        model.train()
        while schedule.last_epoch < step:
            batch = batches(schedule.last_epoch).to(model.device)
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(
                model(batch.src, batch.tgt_in).flatten(0, 1), batch.tgt_out.flatten(),
                ignore_index=PAD, label_smoothing=config.label_smoothing,
            )  # fmt: skip
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), config.clip)
            optimizer.step()
            schedule.step()

    return until


@torch.no_grad()
def share_exact(model, batches):
    """Give the share of sentences that greedy decoding would translate word for word.

    Greedy decoding writes the gold sentence exactly if every next word is the likeliest one after
    the gold words before it, so one pass over the gold sentence tells.
    """
    right = []
    with evaluation_mode(model):
        for batch in batches:
            scores = model(batch.src, batch.tgt_in).float()
            scores[..., [PAD, BOS]] = -torch.inf  # no words
            wrong = (scores.argmax(dim=-1) != batch.tgt_out) & (batch.tgt_out != PAD)
            right.append(~wrong.any(dim=1))
    return float(torch.cat(right).double().mean())


def race(racers, grading, target, steps, clock, chunk=50):
    """Train all in turns; give seconds, steps and share of each at the target or at the end."""
    seconds, results = dict.fromkeys(racers, 0.0), {}
    for number, step in enumerate(range(chunk, steps + 1, chunk)):
        for name in in_turn([*racers], number):
            if name in results:
                continue
            until, model = racers[name]
            begin = clock()
            until(step)
            seconds[name] += clock() - begin
            share = share_exact(model, grading)
            if share >= target or step + chunk > steps:
                results[name] = seconds[name], step, share
    return {name: results[name] for name in racers}


def exact_match(options, target=0.99, count=2000, size=250):
    """seconds to 99 % exact match on the phrasebook, beside nn.Transformer.

    Ours is the recipe of `python -m tinytf train --attention auto`. They train in turns of 50
    steps; only training counts, the drawing of sentences included. After each turn sentences held
    out are graded. Who is there first stops, and the others go on.
    """
    held_out = PhrasebookBatches(Phrasebook(), size, 1, split="validation", pool=count // size)
    grading = [held_out(step).to(options.device) for step in range(count // size)]
    runs = {}
    for seed in range(options.seeds):
        config = TrainingConfig(steps=options.steps, warmup=min(200, options.steps // 2),
                                precision="auto", attention="auto", seed=seed)  # fmt: skip
        racers = contestants(config, options)
        if not options.recipe:
            del racers[MIXED]
        for name, (seconds, step, share) in race(
            racers, grading, target, options.steps, options.clock
        ).items():
            runs.setdefault(name, []).append(seconds)
            yield f"seed {seed}: {name}: {seconds:.1f} s, {step} steps, {share:.2%}"
    timed = Compared(f"training to {target:.0%} exact match, by seed", Timings(runs))
    yield timed
    yield aim(f"{OURS} over {THEIRS} (if both got there)", timed.ratio(OURS, THEIRS), most=0.5)
