"""Patients of the encoder that fills masked tokens."""

from tinytf_course.clinic.record import Patient

MEASURE = "share of masked tokens filled rightly, long and short lines in one batch"
_MASK = "        scores = scores.masked_fill(~real[:, None, None, :], -1e9)\n"

PATIENTS = (
    Patient(
        "causal_encoder",
        "reader",
        (
            (_MASK, "        seen = torch.ones(T, T, dtype=torch.bool).tril() & "
             "real[:, None, None, :]\n        scores = scores.masked_fill(~seen, -1e9)\n"),
        ),
        "The encoder is causal: it never sees what stands on the right",
        "The loss falls and stays above that of its twin; the task may be hard.",
        MEASURE,
        "the right context is read",
        (
            "Which masked tokens does it fill wrongly: anywhere, or at one end?",
            "Change the last token: which outputs move, and which should?",
            "What does the mask of an encoder hide?",
        ),
        "One attention class for both sides builds its own causal mask.",
    ),
    Patient(
        "pads_as_keys",
        "reader",
        ((_MASK, ""),),
        "Padding is attended to",
        "Nothing in training, where a batch holds lines of one length; worse in service.",
        MEASURE,
        "pads are unmoved",
        (
            "Is a line filled alike alone and in a batch with longer ones?",
            "Append pads to a line, and compare the outputs.",
            "Where should `real` be used, and where is it?",
        ),
        "A mask is passed down through three classes, and the last one forgets it.",
        retrain=False,
    ),
    Patient(
        "labels_alias",
        "reader",
        (("masked = ids.clone()", "masked = ids"),),
        "The labels are the inputs' own memory: what was masked is masked in them too",
        "The loss is zero after a few steps.",
        MEASURE,
        "the loss is above its floor",
        (
            "A loss of exactly zero: which answer is asked for?",
            "Print the labels where they are not ignored.",
            "Which names share memory after `masked = ...`?",
        ),
        "In-place masking of a batch whose labels were kept by reference.",
    ),
    Patient(
        "loss_over_everything",
        "reader",
        (("ids.masked_fill(~chosen, -100)", "ids.clone()"),),
        "The loss counts the tokens that stand in the input, and the padding",
        "The loss is four times lower than anybody else's.",
        MEASURE,
        "only masked tokens are asked for",
        (
            "How many answers of a batch are counted, and how many are hidden?",
            "Print the labels where the input shows the token.",
            "What keeps a label out of the cross-entropy?",
        ),
        "Labels are the ids, as for a language model; nobody sets the others to -100.",
    ),
)  # fmt: skip
