"""Patients of the encoder that fills masked tokens."""

from tinytf_course.clinic.record import Patient

MEASURE = "share of masked tokens predicted correctly, long and short lines in one batch"
_MASK = "        scores = scores.masked_fill(~real[:, None, None, :], -1e9)\n"

PATIENTS = (
    Patient(
        "causal_encoder",
        "reader",
        (
            (_MASK, "        seen = torch.ones(T, T, dtype=torch.bool).tril() & "
             "real[:, None, None, :]\n        scores = scores.masked_fill(~seen, -1e9)\n"),
        ),
        "The encoder is causal: no token attends to those on its right",
        "The loss falls but stays above that of its twin; perhaps the task is hard.",
        MEASURE,
        "the right context has influence",
        (
            "Which masked tokens does it predict wrongly: anywhere, or at one end?",
            "Change the last token: which outputs move, and which should?",
            "What does the mask of an encoder hide?",
        ),
        "An attention class used for both sides builds its own causal mask.",
    ),
    Patient(
        "pads_as_keys",
        "reader",
        ((_MASK, ""),),
        "Padding is attended to",
        "None in training, where a batch has lines of one length; at inference it is worse.",
        MEASURE,
        "padding has no influence",
        (
            "Is a line completed alike by itself and in a batch with longer ones?",
            "Append padding to a line, and compare the outputs.",
            "Where should `real` be used, and where is it?",
        ),
        "A mask is passed down through three classes, and the last one forgets it.",
        retrain=False,
    ),
    Patient(
        "labels_alias",
        "reader",
        (("masked = ids.clone()", "masked = ids"),),
        "The labels share the inputs' memory, so what is masked is masked in them, too",
        "The loss is zero after a few steps.",
        MEASURE,
        "the loss is above its floor",
        (
            "The loss is exactly zero: which token is the label?",
            "Print the labels where they are not ignored.",
            "Which names share memory after `masked = ...`?",
        ),
        "In-place masking of a batch whose labels were kept by reference.",
    ),
    Patient(
        "loss_over_everything",
        "reader",
        (("ids.masked_fill(~chosen, -100)", "ids.clone()"),),
        "The loss counts the tokens that are visible in the input, and the padding",
        "The loss is a quarter of what others report.",
        MEASURE,
        "only masked tokens are labels",
        (
            "How many labels of a batch are counted, and how many tokens are masked?",
            "Print the labels where the input shows the token.",
            "What keeps a label out of the cross-entropy?",
        ),
        "The labels are the ids, as for a language model, and the others are not set to -100.",
    ),
)  # fmt: skip
