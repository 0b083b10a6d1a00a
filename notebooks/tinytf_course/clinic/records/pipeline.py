"""Patients of the whole run: data, schedule, accumulation, checkpoint, grade."""

from tinytf_course.clinic.record import Patient

MEASURE = "BLEU of words, 0 to 1, as the program reports it on lines that it takes for new"
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
            "What comes first: the split, or the removal of duplicates?",
        ),
        "Corpora are full of duplicates, and a split by line number puts them on both sides.",
    ),
    Patient(
        "bleu_of_pieces",
        "pipeline",
        (
            ("bleu([words(line) for line in written], [words(pieces) for _, pieces in test])",
             "bleu(written, [pieces for _, pieces in test])"),
        ),
        "BLEU counts pieces, not words",
        "The score is better than others get with the same model.",
        MEASURE,
        "the score does not depend on how words are cut",
        (
            "What does BLEU count here?",
            "Cut all words into single letters, on both sides: should the score change?",
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
        "The loss falls slowly and smoothly.",
        MEASURE,
        "the learning rate reaches its peak",
        (
            "Plot the learning rate over the whole run.",
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
        "No complaint: the loss curve is that of its twin.",
        MEASURE,
        "parts add up to the whole",
        (
            "Should one batch in one part and in four give the same gradient?",
            "Compare the norms of the two gradients.",
            "What is the sum of the means of two halves?",
        ),
        "In a line-by-line annotation of the paper that thousands of people have copied.",
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
        "After loading, the head has weights of its own",
        "No complaint: the loss curve continues where it stopped.",
        MEASURE,
        "tied stays tied",
        (
            "How many parameters does the model have before and after loading?",
            "Change the embedding: does the head move?",
            "Which line after loading makes a new Parameter?",
        ),
        "Loaders assign tensors by name; two names of one tensor become two tensors.",
    ),
    Patient(
        "optimiser_of_the_old",
        "pipeline",
        (("            optimizer = make_optimizer(model)\n", ""),),
        "After loading, the optimiser still holds the weights of the old model",
        "The loss falls and then stays where it is; perhaps it has converged.",
        MEASURE,
        "every weight moves",
        (
            "Which weights change in one step, early and late in the run?",
            "Does the optimiser hold the parameters of the model that is trained?",
            "What is built again in the middle of the run, and what is not?",
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
        "padding costs nothing",
        (
            "How many targets of a batch are padding?",
            "Append padding to a batch: should its loss change?",
            "Which targets does the cross-entropy leave out?",
        ),
        "No ignore_index, so the easy label 'pad' makes up most of the mean.",
        grade="report",
    ),
)  # fmt: skip
