"""Answers to chapter 14: references and mistakes."""

from tinytf.masks import causal_mask, padding_mask
from tinytf_course.grading import Answers, WrongAnswer

# 14.1 a forward pass to repair


def my_forward(model, src, tgt):
    """The logits of `model(src, tgt)`, by its parts: (B, S) and (B, T) to (B, T, V).

    The parts are model.src_embedding, .tgt_embedding, .positions, .encoder, .decoder and .output;
    model.config.pad_id is the id of the padding.
    """
    pad = model.config.pad_id
    mask = padding_mask(src, pad)  # (B, 1, 1, S)
    memory = model.encoder(model.positions(model.src_embedding(src)), mask)
    y = model.positions(model.tgt_embedding(tgt))
    ahead = causal_mask(tgt.size(1), tgt.device) & padding_mask(tgt, pad)
    return model.output(model.decoder(y, memory, ahead, mask))  # (B, T, C) -> (B, T, V)


def _forward_variant(
    source_positions=True, table="tgt_embedding", causal=True, cross=True, own=True, pad=None,
    output=None, detached=False, cross_of_target=False,
):  # fmt: skip
    """A `my_forward` with one thing wrong."""

    def forward(model, src, tgt):
        padding = model.config.pad_id if pad is None else pad
        mask = padding_mask(src, padding)
        x = model.src_embedding(src)
        x = model.positions(x) if source_positions else x
        memory = model.encoder(x, mask if own else None)
        memory = memory.detach() if detached else memory
        y = model.positions(getattr(model, table)(tgt))
        ahead = padding_mask(tgt, padding)
        ahead = ahead & causal_mask(tgt.size(1), tgt.device) if causal else ahead
        mask = padding_mask(tgt, padding) if cross_of_target else mask
        hidden = model.decoder(y, memory, ahead, mask if cross else None)
        return hidden @ getattr(model, output).weight.T if output else model.output(hidden)

    return forward


def _flat_mask(model, src, tgt):
    mask = src != model.config.pad_id
    memory = model.encoder(model.positions(model.src_embedding(src)), mask)
    ahead = causal_mask(tgt.size(1)) & padding_mask(tgt, model.config.pad_id)
    y = model.positions(model.tgt_embedding(tgt))
    return model.output(model.decoder(y, memory, ahead, mask))


FORWARD = Answers(
    reference=my_forward,
    equivalent={
        "… => ….detach()": "ids and masks carry no gradient",
        "… => …(src.detach())…": "ids and masks carry no gradient",
        "… => ….detach()…": "ids and masks carry no gradient",
        "ahead = causal_mask(tgt.size(1), tgt.device) & padding_mask(tgt, pad) => "
        "ahead = causal_mask(tgt.size(1), tgt.device)": "padding on the right is later than every "
        "word, so the causal mask hides it",
        "… => …padding_mask(src.float(), pad)": "ids of a vocabulary are the same in float32",
        "… => …padding_mask(tgt.float(), pad)": "ids of a vocabulary are the same in float32",
        "… => …causal_mask(tgt.size(1)) & …": "another device was not asked for",
        "… => …model.device…": "model and ids are on one device",
        "… => …src.device…": "model and ids are on one device",
        "… => …mask.device…": "model and ids are on one device",
    },
    wrong=(
        WrongAnswer(
            "no positions for the source",
            _forward_variant(source_positions=False),
            "for src=[[4]], tgt=[[1]]",
            "The source's vectors are given to the encoder without positions: it sees a set of "
            "words, and can't tell who chased whom.",
        ),
        WrongAnswer(
            "the source's table for the target",
            _forward_variant(table="src_embedding"),
            "for src=[[4]], tgt=[[1]]",
            "The target's ids are looked up in the source's embedding. It runs as long as the ids "
            "exist there, and every word is another one.",
        ),
        WrongAnswer(
            "an embedding for the output",
            _forward_variant(output="tgt_embedding"),
            "for src=[[4]], tgt=[[1]]",
            "The output is tied to the target's embedding in many models, and not in all. "
            "`model.output` is right for both.",
        ),
        WrongAnswer(
            "no causal mask",
            _forward_variant(causal=False),
            "All prefixes at once must agree with prefix by prefix",
            "Every position sees the words that it has to say, one place to the right. Training "
            "looks wonderful, and alone the model can't write.",
        ),
        WrongAnswer(
            "the memory's mask forgotten",
            _forward_variant(cross=False),
            "Padding may not matter",
            "Cross-attention looks at the padding of the shorter sentences: what they get depends "
            "on the longest sentence of their batch.",
        ),
        WrongAnswer(
            "the target's padding for the memory",
            _forward_variant(cross_of_target=True),
            "does not fit scores of shape",
            "The keys of cross-attention are the source's words, so its mask is the source's. The "
            "target's fits only where both are equally long, and hides the wrong words.",
        ),
        WrongAnswer(
            "the encoder's mask forgotten",
            _forward_variant(own=False),
            "Padding may not matter",
            "The encoder's words look at padding, so in another batch a sentence reads otherwise.",
        ),
        WrongAnswer(
            "a mask of shape (B, S)",
            _flat_mask,
            "does not fit scores of shape",
            "Attention's scores are (B, H, T, S), and a mask (B, S) says nothing of heads and "
            "queries. `padding_mask` makes it (B, 1, 1, S), which fits all of them.",
        ),
        WrongAnswer(
            "0 taken for the padding",
            _forward_variant(pad=0),
            "Here 0 is a word",
            "Another vocabulary pads with another id: ask `model.config.pad_id`.",
        ),
        WrongAnswer(
            "the memory detached",
            _forward_variant(detached=True),
            "no gradient reaches `src_embedding.weight`",
            "The logits are right, and nothing tells the encoder what it should have read: it "
            "would never be trained.",
        ),
    ),
)


# 14.2 label-smoothed loss without the padding


def smoothed_loss(logits, targets, epsilon, pad_id):
    """Label-smoothed cross-entropy, averaged over the targets that are not padding.

    logits is (B, T, V), targets (B, T). The target distribution is 1 - epsilon on the target,
    plus epsilon shared equally by all V words (the target too).
    """
    log_p = logits.log_softmax(-1)  # (B, T, V)
    hit = log_p.gather(-1, targets[..., None]).squeeze(-1)  # (B, T)
    loss = -(1 - epsilon) * hit - epsilon * log_p.mean(-1)
    real = targets != pad_id
    return loss[real].mean()


def _loss_variant(spread=None, keep=None, average=None):
    """A `smoothed_loss` with one thing wrong."""

    def loss(logits, targets, epsilon, pad_id):
        log_p = logits.log_softmax(-1)
        hit = log_p.gather(-1, targets[..., None]).squeeze(-1)
        kept = keep(epsilon) if keep else 1 - epsilon
        each = -kept * hit - epsilon * (spread(log_p) if spread else log_p.mean(-1))
        real = targets != pad_id
        return average(each, real) if average else each[real].mean()

    return loss


def _others_only(logits, targets, epsilon, pad_id):
    log_p = logits.log_softmax(-1)
    hit = log_p.gather(-1, targets[..., None]).squeeze(-1)
    others = (log_p.sum(-1) - hit) / (logits.size(-1) - 1)
    return (-(1 - epsilon) * hit - epsilon * others)[targets != pad_id].mean()


def _zero_is_padding(logits, targets, epsilon, pad_id):
    return smoothed_loss(logits, targets, epsilon, 0)


def _shifted_twice(logits, targets, epsilon, pad_id):
    return smoothed_loss(logits[:, :-1], targets[:, 1:], epsilon, pad_id)


def _by_exp(logits, targets, epsilon, pad_id):
    p = logits.exp() / logits.exp().sum(-1, keepdim=True)
    log_p = p.log()
    hit = log_p.gather(-1, targets[..., None]).squeeze(-1)
    return (-(1 - epsilon) * hit - epsilon * log_p.mean(-1))[targets != pad_id].mean()


SMOOTHED_LOSS = Answers(
    reference=smoothed_loss,
    equivalent={
        "… => real = (targets != pad_id).detach()": "ids and masks carry no gradient",
        "… => …targets.detach()…": "ids and masks carry no gradient",
        "… => …real.detach()…": "ids and masks carry no gradient",
        "… => real = targets.float() != pad_id": "ids of a vocabulary are the same in float32",
    },
    wrong=(
        WrongAnswer(
            "exp, divide, log",
            _by_exp,
            "for logits=[[[200, 0, -3]]]",
            "exp(200) is too large for a number, and what is left is NaN. `log_softmax` takes the "
            "largest logit away first.",
        ),
        WrongAnswer(
            "0 taken for the padding",
            _zero_is_padding,
            "for logits of shape",
            "Another vocabulary pads with another id: use the argument `pad_id`. Here 0 is a word, "
            "and the padding is counted.",
        ),
        WrongAnswer(
            "a plain number",
            lambda *arguments: smoothed_loss(*arguments).item(),
            "no gradient reaches `logits`",
            "`.item()` forgets where the number came from: `backward` has nothing to go back on.",
        ),
        WrongAnswer(
            "padding counted",
            _loss_variant(average=lambda each, real: each.mean()),
            "it should not move",
            "Predicting padding is easy, so the loss looks better than the model is: a model that "
            "only ever says padding can look good.",
        ),
        WrongAnswer(
            "mean of the sentences' means",
            _loss_variant(average=lambda each, real: ((each * real).sum(1) / real.sum(1)).mean()),
            "Four tokens are real",
            "A token of a short sentence then weighs more than one of a long sentence. Sum over "
            "the whole batch, and divide once by the number of real tokens.",
        ),
        WrongAnswer(
            "divided by all positions",
            _loss_variant(average=lambda each, real: (each * real).sum() / real.numel()),
            "Four tokens are real",
            "The padding is zeroed, but still counted in the denominator: the more padding, the "
            "smaller the loss and its gradient.",
        ),
        WrongAnswer(
            "smoothing added, not normalised",
            _loss_variant(keep=lambda epsilon: 1.0),
            "it sums to 1",
            "With 1 on the target and epsilon spread on top, the target sums to 1 + epsilon. Take "
            "from the target what the others get.",
        ),
        WrongAnswer(
            "smoothing summed over words",
            _loss_variant(spread=lambda log_p: log_p.sum(-1)),
            "it sums to 1",
            "Each of the V words gets epsilon/V, not epsilon.",
        ),
        WrongAnswer(
            "smoothing for the others only",
            _others_only,
            "Each word gets epsilon/V",
            "The share is spread over all V words, the right one too, as `F.cross_entropy` does. "
            "Here the V - 1 others get it all, so the smoothing is a little too strong.",
        ),
        WrongAnswer(
            "summed, not averaged",
            _loss_variant(average=lambda each, real: each[real].sum()),
            "Four tokens are real",
            "The loss then grows with the batch, and so does its gradient. Divide by the number of "
            "real tokens.",
        ),
        WrongAnswer(
            "target shifted twice",
            _shifted_twice,
            "Four tokens are real",
            "The labels are already one ahead of the decoder's input. Shifting again inside the "
            "loss trains the model to skip a word.",
        ),
    ),
)


ANSWERS = {
    "14.1": FORWARD,
    "14.2": SMOOTHED_LOSS,
}
