"""Patients of the whole run: data, schedule, accumulation, checkpoint, grade."""

from tinytf_course.clinic.record import Patient

MEASURE = "BLEU of words, 0 to 1, as the program reports it on lines it calls new"
_UNIQUE = """    unique = sorted({digits: (digits, pieces) for digits, pieces in pairs}.values())
    return [p for i, p in enumerate(unique) if i % 5], unique[::5]"""

PATIENTS = (
    Patient(
        "data_leak",
        "pipeline",
        ((_UNIQUE, "    return [p for i, p in enumerate(pairs) if i % 5], pairs[::5]"),),
        "Lines that were collected twice are on both sides of the split",
        "The score is the best of all.",
        MEASURE,
        "no line is on both sides",
        (
            "How much better is it on the test set than on lines you draw yourself?",
            "Intersect the two sides of the split.",
            "What is done first: to split, or to take away what is there twice?",
        ),
        "Corpora are full of repeats; splits by line number scatter them to both sides.",
    ),
    Patient(
        "bleu_of_pieces",
        "pipeline",
        (
            ("bleu([words(line) for line in written], [words(pieces) for _, pieces in test])",
             "bleu(written, [pieces for _, pieces in test])"),
        ),
        "BLEU counts pieces, not words",
        "The score is better than that of others with the same model.",
        MEASURE,
        "the grade does not depend on how words are cut",
        (
            "What does BLEU count here?",
            "Cut all words into single letters, in both: should the grade change?",
            "Print the first line as it is handed to `bleu`.",
        ),
        "Published scores on tokenised text differ by points; hence sacreBLEU.",
        retrain=False,
    ),
    Patient(
        "warmup_never_ends",
        "pipeline",
        (("WARMUP, PEAK = 16, 2, 20, 8e-3", "WARMUP, PEAK = 16, 2, 4000, 8e-3"),),
        "The warm-up is longer than the whole run",
        "The loss falls slowly and without a fault.",
        MEASURE,
        "the learning rate reaches its peak",
        (
            "Draw the learning rate of the whole run.",
            "At which step is it highest?",
            "Where does the number of warm-up steps come from, and how long is this run?",
        ),
        "4000 steps of warm-up, copied from the paper into runs of a few hundred.",
    ),
    Patient(
        "accumulation_not_divided",
        "pipeline",
        (("loss = loss_of(model, part) / len(parts)", "loss = loss_of(model, part)"),
         ("total += loss.item()", "total += loss.item() / len(parts)")),
        "Gradients of the parts are added and never divided",
        "Nothing: the curve is that of its twin.",
        MEASURE,
        "parts add up to the whole",
        (
            "Should one batch in one part and in four give the same gradient?",
            "Compare the norms of the two gradients.",
            "What does adding the means of two halves give?",
        ),
        "In a line-by-line annotation of the paper that thousands have copied.",
    ),
    Patient(
        "accumulation_forgets",
        "pipeline",
        (("    model.zero_grad()\n    for part in parts:\n",
          "    for part in parts:\n        model.zero_grad()\n"),),
        "Gradients are cleared before each part: only the last one counts",
        "The loss is a little restless.",
        MEASURE,
        "parts add up to the whole",
        (
            "Should one batch in one part and in four give the same gradient?",
            "Change the first part: does the gradient move?",
            "What is cleared, and how often?",
        ),
        "zero_grad() moves one line down, into the inner loop.",
    ),
    Patient(
        "weights_untied",
        "pipeline",
        (("        parameter.data.copy_(checkpoint[name])\n",
          "        parameter.data.copy_(checkpoint[name])\n"
          '    model.head.weight = nn.Parameter(checkpoint["head.weight"])\n'),),
        "After the load the head has weights of its own",
        "Nothing: the curve goes on where it stopped.",
        MEASURE,
        "tied stays tied",
        (
            "How many parameters has the model before and after the load?",
            "Change the embedding: does the head move?",
            "Which line after the load makes a new Parameter?",
        ),
        "Loaders assign tensors by name; two names of one tensor become two tensors.",
    ),
    Patient(
        "optimiser_of_the_old",
        "pipeline",
        (("            optimizer = make_optimizer(model)\n", ""),),
        "After the load the optimiser still holds the weights of the model before",
        "The loss falls, then stays where it is: perhaps it has converged.",
        MEASURE,
        "every weight moves",
        (
            "Which weights change in one step, early and late in the run?",
            "Does the optimiser hold the parameters of the model that is trained?",
            "What is built anew in the middle, and what is not?",
        ),
        "A model is rebuilt, wrapped or moved after its optimiser was made.",
    ),
    Patient(
        "loss_over_pads",
        "pipeline",
        ((", ignore_index=PAD", ""),),
        "The loss is averaged over the padding",
        "The reported loss is a fraction of what others report.",
        "nats per piece on new lines, as the program reports them",
        "pads cost nothing",
        (
            "How many targets of a batch are padding?",
            "Append pads to a batch: should its loss move?",
            "Which targets does the cross-entropy leave out?",
        ),
        "No ignore_index; the easy answer 'pad' makes most of the mean.",
        grade="report",
    ),
)  # fmt: skip
