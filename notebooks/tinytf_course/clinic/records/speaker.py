"""Patients of the small GPT that writes with a cache."""

from tinytf_course.clinic.record import Patient

MEASURE = "share of lines written rightly: greedily, drawn, by beam search (mean of three)"

PATIENTS = (
    Patient(
        "cache_off_by_one",
        "speaker",
        (("torch.arange(past, past + ids.size(1))",
          "(torch.arange(past, past + ids.size(1)) - int(past > 0))"),),
        "With a cache, every new token gets the position of the one before",
        "Loss and all scores without a cache are those of its twin; what it writes is wrong.",
        MEASURE,
        "cached equals uncached",
        (
            "Is the same line scored alike in one pass and token by token?",
            "At which token do the two differ first?",
            "Which position is the first token after a prompt of three given?",
        ),
        "Lengths count from one, positions from zero; the cache knows the length.",
        retrain=False,
    ),
    Patient(
        "beam_keeps_cache",
        "speaker",
        (("        caches = [(k[parent], v[parent]) for k, v in caches]\n", ""),),
        "Beam search reorders its lines and not their cache",
        "Greedy lines are right; those of the beam are worse than greedy ones.",
        MEASURE,
        "a wider beam is never less likely",
        (
            "Score what the beam wrote in one pass. Is its total the one that the beam believed?",
            "When does a line change its row?",
            "What belongs to a row, besides its tokens?",
        ),
        "The reordering of the cache is a hook that new model classes forget.",
        retrain=False,
    ),
    Patient(
        "top_p_drops_all",
        "speaker",
        (("before = chances.cumsum(-1) - chances", "before = chances.cumsum(-1)"),),
        "Where one token has more than p, top-p drops it and all others",
        "Drawn lines are wild where the model is surest.",
        MEASURE,
        "the likeliest token stays",
        (
            "Draw where the model is nearly certain. What comes?",
            "How many tokens are kept if the first has 0.95 and p is 0.9?",
            "Is the token that reaches p kept or dropped?",
        ),
        "Cumulative chances compared without the shift by one, in many samplers.",
        retrain=False,
    ),
)  # fmt: skip
