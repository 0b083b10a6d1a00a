"""Drawings of chapter 16: the loop that writes, a step of a beam, rows that move, a tree."""

import math

import torch

from tinytf.viz.attention import heatmap
from tinytf.viz.style import CYCLE, FAINT, GOLD, INK, PAPER, label, new_axes

from .diagram import SMALL, Diagram

FATES = {"kept": CYCLE[0], "ended": CYCLE[2], "dropped": FAINT}
SIGNS = {"kept": "●", "ended": "■", "dropped": "×"}
ROLES = {"kept": "query", "ended": "value", "dropped": "plain"}


def draw_writing(written=("<bos>", "the", "cat")):
    """Draw the loop around a model that scores words: read, score, choose, append; returns Axes."""
    d = Diagram(
        15.2, 4.4,
        "The source is encoded once, to the memory. The words so far go into decode with it, and "
        "at the last of them the output layer gives a score for every token of the vocabulary. "
        "Something chooses one, it is appended to the words, and the loop begins again, until the "
        "word is <eos>.",
    )  # fmt: skip
    source = d.box(1.2, 3.5, "source", shape="(1, S)", role="input")
    memory = d.box(5.0, 3.5, "memory", shape="(1, S, C)", role="memory")
    words = d.box(1.6, 1.5, " ".join(written), shape="(1, T)", role="input")
    hidden = d.box(5.0, 1.5, "decode", shape="(1, T, C)", role="decoder")
    scores = d.box(9.2, 1.5, "scores at the last position", shape="(1, V)", role="output")
    choice = d.box(13.5, 1.5, "choose", shape="one word", role="loss")
    d.arrow(source, memory, "encode, once")
    d.arrow(memory, hidden)
    d.arrow(words, hidden)
    d.arrow(hidden, scores, "output")
    d.arrow(scores, choice)
    d.arrow(choice.bottom, words.bottom, bend=-0.16, role="loss")
    d.text(7.6, 0.22, "append it, and go around again, until it is <eos>", size=SMALL, backed=True)
    return d.ax


def draw_beam_step(alive, grown, kept, ended):
    """Draw one step of a beam: prefixes, what they grow into, and which go on; returns the Axes.

    All four are {prefix, a tuple of words: its log-probability in nats}. The grown stand best
    first; `ended` are those that were looked at and have ended.
    """
    ranked = sorted(grown, key=grown.get, reverse=True)
    height = max(0.58 * len(ranked) + 1.2, 3)
    d = Diagram(
        13.6, height,
        f"{len(alive)} prefixes grow into {len(ranked)}. Best first: "
        + "; ".join(f"{' '.join(p)}, {_fate(p, kept, ended)}" for p in ranked) + ".",
    )  # fmt: skip
    top = height - 0.95
    for x, text in ((1.9, "alive"), (6.4, "grow: every word after each"), (10.6, "keep")):
        d.text(x, height - 0.3, text)
    gap = (len(ranked) - 1) * 0.58 / max(len(alive) - 1, 1)
    parents = {
        prefix: d.box(1.9, top - i * gap, f"{' '.join(prefix)}  {_probability(alive[prefix])}",
                      role="query", size=(3.2, 0.52))
        for i, prefix in enumerate(alive)
    }  # fmt: skip
    for i, prefix in enumerate(ranked):
        fate = _fate(prefix, kept, ended)
        y, role = top - i * 0.58, ROLES[fate]
        text = f"{' '.join(prefix)}  {_probability(grown[prefix])}"
        place = d.box(7.2, y, text, role=role, size=(4.4, 0.46), faint=fate == "dropped")
        d.arrow(parents[prefix[:-1]].right, place.left, role=role)
        said = {"kept": "lives on", "ended": "ended: goes on the list", "dropped": "dropped"}
        d.text(9.75, y, f"{SIGNS[fate]} {said[fate]}", size=SMALL, align="left")
    return d.ax


def _fate(prefix, kept, ended):
    return "kept" if prefix in kept else "ended" if prefix in ended else "dropped"


def draw_moving_rows(before, rows, words, beam):
    """Draw how the rows of a batch change places in a step of a beam search; returns the Axes.

    before: the prefix in each row; rows: which of them each new row continues, and words: by which
    word. `beam` rows in turn belong to one sentence.
    """
    count = len(before)
    d = Diagram(
        14.2, 0.8 * count + 1.3,
        "Rows of a batch, before and after a step: " + "; ".join(
            f"row {i} continues row {r}, “{before[r]}”, by “{w}”"
            for i, (r, w) in enumerate(zip(rows, words, strict=True))
        ) + ". Each row's keys and values make the same move.",
    )  # fmt: skip
    old, new, top = [], [], 0.8 * count + 0.1
    for i in range(count):
        y = top - 0.8 * i - 0.25 * (i // beam)
        role = ("query", "key", "value", "output")[i // beam % 4]
        d.text(0.75, y, f"row {i}", size=SMALL)
        d.box(2.2, y, before[i], role=role, size=(2.0, 0.56))
        old.append(d.box(4.35, y, "keys, values", role="memory", size=(1.9, 0.56)))
        new.append(d.box(9.2, y, "keys, values", role="memory", size=(1.9, 0.56)))
        text = f"{before[rows[i]]} {words[i]}"
        d.box(11.6, y, text, role=role, size=(2.5, 0.56))
        d.text(13.45, y, f"row {i}", size=SMALL)
    for i, row in enumerate(rows):
        moved = row != i
        d.arrow(old[row].right, new[i].left, role="loss" if moved else None)
    for x, text in ((3.3, "before"), (6.8, "rows"), (10.4, "after")):
        d.text(x, top + 0.75, text)
    return d.ax


def passed_over(chance, taken, words, gloss):
    """Draw what a greedy search took and what it passed over, a row a step; returns the Axes.

    chance: (steps, V), the probability of each word at each step; taken: the ids that it took.
    words: the vocabulary; gloss: {word: what it means}. Shows the nine words that were likeliest
    anywhere, and in a last column the sum of all others.
    """
    chance = torch.as_tensor(chance)
    likely = chance.amax(dim=0).topk(min(9, chance.size(1))).indices.tolist()
    columns = sorted(likely, key=lambda i: taken.index(i) if i in taken else len(taken))
    rest = 1 - chance[:, columns].sum(dim=1, keepdim=True)

    def named(i):
        return label(words[i], gloss.get(words[i]))

    return heatmap(
        torch.cat([chance[:, columns], rest], dim=1),
        [f"{t}: {named(i)}" for t, i in enumerate(taken, start=1)],
        [*map(named, columns), "all others"],
        annotate=True, xlabel="next word", ylabel="step: word taken", colorbar="probability",
    )  # fmt: skip


def told_and_true(told, true):
    """Draw reported log-probabilities against the rescored ones, a dot each; returns the Axes.

    told, true: {search: log-probabilities, one per sentence}; on the line the two are equal.
    """
    ax = new_axes(size=(6.4, 5.2))
    ax.axline((0, 0), slope=1, color=FAINT, linewidth=1.2, zorder=0)
    for (name, x), color, marker in zip(told.items(), CYCLE[1:], "ox^s", strict=False):
        ax.plot(true[name], x, marker, color=color, markersize=6, label=name, alpha=0.8)
    ax.set(xlabel="log-probability, rescored", ylabel="log-probability, reported")
    ax.legend()
    return ax


def search_steps(history):
    """Turn a search by dictionaries into the steps that `beam_tree` draws.

    history: for each step (grown, alive, ended), each {prefix: log-probability}: all candidates,
    those that live on, those that ended. Of the dropped, as many as were looked at are shown.
    """
    steps = []
    for grown, alive, ended in history:
        shown = sorted(grown, key=grown.get, reverse=True)[: max(2 * len(alive), 4)]
        shown += [p for p in (*alive, *ended) if p not in shown]
        steps.append([(p, grown[p], _fate(p, alive, ended)) for p in shown])
    return steps


def beam_tree(steps, ax=None, *, best=None, pinyin=None, title=None):
    """Draw the steps of a beam search from left to right; returns the Axes.

    steps: a list per step of (prefix, log-probability in nats, fate), where a prefix is a tuple of
    words and its fate one of "kept", "ended" and "dropped". A node shows its last word and the
    probability of the whole prefix; likelier ones stand higher. best: the prefix that won, whose
    path is outlined. pinyin: {word: its sound or gloss}, by default the phrasebook's sounds.
    Raises ValueError for no steps, an unknown fate, or a prefix whose parent is not among the step
    before.
    """
    if not steps or not all(steps):
        raise ValueError("beam_tree needs at least one step with at least one prefix")
    tallest = max(map(len, steps))
    wide = 1.75 if pinyin else 1.35  # a gloss makes a node longer
    ax = new_axes(ax, (min(2.2 + wide * len(steps), 14), 0.52 * tallest + 1.1))
    places = {(): (0.0, 0.0)}
    winners = {tuple(best[:n]) for n in range(len(best) + 1)} if best else set()
    ax.plot(0, 0, "o", color=INK, markersize=8)
    for column, nodes in enumerate(steps, start=1):
        ranked = sorted(nodes, key=lambda node: -node[1])
        for rank, (prefix, log_prob, fate) in enumerate(ranked):
            if fate not in FATES:
                raise ValueError(f"fate={fate!r} of {prefix} is not one of {tuple(FATES)}")
            if prefix[:-1] not in places:
                raise ValueError(f"the parent of {prefix} is not in the step before")
            at = column, (len(nodes) - 1) / 2 - rank
            _node(ax, places[prefix[:-1]], at, prefix, log_prob, fate, prefix in winners, pinyin)
            places[prefix] = at
    ax.set(xlim=(-0.3, len(steps) + 0.55), ylim=(-tallest / 2 - 0.25, tallest / 2 + 0.25))
    ax.axis("off")
    seen = {node[2] for step in steps for node in step}
    for fate in (fate for fate in FATES if fate in seen):
        ax.plot([], [], "s", color=FATES[fate], label=fate)
    ax.legend(loc="upper left", ncols=1, fontsize=10)
    if title:
        ax.set_title(title)
    return ax


def _node(ax, start, at, prefix, log_prob, fate, wins, pinyin):
    color = GOLD if wins else FATES[fate]
    width = 2.6 if wins else 0.9 if fate == "dropped" else 1.5
    ax.plot([start[0], at[0]], [start[1], at[1]], color=color, linewidth=width, zorder=1)
    word = label(prefix[-1], (pinyin or {}).get(prefix[-1]))
    text = f"{word}  {_probability(log_prob)}"
    box = {"boxstyle": "round,pad=0.25", "facecolor": PAPER, "edgecolor": color, "linewidth": width}
    dark = FAINT if fate == "dropped" else FATES[fate]
    ax.text(*at, text, ha="center", va="center", fontsize=10, color=dark, bbox=box, zorder=2)


def _probability(log_prob):
    """Two digits that count: 0.60, 0.024, 0.0018; below 0.0001 as a power of ten."""
    p = math.exp(log_prob)
    return f"{p:.2f}" if p >= 0.1 else f"{p:.2g}".replace("e-0", "e-")
