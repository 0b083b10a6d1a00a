"""Answers to chapter 17: references and mistakes."""

import math

import torch

from tinytf.metrics.bleu import clipped_matches, ngrams
from tinytf_course.grading import Answers, WrongAnswer

# 17.1 a cache that grows


def my_append(cache, k, v):
    """Add new keys and values after the cached ones; return all of them, as (k, v).

    cache is None, or the pair that the last call returned. k and v are (B, H, new, D).
    """
    if cache is None:
        return k, v
    return torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)


def _along(axis):
    def append(cache, k, v):
        if cache is None:
            return k, v
        return torch.cat([cache[0], k], dim=axis), torch.cat([cache[1], v], dim=axis)

    return append


def _new_first(cache, k, v):
    if cache is None:
        return k, v
    return torch.cat([k, cache[0]], dim=2), torch.cat([v, cache[1]], dim=2)


def _keys_only(cache, k, v):
    return (k, v) if cache is None else (torch.cat([cache[0], k], dim=2), v)


def _values_of_keys(cache, k, v):
    if cache is None:
        return k, v
    keys = torch.cat([cache[0], k], dim=2)
    return keys, torch.cat([cache[1], k], dim=2)


def _window(cache, k, v):
    k, v = my_append(cache, k, v)
    return k[:, :, -4:], v[:, :, -4:]


CACHE = Answers(
    reference=my_append,
    equivalent={},
    wrong=(
        WrongAnswer(
            "joined along the width",
            _along(-1),
            "k",
            "The last axis is D, the numbers of one position. New positions go along axis 2.",
        ),
        WrongAnswer(
            "joined along the batch",
            _along(0),
            "k",
            "Axis 0 counts sentences: the new position would become other sentences' past.",
        ),
        WrongAnswer(
            "joined along the heads",
            _along(1),
            "k",
            "Axis 1 counts heads. New positions go along axis 2.",
        ),
        WrongAnswer(
            "the new ones first",
            _new_first,
            "expected [[0, 1], [2, 3], [4, 5], [-100, -100]]",
            "Attention over all of them would not notice, since no mask is applied at one new "
            "position. The next chunk of several, with its mask, would.",
        ),
        WrongAnswer(
            "values not kept",
            _keys_only,
            "v, the shape is (2, 2, 1, 2), expected (2, 2, 4, 2)",
            "Values are looked up by the same weights: there must be one for every key.",
        ),
        WrongAnswer(
            "keys kept as values",
            _values_of_keys,
            "v, position [0, 0, 3, 0] is -100, expected -200",
            "A slip of copy and paste that no shape can show.",
        ),
        WrongAnswer(
            "an empty cache not expected",
            lambda cache, k, v: (torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)),
            "raises TypeError",
            "Before the first step there is nothing: `cache` is None, and the new ones are all.",
        ),
        WrongAnswer(
            "a window of the last few",
            _window,
            "9 positions, one by one, k",
            "Every word so far may be attended to; a cache that forgets changes the answer. "
            "(Models with sliding windows do so on purpose.)",
        ),
        WrongAnswer(
            "only the new ones",
            lambda cache, k, v: (k, v),
            "k[0, 0], the shape is (1, 2), expected (4, 2)",
            "The past has to be returned too: the new query attends to all of it.",
        ),
        WrongAnswer(
            "float32 whatever comes",
            lambda cache, k, v: tuple(x.float() for x in my_append(cache, k, v)),
            "the dtype is float32, expected float64",
            "A cache in another dtype than the model's does not meet its queries.",
        ),
    ),
)


# 17.2 attention with a cache


def my_cached_attention(x, w_q, w_k, w_v, cache=None):
    """Causal attention of the newest positions x (B, T, C): (y, (k, v)).

    Each w is (C, D) and multiplies from the right. cache is None, or the keys and values of the S
    positions before, each (B, S, D). y is (B, T, D), k and v are (B, S + T, D), oldest first.
    """
    q, k, v = x @ w_q, x @ w_k, x @ w_v  # each (B, T, C) -> (B, T, D)
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=1), torch.cat([cache[1], v], dim=1)
    scores = q @ k.mT / math.sqrt(q.size(-1))  # (B, T, S + T)
    allowed = torch.ones_like(scores, dtype=torch.bool).tril(k.size(1) - q.size(1))
    weights = scores.masked_fill(~allowed, -math.inf).softmax(dim=-1)
    return weights @ v, (k, v)


def _attention(
    offset=lambda queries, keys: keys - queries,
    join=lambda old, new: torch.cat([old, new], dim=1),
    scale=lambda x, q: math.sqrt(q.size(-1)),
    returned=lambda new, joined: joined,
):
    """The reference with a part exchanged."""

    def attention(x, w_q, w_k, w_v, cache=None):
        q, *new = x @ w_q, x @ w_k, x @ w_v
        k, v = new if cache is None else map(join, cache, new)
        scores = q @ k.mT / scale(x, q)
        allowed = torch.ones_like(scores, dtype=torch.bool).tril(offset(q.size(1), k.size(1)))
        weights = scores.masked_fill(~allowed, -math.inf).softmax(dim=-1)
        return weights @ v, tuple(returned(new, (k, v)))

    return attention


def _past_not_read(x, w_q, w_k, w_v, cache=None):
    y, _ = my_cached_attention(x, w_q, w_k, w_v)
    return y, my_cached_attention(x, w_q, w_k, w_v, cache)[1]


def _masked_after(x, w_q, w_k, w_v, cache=None):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=1), torch.cat([cache[1], v], dim=1)
    weights = (q @ k.mT / math.sqrt(q.size(-1))).softmax(dim=-1)
    return weights.tril(k.size(1) - q.size(1)) @ v, (k, v)


def _low_number(x, w_q, w_k, w_v, cache=None):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=1), torch.cat([cache[1], v], dim=1)
    scores = q @ k.mT / math.sqrt(q.size(-1))
    allowed = torch.ones_like(scores, dtype=torch.bool).tril(k.size(1) - q.size(1))
    return scores.masked_fill(~allowed, -1e4).softmax(dim=-1) @ v, (k, v)


def _values_of_the_keys(x, w_q, w_k, w_v, cache=None):
    y, (k, _) = my_cached_attention(x, w_q, w_k, w_v, cache)
    return y, (k, k)


def _inputs_kept(x, w_q, w_k, w_v, cache=None):
    y, (k, v) = my_cached_attention(x, w_q, w_k, w_v, cache)
    old = 0 if cache is None else cache[0].size(1)
    q = x @ w_q
    return y, (torch.cat([k[:, :old], q], dim=1), v)


ATTENTION = Answers(
    reference=my_cached_attention,
    equivalent={
        "allowed = … => ….detach()…": "a mask of booleans carries no gradient",
        "allowed = … => ….float()…": "only the shape of the scores is used there",
        "allowed = … => allowed = ….tril(v.size(1) - q.size(1))": "as many values as keys",
        "weights = … => weights = scores.masked_fill(~allowed.detach()…": "a mask of booleans "
        "carries no gradient",
        "scores = … => scores = q @ k.mT / math.sqrt(k.size(-1))": "a key is as wide as a query",
        "scores = … => scores = q @ k.mT / math.sqrt(v.size(-1))": "a value is as wide as a key",
    },
    wrong=(
        WrongAnswer(
            "the triangle at the left",
            _attention(offset=lambda queries, keys: 0),
            "for 1 new position after 3 in the cache, y",
            "The new positions are the last of all, not the first: the triangle has to move right "
            "by the number of positions in the cache.",
        ),
        WrongAnswer(
            "no mask",
            _attention(offset=lambda queries, keys: keys),
            "The first position sees itself only",
            "A single new position needs none. Several at once do: the first of them must not see "
            "the second.",
        ),
        WrongAnswer(
            "one position too few",
            _attention(offset=lambda queries, keys: max(keys - queries - 1, 0)),
            "for 1 new position after 3 in the cache, y",
            "A position sees itself, too.",
        ),
        WrongAnswer(
            "the cache is kept and not read",
            _past_not_read,
            "for 1 new position after 3 in the cache, y",
            "A new query attends to all keys so far, those of the cache included.",
        ),
        WrongAnswer(
            "the new ones first",
            _attention(join=lambda old, new: torch.cat([new, old], dim=1)),
            "for 2 new positions after 3 in the cache, y of the first",
            "The mask goes by places: position 0 has to be the oldest.",
        ),
        WrongAnswer(
            "only the new ones are returned",
            _attention(returned=lambda new, joined: new),
            "the shape is (1, 2, 2), expected (1, 5, 2)",
            "The next call has only what this one returns: the past has to be in it.",
        ),
        WrongAnswer(
            "keys kept as values",
            _values_of_the_keys,
            "for one position and no cache, v",
            "A slip of copy and paste that no shape can show.",
        ),
        WrongAnswer(
            "queries kept as keys",
            _inputs_kept,
            "what is returned as the cache, k",
            "An old query has had its answer. What the later ones need are keys and values.",
        ),
        WrongAnswer(
            "divided by the root of C",
            _attention(scale=lambda x, q: math.sqrt(x.size(-1))),
            "for 6 positions in pieces, y",
            "Queries and keys have D numbers each: √D, not the root of the model's width.",
        ),
        WrongAnswer(
            "not divided",
            _attention(scale=lambda x, q: 1.0),
            "for 3 positions at once and no cache, y",
            "Scores are divided by √D before the softmax.",
        ),
        WrongAnswer(
            "a low number for -∞",
            _low_number,
            "all below -10,000",
            "A score may be lower than any number that you choose, except -∞.",
        ),
        WrongAnswer(
            "masked after the softmax",
            _masked_after,
            "The first position sees itself only",
            "What is hidden has taken its share by then, and the rest no longer sums to 1.",
        ),
    ),
)


# 17.3 what was left out


def my_recall(translation, references, n):
    """How much of a reference the translation says: a share of its n-grams, from 0 to 1.

    Each n-gram of a reference counts at most as often as the translation says it. Of several
    references the one counts of which most is said; one without n-grams gives 0.
    """
    shares = [0.0]
    for reference in references:
        said, wanted = clipped_matches(reference, [translation], n)  # the roles exchanged
        if wanted:
            shares.append(said / wanted)
    return max(shares)


def _share(said, wanted, without=0.0):
    return said / wanted if wanted else without


def _each(share, choose=max):
    """A `my_recall` of a share for one reference, with one thing wrong."""

    def recall(translation, references, n):
        return choose([share(translation, reference, n) for reference in references])

    return recall


def _right(translation, reference, n):
    return _share(*clipped_matches(reference, [translation], n))


def _unclipped(translation, reference, n):
    said, wanted = ngrams(translation, n), ngrams(reference, n)
    return _share(sum(wanted[gram] for gram in wanted if gram in said), wanted.total())


def _once(translation, reference, n):
    said, wanted = set(ngrams(translation, n)), set(ngrams(reference, n))
    return _share(len(said & wanted), len(wanted))


def _repeated(translation, reference, n):
    said, wanted = ngrams(translation, n), ngrams(reference, n)
    return _share(sum(said[gram] for gram in said if gram in wanted), wanted.total())


def _by_words(translation, reference, n):
    return _share(clipped_matches(reference, [translation], n)[0], len(reference))


def _together(translation, references, n):
    counts = [clipped_matches(reference, [translation], n) for reference in references]
    return _share(sum(said for said, _ in counts), sum(wanted for _, wanted in counts))


def _any_of_them(translation, references, n):
    said, _ = clipped_matches(translation, references, n)
    return max(_share(said, ngrams(reference, n).total()) for reference in references)


RECALL = Answers(
    reference=my_recall,
    equivalent={"… => if said:": "where nothing is said the share is 0, as it is at first"},
    wrong=(
        WrongAnswer(
            "precision",
            lambda translation, references, n: _share(*clipped_matches(translation, references, n)),
            "you get 1, expected 0.3333",
            "That is the share of what was said. Here the reference's n-grams are counted, and the "
            "translation says how often each may count.",
        ),
        WrongAnswer(
            "not clipped",
            _each(_unclipped),
            "you get 0.5, expected 0.3333",
            "One `the` was said: it is found for one of the reference's two, not for both.",
        ),
        WrongAnswer(
            "each n-gram once",
            _each(_once),
            "you get 0.4, expected 0.3333",
            "The reference has six words, though only five different ones: compare counts, not "
            "sets.",
        ),
        WrongAnswer(
            "what was said counted",
            _each(_repeated),
            "you get 2, expected 0.5",
            "Who says a word four times says it once to a reference that has it once.",
        ),
        WrongAnswer(
            "a share of the words",
            _each(_by_words),
            "It has five pairs",
            "Divide by the number of n-grams, which is n - 1 fewer than the words.",
        ),
        WrongAnswer(
            "only the first reference",
            lambda translation, references, n: _right(translation, references[0], n),
            "Of the second six words of seven are said",
            "The reference that comes off best may be any of them.",
        ),
        WrongAnswer(
            "the mean of the references",
            _each(_right, lambda shares: sum(shares) / len(shares)),
            "Of the second six words of seven are said",
            "A translation need not say what every reference says, only what one does.",
        ),
        WrongAnswer(
            "the worst of the references",
            _each(_right, min),
            "It is the first now",
            "Which of the references is meant is the translation's choice: take the largest.",
        ),
        WrongAnswer(
            "references together",
            _together,
            "Of the second six words of seven are said",
            "Added up, each reference asks for its own words, and nobody can say all of them.",
        ),
        WrongAnswer(
            "words of any reference",
            _any_of_them,
            "Of the second six words of seven are said",
            "What stands in one reference is no part of the other: each has a share of its own.",
        ),
        WrongAnswer(
            "nothing asked, all said",
            _each(
                lambda translation, reference, n: _share(
                    *clipped_matches(reference, [translation], n), without=1.0
                )
            ),
            "The reference has no pair",
            "A reference without n-grams would make everything perfect; it is to give 0.",
        ),
        WrongAnswer(
            "in percent",
            _each(lambda *text: 100 * _right(*text)),
            "you get 33.33, expected 0.3333",
            "A share is a number from 0 to 1.",
        ),
    ),
)


# 17.4 the brevity penalty


def my_brevity_penalty(lengths, reference_lengths):
    """BLEU's brevity penalty of a corpus: e^(1 - r/c) if c < r, else 1.

    lengths holds the number of words of each translation, reference_lengths those of the
    references; c and r are their sums.
    """
    c, r = sum(lengths), sum(reference_lengths)
    return math.exp(min(0, 1 - r / c))


def _mean_of_sentences(lengths, reference_lengths):
    each = [math.exp(min(0, 1 - r / c)) for c, r in zip(lengths, reference_lengths, strict=True)]
    return sum(each) / len(each)


def _penalty(rule):
    return lambda lengths, reference_lengths: rule(sum(lengths), sum(reference_lengths))


BREVITY = Answers(
    reference=my_brevity_penalty,
    equivalent={},
    wrong=(
        WrongAnswer(
            "the mean of the sentences' penalties",
            _mean_of_sentences,
            "16 words for 16",
            "A sentence may be short if another makes up for it: BLEU sums lengths over the "
            "corpus, and divides once.",
        ),
        WrongAnswer(
            "a reward for length",
            _penalty(lambda c, r: math.exp(1 - r / c)),
            "Precision has punished them already",
            "Above c = r the exponent is positive, and the longest translation would win. Cap the "
            "factor at 1.",
        ),
        WrongAnswer(
            "c and r swapped",
            _penalty(lambda c, r: math.exp(min(0, 1 - c / r))),
            "10 words for 16",
            "This punishes words too many and forgives words too few.",
        ),
        WrongAnswer(
            "divided in whole numbers",
            _penalty(lambda c, r: math.exp(1 - r // c) if c < r else 1.0),
            "10 words for 16",
            "`//` rounds the ratio down to 1, and e^0 is no penalty: divide by `/`.",
        ),
        WrongAnswer(
            "the plain ratio",
            _penalty(lambda c, r: min(1, c / r)),
            "10 words for 16",
            "BLEU takes e^(1 - r/c), which falls faster than c / r where c is small.",
        ),
        WrongAnswer(
            "rounded",
            lambda lengths, reference_lengths: round(
                my_brevity_penalty(lengths, reference_lengths), 3
            ),
            "you get 0.549",
            "Scores are rounded where they are printed. BLEU multiplies this factor further.",
        ),
    ),
)


# 17.5 the mask of the newest tokens


def my_newest_mask(ids, new, pad_id=0):
    """What the last `new` of the tokens ids (B, S) may attend to: boolean (B, 1, new, S).

    True where the key is not padding and not later than the query.
    """
    S = ids.size(1)
    causal = torch.ones(S, S, dtype=torch.bool, device=ids.device).tril()
    return causal[S - new :] & (ids != pad_id)[:, None, None, :]


def _corner(ids, new):
    return torch.ones(new, ids.size(1), dtype=torch.bool).tril()


def _last(ids, new, diagonal=0):
    S = ids.size(1)
    return torch.ones(S, S, dtype=torch.bool).tril(diagonal)[S - new :]


def _real(ids, pad_id):
    return (ids != pad_id)[:, None, None, :]


NEWEST = Answers(
    reference=my_newest_mask,
    equivalent={
        "… => ….detach()…": "ids and masks carry no gradient",
        "… => …(ids.float() != pad_id)…": "ids of a vocabulary are the same in float32",
    },
    wrong=(
        WrongAnswer(
            "the triangle starts in the corner",
            lambda ids, new, pad_id=0: _corner(ids, new) & _real(ids, pad_id),
            "new token 0 is token 3, and sees itself",
            "`tril` of a (new, S) table takes the first new token for token 0. It is token "
            "S - new, and everything before it may be seen.",
        ),
        WrongAnswer(
            "everything visible",
            lambda ids, new, pad_id=0: _real(ids, pad_id).expand(-1, -1, new, -1),
            "token 3 may not see token 4",
            "One new token may see everything before it, so no causal mask is needed. Two may not "
            "see each other both ways.",
        ),
        WrongAnswer(
            "diagonal excluded",
            lambda ids, new, pad_id=0: _last(ids, new, -1) & _real(ids, pad_id),
            "and sees itself",
            "The input is already shifted by one: a position may see itself.",
        ),
        WrongAnswer(
            "inverted",
            lambda ids, new, pad_id=0: ~_last(ids, new) & _real(ids, pad_id),
            "token 3 may not see token 4",
            "Here True means “may attend”. This one sees the future only: the mistake of one of "
            "the tutorials.",
        ),
        WrongAnswer(
            "padding forgotten",
            lambda ids, new, pad_id=0: _last(ids, new).expand(ids.size(0), 1, -1, -1),
            "key 0 is padding",
            "Padding in the future is hidden by the causal mask; padding on the left, or in the "
            "middle of what is cached, is not.",
        ),
        WrongAnswer(
            "padded queries see nothing",
            lambda ids, new, pad_id=0: (
                my_newest_mask(ids, new, pad_id) & (ids[:, -new:] != pad_id)[:, None, :, None]
            ),
            "as a query it has the same rule",
            "Rows with nothing allowed are what attention has trouble with; a padded query does no "
            "harm, since its output is read by nobody.",
        ),
        WrongAnswer(
            "a square mask",
            lambda ids, new, pad_id=0: _last(ids, ids.size(1)) & _real(ids, pad_id),
            "the shape is (2, 1, 5, 5), expected (2, 1, 2, 5)",
            "The queries are only the new tokens; the old ones had their turn.",
        ),
        WrongAnswer(
            "the new tokens only",
            lambda ids, new, pad_id=0: (
                _last(ids, new)[:, -new:] & (ids[:, -new:] != pad_id)[:, None, None, :]
            ),
            "the shape is (2, 1, 2, 2), expected (2, 1, 2, 5)",
            "The keys of earlier steps are in the cache and are attended to again.",
        ),
        WrongAnswer(
            "no axis for the heads",
            lambda ids, new, pad_id=0: _last(ids, new) & (ids != pad_id)[:, None, :],
            "the shape is (2, 2, 5), expected (2, 1, 2, 5)",
            "Broadcast against (B, H, new, S), its batch meets the heads.",
        ),
        WrongAnswer(
            "padding id fixed",
            lambda ids, new, pad_id=0: my_newest_mask(ids, new),
            "Here 9 is padding and 0 is a word",
            "Use the argument `pad_id`.",
        ),
    ),
)


ANSWERS = {
    "17.1": CACHE, "17.2": ATTENTION, "17.3": RECALL, "17.4": BREVITY, "17.5": NEWEST,
}  # fmt: skip
