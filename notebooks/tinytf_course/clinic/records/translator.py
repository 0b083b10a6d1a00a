"""Patients of the encoder-decoder that says lines backwards."""

from tinytf_course.clinic.record import Patient

MEASURE = "share of lines generated without an error, long and short ones in one batch"
_EMBED = "x = self.positions(self.embed(src) * math.sqrt(self.dim))"

PATIENTS = (
    Patient(
        "mask_inverted",
        "translator",
        (("torch.tril(torch.ones(T, T", "torch.triu(torch.ones(T, T"),),
        "Each target position attends to itself and to later positions",
        "The loss is the best of all, but not one line is generated correctly.",
        MEASURE,
        "the future has no influence",
        (
            "Compare its loss in training with what it generates at inference.",
            "Change the last target token: which outputs move?",
            "Print the mask for three tokens, and read row 0 aloud.",
        ),
        "A mask in which True means hidden meets code in which True means visible.",
    ),
    Patient(
        "memory_pads",
        "translator",
        ((", memory, memory_mask))", ", memory, torch.tensor(True)))"),),
        "The decoder attends to the padding of the source",
        "None in training, where a batch has lines of one length; at inference it is worse.",
        MEASURE,
        "padding has no influence",
        (
            "Is a line generated alike by itself and in a batch with longer ones?",
            "Append padding to a source, and compare the outputs.",
            "Follow the mask of the source from the encoder to each place that should use it.",
        ),
        "A call passes its masks by position, and the fifth argument is forgotten.",
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
        "The loss falls as far as it can without any information on the order.",
        MEASURE,
        "rows are independent",
        (
            "Put the same line into two rows: should the outputs agree?",
            "Swap two tokens of a source: do the encoder's outputs only swap?",
            "Write the shape of the table that is added below the shape of x.",
        ),
        "A positional encoding for (T, B, C) is applied to (B, T, C), as in many tutorials.",
    ),
    Patient(
        "embedding_swamps_positions",
        "translator",
        (("        nn.init.normal_(self.embed.weight, std=dim**-0.5)\n", ""),),
        "Embeddings have variance 1 and are multiplied by √d_model, so they swamp the positions",
        "The loss falls more slowly; perhaps it only needs more time.",
        MEASURE,
        "what is added has one size",
        (
            "How does the encoder know the position of a token?",
            "Measure the size of the embeddings and of the positional encodings.",
            "With what variance is nn.Embedding drawn, and what is it then multiplied by?",
        ),
        "The paper's √d_model with the default initialisation of nn.Embedding.",
    ),
    Patient(
        "scale_missing",
        "translator",
        ((" / math.sqrt(self.width)", ""),),
        "The scores are not divided by the root of their width",
        "No complaint: the loss curve is that of its twin, or better.",
        MEASURE,
        "the first attention is even",
        (
            "How spread should attention be before anything is learned?",
            "Compare its weights with those of F.scaled_dot_product_attention on the same q and k.",
            "Which factor belongs between the product and the softmax?",
        ),
        "A test of shapes alone lets it pass in more than one course.",
    ),
    Patient(
        "scale_by_model",
        "translator",
        (("math.sqrt(self.width)", "math.sqrt(self.heads * self.width)"),),
        "The scores are divided by the root of d_model, not of the head's width",
        "No complaint: the loss curve is that of its twin.",
        MEASURE,
        "the first attention is even",
        (
            "What is the variance of a score?",
            "Compare its weights with those of F.scaled_dot_product_attention on the same q and k.",
            "How many products are summed in one score?",
        ),
        "The formula of one head, kept when there were several.",
    ),
    Patient(
        "double_dropout",
        "translator",
        ((_EMBED, _EMBED + "\nx = self.positions.drop(x)"),),
        "Dropout is applied twice to the input: 19 % instead of 10 %",
        "The loss is a little higher, which might be the seed.",
        MEASURE,
        "dropout has the configured rate",
        (
            "How large a share of the encoder's input is zero in training?",
            "Count the zeros after the positions are added, and again at the first layer's input.",
            "Which module applies dropout, and which one applies it again?",
        ),
        "The positional encoding has a dropout of its own, and its caller has another.",
    ),
    Patient(
        "eval_forgotten",
        "translator",
        (("model.eval()\n    memory", "memory"),),
        "The model generates in training mode, with dropout",
        "The loss curve is that of its twin, but generated lines have errors that vary.",
        MEASURE,
        "the output is the same twice",
        (
            "Generate the same line twice. Is it the same?",
            "In which mode is the model while it generates?",
            "Where is eval() called, and when?",
        ),
        "torch.no_grad() is taken for eval(); or the loop puts train() before the report.",
        retrain=False,
    ),
)  # fmt: skip
