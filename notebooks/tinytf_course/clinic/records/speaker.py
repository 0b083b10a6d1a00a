"""Patients of the small GPT that writes with a cache."""

from tinytf_course.clinic.record import Patient

MEASURE = "share of correct lines: greedy, sampled, by beam search (mean of three)"

PATIENTS = (
    Patient(
        "cache_off_by_one",
        "speaker",
        (("torch.arange(past, past + ids.size(1))",
          "(torch.arange(past, past + ids.size(1)) - int(past > 0))"),),
        "With a cache, every new token gets the position of the one before",
        "The loss, and all logits without a cache, are those of its twin; the text is wrong.",
        MEASURE,
        "cached equals uncached",
        (
            "Does a line have the same logits in one pass and token by token?",
            "At which token do the two differ first?",
            "Which position does the first token after a prompt of three get?",
        ),
        "Lengths count from one and positions from zero; the cache knows the length.",
        retrain=False,
    ),
    Patient(
        "beam_keeps_cache",
        "speaker",
        (("        caches = [(k[parent], v[parent]) for k, v in caches]\n", ""),),
        "Beam search reorders its hypotheses but not their cache",
        "Greedy decoding is right; beam search is worse than greedy decoding.",
        MEASURE,
        "a wider beam is never less likely",
        (
            "Score a line of the beam in one pass. Is it the score that the beam had for it?",
            "When does a hypothesis change its row?",
            "What belongs to a row, besides its tokens?",
        ),
        "Reordering the cache is a hook that new model classes forget.",
        retrain=False,
    ),
    Patient(
        "top_p_drops_all",
        "speaker",
        (("before = chances.cumsum(-1) - chances", "before = chances.cumsum(-1)"),),
        "Where one token has a probability above p, top-p drops it and all others",
        "Sampled lines are wild where the model is most certain.",
        MEASURE,
        "the most likely token stays",
        (
            "Sample where the model is nearly certain. What do you get?",
            "How many tokens are kept if the first has 0.95 and p is 0.9?",
            "Is the token that reaches p kept or dropped?",
        ),
        "Cumulative probabilities compared without the shift by one, in many samplers.",
        retrain=False,
    ),
)  # fmt: skip
