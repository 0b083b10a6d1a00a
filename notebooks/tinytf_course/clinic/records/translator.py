"""Patients of the encoder-decoder that says lines backwards."""

from tinytf_course.clinic.record import Patient

MEASURE = "share of lines written without an error, long and short ones in one batch"
_EMBED = "x = self.positions(self.embed(src) * math.sqrt(self.dim))"

PATIENTS = (
    Patient(
        "mask_inverted",
        "translator",
        (("torch.tril(torch.ones(T, T", "torch.triu(torch.ones(T, T"),),
        "Each target position sees itself and what comes after it",
        "The loss is the best of all; not one line is written right.",
        MEASURE,
        "the future is unmoved",
        (
            "Compare its score in training with what it writes alone.",
            "Change the last target token: which outputs move?",
            "Print the mask for three tokens, and read row 0 aloud.",
        ),
        "A mask where True means hidden meets code where True means seen.",
    ),
    Patient(
        "memory_pads",
        "translator",
        ((", memory, memory_mask))", ", memory, torch.tensor(True)))"),),
        "The decoder looks at the padding of the source",
        "Nothing in training, where a batch holds lines of one length; worse in service.",
        MEASURE,
        "pads are unmoved",
        (
            "Is a line written alike alone and in a batch with longer ones?",
            "Append pads to a source, and compare the outputs.",
            "Follow the mask of the source from the encoder to each place that should use it.",
        ),
        "A call passes its masks by position, and the fifth one is forgotten.",
        retrain=False,
    ),
    Patient(
        "positions_on_batch",
        "translator",
        (
            ("self.table[None, : x.size(1)]", "self.table[: x.size(0), None]"),
            ("longest=64", "longest=1024"),
        ),
        "Positions count the rows of the batch",
        "The loss falls as far as it can without knowing any order.",
        MEASURE,
        "rows are independent",
        (
            "Put the same line into two rows: should the outputs agree?",
            "Swap two tokens of a source: do the encoder's outputs only swap?",
            "Write the shape of the table that is added below the shape of x.",
        ),
        "A positional encoding for (T, B, C) is fed (B, T, C): in many tutorials.",
    ),
    Patient(
        "embedding_swamps_positions",
        "translator",
        (("        nn.init.normal_(self.embed.weight, std=dim**-0.5)\n", ""),),
        "Embeddings start with variance 1 and are multiplied by √d_model: positions drown",
        "The loss falls more slowly; perhaps it needs longer.",
        MEASURE,
        "two signals of one size are added",
        (
            "How does the encoder know where a token stands?",
            "Measure the size of what is added: of the embeddings, and of the positions.",
            "With what variance is nn.Embedding drawn, and what is it then multiplied by?",
        ),
        "The √d_model of the paper over the default start of nn.Embedding.",
    ),
    Patient(
        "scale_missing",
        "translator",
        ((" / math.sqrt(self.width)", ""),),
        "The scores are not divided by the root of their width",
        "Nothing: the curve is that of its twin, or better.",
        MEASURE,
        "the first attention is even",
        (
            "How spread should attention be before anything is learned?",
            "Compare its weights with those of F.scaled_dot_product_attention on the same q and k.",
            "Which factor stands between the product and the softmax?",
        ),
        "A check that only looks at shapes lets it pass in more than one course.",
    ),
    Patient(
        "scale_by_model",
        "translator",
        (("math.sqrt(self.width)", "math.sqrt(self.heads * self.width)"),),
        "The scores are divided by the root of d_model, not of the head's width",
        "Nothing: the curve is that of its twin.",
        MEASURE,
        "the first attention is even",
        (
            "What is the variance of a score?",
            "Compare its weights with those of F.scaled_dot_product_attention on the same q and k.",
            "How many products does one score add up?",
        ),
        "The formula of one head, kept when there were several.",
    ),
    Patient(
        "double_dropout",
        "translator",
        ((_EMBED, _EMBED + "\n        x = self.positions.drop(x)"),),
        "Dropout strikes twice on the way in: 19 % where 10 % were asked for",
        "The loss is a little higher; it might be the seed.",
        MEASURE,
        "as much is dropped as was asked for",
        (
            "How large a share of the encoder's input is zero in training?",
            "Count zeros after the positions were added; and again where the first layer reads.",
            "Who drops, and who drops again?",
        ),
        "The positional encoding has a dropout of its own, and its caller has one more.",
    ),
    Patient(
        "eval_forgotten",
        "translator",
        (("model.eval()\n    memory", "memory"),),
        "The model writes in training mode: dropout is on",
        "The curve is that of its twin; what it writes has errors, never the same.",
        MEASURE,
        "the same twice",
        (
            "Write the same line twice. Is it the same?",
            "In which mode is the model while it writes?",
            "Who calls eval(), and when?",
        ),
        "torch.no_grad() is taken for eval(); or the loop puts train() before the report.",
        retrain=False,
    ),
)  # fmt: skip
