"""Answers to chapter 00: references and mistakes."""

from tinytf_course.grading import Answers, WrongAnswer

_WHOLE = "whole numbers carry no gradient"
_AS_MANY = "there is one gold sentence for each output"
_LISTS = "sentences are lists already"
_SHARE = "return sum((list(o) == list(g) for o, g in zip(outputs, gold, strict=True))) / len(gold)"
_TURNED = _SHARE.replace("outputs, gold", "gold, outputs")
_SHARE_TURNED = f"{_SHARE} => {_TURNED}"
_BEST = "best = weights.argmax(dim=-1).tolist()"

# 00.1 where each word looks


def most_attended(weights):
    """For each target word, the index of the source word with the largest weight.

    weights is (..., T, S): a row per target word, a column per source word. Returns (..., T).
    """
    return weights.argmax(dim=-1)


MOST_ATTENDED = Answers(
    reference=most_attended,
    wrong=(
        WrongAnswer(
            "argmax over the target words",
            lambda weights: weights.argmax(dim=-2),
            "the answer has shape (3,), expected (2,)",
            "Down a column we ask which target word looks here most. A row is one word's "
            "attention, and only rows sum to 1.",
        ),
        WrongAnswer(
            "the weight instead of the word",
            lambda weights: weights.max(dim=-1).values,
            "indexes are whole numbers",
            "`max` says how much; `argmax` says where.",
        ),
        WrongAnswer(
            "one answer for the whole map",
            lambda weights: weights.argmax(),
            "the answer has shape (), expected (2,)",
            "Without `dim`, `argmax` searches the flattened map and gives one number.",
        ),
        WrongAnswer(
            "the last column left out",
            lambda weights: weights[..., :-1].argmax(dim=-1),
            "you get [0, 1], expected [0, 3]",
            "The column of `<eos>` is a choice like any other. Leaving it out makes a head that "
            "rests on `<eos>` look as if it pointed at a word.",
        ),
        WrongAnswer(
            "axes counted from the front",
            lambda weights: weights.argmax(dim=1),
            "for the weights of two heads",
            "`dim=1` is the source axis of one map only. With a head axis in front it is the "
            "target axis; `dim=-1` is right for both.",
        ),
        WrongAnswer(
            "the first weight above a half",
            lambda weights: (weights > 0.5).long().argmax(dim=-1),
            "weights=[[0.3, 0.3, 0.4]]",
            "A row's largest weight may be far below a half. It is the largest, not a large one.",
        ),
    ),
    equivalent={
        "return weights.argmax(dim=-1) => return weights.argmax(dim=-1).detach()": _WHOLE,
        "return weights.argmax(dim=-1) => return weights.detach().argmax(dim=-1)": _WHOLE,
    },
)


# 00.2 the share that is exact


def exact_share(outputs, gold):
    """The share of sentences translated exactly: every word right, in order, and no word more.

    outputs and gold are lists of sentences, each a list of words. Returns a share in 0..1.
    """
    return sum(list(o) == list(g) for o, g in zip(outputs, gold, strict=True)) / len(gold)


def _words_right(outputs, gold):
    pairs = [(a, b) for o, g in zip(outputs, gold) for a, b in zip(o, g)]
    return sum(a == b for a, b in pairs) / sum(map(len, gold))


def _different_pairs(outputs, gold):
    pairs = {(tuple(o), tuple(g)) for o, g in zip(outputs, gold)}
    return sum(o == g for o, g in pairs) / len(pairs)


EXACT_SHARE = Answers(
    reference=exact_share,
    wrong=(
        WrongAnswer(
            "share of words",
            _words_right,
            "One of two sentences is right",
            "A sentence with one wrong word can be a wrong translation. Sharing out the credit by "
            "words makes a model look better than its sentences are.",
        ),
        WrongAnswer(
            "compares as far as the shorter one",
            lambda outputs, gold: (
                sum(all(a == b for a, b in zip(o, g)) for o, g in zip(outputs, gold)) / len(gold)
            ),
            "The second sentence stops too early",
            "`zip` stops at the shorter list, so a translation that stops too early, or never "
            "stops, is counted as right.",
        ),
        WrongAnswer(
            "compares sets of words",
            lambda outputs, gold: sum(set(o) == set(g) for o, g in zip(outputs, gold)) / len(gold),
            "The fish did not eat the dog",
            "The words are all there, and the fish eats the dog. A set forgets order and "
            "repetition.",
        ),
        WrongAnswer(
            "all or nothing",
            lambda outputs, gold: float(
                all(list(o) == list(g) for o, g in zip(outputs, gold, strict=True))
            ),
            "One of two sentences is right",
            "This asks whether the whole list is right. The score is a share of the sentences.",
        ),
        WrongAnswer(
            "a count, not a share",
            lambda outputs, gold: sum(
                list(o) == list(g) for o, g in zip(outputs, gold, strict=True)
            ),
            "Both are right",
            "Divide by the number of sentences, or the score depends on how many were asked.",
        ),
        WrongAnswer(
            "found anywhere in the gold",
            lambda outputs, gold: sum(o in gold for o in outputs) / len(gold),
            "Each is the translation of the other sentence",
            "`in` asks whether some sentence has this translation. Go through both lists side by "
            "side, and compare each output with its own gold.",
        ),
        WrongAnswer(
            "words joined to one text",
            lambda outputs, gold: (
                sum("".join(o) == "".join(g) for o, g in zip(outputs, gold, strict=True))
                / len(gold)
            ),
            "outputs=[['a', 'bc']",
            "Joined, `a bc` and `ab c` are the same letters. Sentences are lists of words: compare "
            "the lists.",
        ),
        WrongAnswer(
            "looked up by its words",
            lambda outputs, gold: sum(gold[outputs.index(o)] == o for o in outputs) / len(gold),
            "outputs=[['a'], ['a']]",
            "`index` finds the first sentence that reads like this one. Two outputs may be the "
            "same and have different golds: go through both lists side by side, with `zip`.",
        ),
        WrongAnswer(
            "equal pairs counted once",
            _different_pairs,
            "outputs=[['a'], ['a'], ['b']]",
            "A set, or a dict, keeps one of two equal pairs. Both sentences were asked, and count.",
        ),
        WrongAnswer(
            "capitals ignored",
            lambda outputs, gold: (
                sum([w.lower() for w in o] == [w.lower() for w in g] for o, g in zip(outputs, gold))
                / len(gold)
            ),
            "A capital makes it another word",
            "For the model `He` and `he` are two words, as `cat` and `mat` are. Compare what "
            "stands there.",
        ),
    ),
    equivalent={
        f"{_SHARE} => {_SHARE.replace('/ len(gold)', '/ len(outputs)')}": _AS_MANY,
        f"{_SHARE} => {_SHARE.replace('list(o)', 'o')}": _LISTS,
        f"{_SHARE} => {_SHARE.replace('list(g)', 'g')}": _LISTS,
        _SHARE_TURNED: "it is equal from both sides",
        f"{_SHARE} => {_SHARE.replace(', strict=True', '')}": _AS_MANY,
        f"{_SHARE} => {_SHARE.replace('strict=True', 'strict=False')}": _AS_MANY,
    },
)


# 00.3 attention, graded


def alignment_accuracy(weights, links):
    """The share of aligned target words whose largest weight is on one of their gold links.

    weights is (T, S); links is a list of (source index, target index). Target words with no link
    do not count. Returns a number in 0..1.
    """
    best = weights.argmax(dim=-1).tolist()
    aligned = {t for _, t in links}
    return sum((best[t], t) in links for t in aligned) / len(aligned)


def _largest_of_all(weights, links):
    aligned = {t for _, t in links}
    found = (weights == weights.max()).nonzero().tolist()
    return sum(any([t, s] in found for s, u in links if u == t) for t in aligned) / len(aligned)


def _accuracy(hit=None, count=None, flip=False):
    """An `alignment_accuracy` with one thing wrong."""

    def accuracy(weights, links):
        links = [(t, s) for s, t in links] if flip else list(links)
        best = weights.argmax(dim=-1).tolist()
        aligned = {t for _, t in links}
        hits = hit(weights, links) if hit else sum((best[t], t) in links for t in aligned)
        return hits / (count(weights, links) if count else len(aligned))

    return accuracy


def _mass(weights, links):
    return sum(weights[t, s].item() for s, t in links)


def _one_link(weights, links):
    best = weights.argmax(dim=-1).tolist()
    return sum(best[t] == s for t, s in {t: s for s, t in links}.items())


def _found_links(weights, links):
    best = weights.argmax(dim=0).tolist()
    return sum(best[s] == t for s, t in links)


ALIGNMENT = Answers(
    reference=alignment_accuracy,
    wrong=(
        WrongAnswer(
            "source and target swapped",
            _accuracy(flip=True),
            "Links are (source, target)",
            "A link names the source word first; the map has the target word first. Read each "
            "link as (s, t) and look up weights[t, s].",
        ),
        WrongAnswer(
            "divides by all target words",
            _accuracy(count=lambda weights, links: weights.size(0)),
            "word 1 has no link",
            "A word without a gold link, `<eos>` for one, cannot be right. Counting it caps the "
            "score below 1 for every head.",
        ),
        WrongAnswer(
            "divides by the number of links",
            _accuracy(count=lambda weights, links: len(links)),
            "Target words 0 and 2 look at one of their own source words",
            "A word with two links has one largest weight, so it can hit only one of them. Count "
            "target words, not links.",
        ),
        WrongAnswer(
            "one link per word",
            _accuracy(hit=_one_link),
            "Target words 0 and 2 look at one of their own source words",
            "A dictionary by target word keeps one link of each word and forgets the others. The "
            "word is right on any of its links.",
        ),
        WrongAnswer(
            "weight on the links",
            _accuracy(hit=_mass),
            "Links are (source, target)",
            "This is the share of attention that lies on gold links, a fine score too, but not the "
            "one asked for: a word counts as a whole or not at all.",
        ),
        WrongAnswer(
            "asks the source words",
            _accuracy(hit=_found_links, count=lambda weights, links: len(links)),
            "Links are (source, target)",
            "The largest weight is searched down a column. Each target word makes one choice, "
            "along its row.",
        ),
        WrongAnswer(
            "the largest weight of the whole map",
            _largest_of_all,
            "you get 0, expected 0.8333",
            "Each target word has a row and a largest weight of its own.",
        ),
    ),
    equivalent={
        f"{_BEST} => best = weights.argmax(dim=-1)": "a tensor of one number is equal to it",
        f"{_BEST} => best = weights.detach().argmax(dim=-1).tolist()": _WHOLE,
        f"{_BEST} => best = weights.argmax(dim=1).tolist()": "a map has two axes",
    },
)

ANSWERS = {
    "00.1": MOST_ATTENDED,
    "00.2": EXACT_SHARE,
    "00.3": ALIGNMENT,
}
