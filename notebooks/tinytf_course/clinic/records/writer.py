"""Patients of the small GPT on sequences of known entropy."""

from tinytf_course.clinic.record import Patient

MEASURE = "bits per token above the entropy, predicting one token at a time"
_SPLIT = "{0} = {0}.view(B, T, self.heads, C // self.heads).transpose(1, 2)"
_TORN = "{0} = {0}.view(B, self.heads, T, C // self.heads)"

PATIENTS = (
    Patient(
        "mask_meets_heads",
        "writer",
        (("future = future.unsqueeze(0)", "future = future.unsqueeze(1)"),),
        "The mask has the wrong rank, and the window is as long as there are heads",
        "The loss falls below what the sequences allow; at inference, it writes nonsense.",
        MEASURE,
        "the future has no influence",
        (
            "Can a loss be below the entropy of the sequences? What would a model have to know?",
            "Change the last token of a sequence: do outputs before it move?",
            "Write the shapes of `scores` and of the mask below each other, from the right.",
        ),
        "A tutorial's mask of shape (T, T) is given its new axis at 1 and meets the heads.",
    ),
    Patient(
        "labels_not_shifted",
        "writer",
        (('batch["ids"][:, 1:]', 'batch["ids"][:, :-1]'),),
        "The labels are the inputs, so nothing is predicted",
        "The loss is zero after a hundred steps; at inference, it repeats its last token.",
        MEASURE,
        "the loss is above its floor",
        (
            "How low can the loss be if every sequence contains some chance?",
            "Which token is the label at position t, and has it been read there?",
            "Print the labels of one batch below its inputs.",
        ),
        "Home-made loops, in which model and loop each leave the shift to the other.",
    ),
    Patient(
        "norm_over_time",
        "writer",
        (
            ("x.mean(dim=-1, keepdim=True)", "x.mean(dim=1, keepdim=True)"),
            ("x.var(dim=-1, keepdim=True, unbiased=False)",
             "x.var(dim=1, keepdim=True, unbiased=False)"),
        ),
        "The norm takes mean and variance over the positions, not over the features",
        "The loss is a little too good; at inference, it is much worse than in training.",
        MEASURE,
        "the future has no influence",
        (
            "Is attention the only place where positions can meet?",
            "Take one block apart: which of its parts moves position 0 when the last one changes?",
            "Over which axis does each statistic of the norm run?",
        ),
        "LayerNorms written for (B, C), or with BatchNorm's axis, and applied to (B, T, C).",
    ),
    Patient(
        "heads_by_view",
        "writer",
        tuple((_SPLIT.format(x), _TORN.format(x)) for x in "qkv"),
        "Heads are made by a view alone, so each has some positions instead of some features",
        "The loss falls below what the sequences allow.",
        MEASURE,
        "the future has no influence",
        (
            "The mask is right. Does row t of a head belong to position t?",
            "Change the last token, and print which rows of one head's queries move.",
            "(B, T, C) viewed as (B, H, T, D) keeps the order in memory: whose number is where?",
        ),
        "`view(B, H, T, D)` in place of `view(B, T, H, D).transpose(1, 2)`; every shape is right.",
    ),
    Patient(
        "softmax_over_queries",
        "writer",
        (("scores.softmax(dim=-1)", "scores.softmax(dim=-2)"),),
        "The softmax runs over the queries, not over the keys",
        "The loss falls nearly as it should.",
        MEASURE,
        "the future has no influence",
        (
            "Which attention weights must sum to 1?",
            "Change the last token, and look at the weights of the first query.",
            "Read the axis of the softmax together with the shape of the scores.",
        ),
        "`softmax(dim=2)`, right for (B, T, S), kept when the heads came: (B, H, T, S).",
    ),
    Patient(
        "residual_of_normalised",
        "writer",
        (
            ("x = x + self.drop(self.attention(self.norm1(x)))",
             "x = self.norm1(x)\nx = x + self.drop(self.attention(x))"),
        ),
        "The residual connection adds the normalised x, not x",
        "No complaint: the loss curve is that of its twin.",
        MEASURE,
        "the input passes through",
        (
            "If all sublayers return 0, what should a Pre-LN block return?",
            "Set the output layers of a block to zero; compare what goes in and what comes out.",
            "Which x is on the left of the plus?",
        ),
        "A published course normalises x in place before the sublayer, and adds that.",
    ),
    Patient(
        "huge_eps",
        "writer",
        (("betas=(0.9, 0.95)", "betas=(0.9, 0.95), eps=1e-2"),),
        "Adam's eps is larger than the root of its second moment",
        "The loss falls, but slowly, as that of many models does.",
        MEASURE,
        "the first step has the size of the learning rate",
        (
            "How far should Adam move a weight at its first step?",
            "Divide the gradients by a hundred: does the first step change?",
            "Compare the optimiser's settings with the size of a gradient.",
        ),
        "1e-8, 1e-6 and the 0.1 of other libraries' image models are copied between optimisers.",
    ),
)  # fmt: skip
