"""Drawings of recurrent reading: unrolled, with gates, two networks in a row, and who waits."""

from itertools import pairwise

from tinytf.viz.style import COLOURS, label

from .diagram import Diagram

__all__ = [
    "draw_gates",
    "draw_gru",
    "draw_two_networks",
    "draw_unrolled",
]

QUIET = "#6b7280"
STEP = 1.65  # units from word to word of two networks


def draw_unrolled(words, vectors, states):
    """Draw an RNN unrolled over `words`: what each step reads, makes, and waits for.

    `vectors` and `states` hold a few numbers for each word. Returns the Diagram.
    """
    step, count = 3.2, len(words)
    d = Diagram(
        2.6 + step * count, 4.6,
        f"An RNN unrolled over {count} words. A row of states goes from left to right, beginning "
        "with zeros. Each state is made of the word under it, through W, and of the state on its "
        "left, through U, so no step can begin before the one on its left has ended.",
    )  # fmt: skip
    before = d.box(1.2, 2.6, "$h_0$", shape=numbers([0.0] * len(states[0])), faint=True)
    for t, (word, vector, state) in enumerate(zip(words, vectors, states, strict=True), start=1):
        x = 1.2 + step * t
        d.text(x, 0.3, word, color=QUIET)
        read = d.box(x, 1.0, f"$x_{t}$", shape=numbers(vector), role="embedding")
        made = d.box(x, 2.6, f"$h_{t}$", shape=numbers(state), role="encoder")
        d.arrow(read, made, "W")
        d.arrow(before, made, "U")
        d.text(x, 3.6, "waits for nothing" if t == 1 else f"waits for $h_{t - 1}$", size=9)
        d.text(x, 4.15, f"step {t}", size=9, color=QUIET)
        before = made
    return d


def draw_gates(gates=3):
    """Draw an LSTM's step: c goes straight through, multiplied once and added to once.

    `gates` is how many are there yet: 1 the forget gate, 2 the input gate too, 3 all.
    """
    d = Diagram(13.6, 5.6, _GATES[gates])
    old = d.box(1.0, 4.6, "$c_{t-1}$", role="memory")
    keep = d.box(4.3, 4.6, "×", size=(0.7, 0.62))
    new = d.box(12.5, 4.6, "$c_t$", role="memory")
    forget = d.box(4.3, 2.7, "σ(f)", shape="0 to 1", role="mask")
    d.arrow(old, keep)
    d.arrow(forget, keep)
    mapped = [forget]
    last = keep
    if gates > 1:
        last = d.box(7.2, 4.6, "+", size=(0.7, 0.62))
        d.arrow(keep, last)
        write = d.box(6.5, 2.7, "σ(i)", shape="0 to 1", role="mask")
        candidate = d.box(8.1, 2.7, "tanh g", shape="−1 to 1")
        mixed = d.box(7.2, 3.65, "×", size=(0.6, 0.42))
        d.arrow(write.top, (7.05, 3.42))
        d.arrow(candidate.top, (7.35, 3.42))
        d.arrow(mixed, last)
        mapped += [write, candidate]
    d.arrow(last, new)
    if gates > 2:
        show = d.box(10.0, 2.7, "σ(o)", shape="0 to 1", role="mask")
        h = d.box(12.5, 2.7, "$h_t$", role="encoder")
        d.arrow(show, h, "×")
        d.arrow(new, h, "tanh")
        mapped += [show]
    maps = ("one linear layer", "three linear layers", "four linear layers")[gates - 1]
    both = d.box(6.9, 0.9, f"{maps} of $x_t$ and $h_{{t-1}}$", role="encoder", size=(6.6, 0.7))
    for gate in mapped:
        d.arrow((gate.x, both.top[1]), gate.bottom)
    word = d.box(1.0, 0.45, "$x_t$", role="embedding")
    past = d.box(1.0, 1.4, "$h_{t-1}$", role="encoder")
    d.arrow(word.right, (3.55, 0.75))
    d.arrow(past.right, (3.55, 1.05))
    return d


_GATES = {
    1: "One step of an LSTM, first part. The state c goes from left to right along the top and is "
    "multiplied once on its way, by the forget gate, which is made of the word and of h.",
    2: "One step of an LSTM, second part. As before, c is multiplied by the forget gate; then i "
    "times the candidate g is added to it. All three of f, i and g are made of the word and of h.",
    3: "One step of an LSTM. The state c goes from left to right along the top: it is multiplied "
    "by the forget gate, then i times the candidate g is added. All four of f, i, g and o are "
    "made of the word and of h. The new h is o times tanh of the new c.",
}


def draw_gru():
    """Draw a GRU's step: h goes straight through, and what is kept makes room for the rest."""
    d = Diagram(
        13.6, 5.6,
        "One step of a GRU. The state h goes from left to right along the top: it is multiplied by "
        "the update gate z, then 1 minus z times the candidate n is added. The candidate is made "
        "of the word and of the old state, and the reset gate r multiplies the state's part of it.",
    )  # fmt: skip
    old = d.box(1.0, 4.6, "$h_{t-1}$", role="encoder")
    keep = d.box(4.3, 4.6, "×", size=(0.7, 0.62))
    add = d.box(8.9, 4.6, "+", size=(0.7, 0.62))
    new = d.box(12.5, 4.6, "$h_t$", role="encoder")
    for a, b in pairwise((old, keep, add, new)):
        d.arrow(a, b)
    update = d.box(4.3, 2.9, "σ(z)", shape="0 to 1", role="mask")
    room = d.box(6.4, 2.9, "1 − σ(z)", role="mask")
    d.arrow(update, keep)
    d.arrow(update, room)
    mixed = d.box(8.9, 3.8, "×", size=(0.6, 0.42))
    d.arrow(room.top, mixed.left)
    d.arrow(mixed, add)
    candidate = d.box(8.9, 2.9, "$n$", shape="−1 to 1", size=(1.9, 0.9))
    d.arrow(candidate, mixed)
    both = d.box(
        7.9, 0.6, "three linear layers of $x_t$ and $h_{t-1}$", role="encoder", size=(8.6, 0.7)
    )
    heard = d.box(9.5, 1.75, "×", size=(0.6, 0.42))
    reset = d.box(11.4, 1.75, "σ(r)", shape="0 to 1", role="mask")
    d.arrow((update.x, both.top[1]), update.bottom)
    d.arrow((8.3, both.top[1]), (8.3, candidate.bottom[1]))
    d.text(7.75, 1.75, "$W_n x_t$", size=10)
    d.arrow((heard.x, both.top[1]), heard.bottom)
    d.text(10.3, 1.2, "$U_n h_{t-1}$", size=10)
    d.arrow(heard.top, (heard.x, candidate.bottom[1]))
    d.arrow((reset.x, both.top[1]), reset.bottom)
    d.arrow(reset, heard)
    word = d.box(1.0, 0.35, "$x_t$", role="embedding")
    past = d.box(1.0, 1.4, "$h_{t-1}$", role="encoder")
    d.arrow(word.right, (3.55, 0.5))
    d.arrow(past.right, (3.55, 0.8))
    return d


def draw_two_networks(source, target, weights=None, step=2):
    """Draw an encoder and a decoder: one vector between them, or a look at every state.

    `source` and `target` are words; with `weights` (one for each source word) the decoder's step
    number `step` (from 1) looks at all states, the more the thicker the line. Returns the Diagram.
    """
    left = 0.9
    first = left + STEP * len(source) + 1.2
    d = Diagram(
        first + STEP * len(target) - 0.7, 5.4 if weights else 4.4,
        f"An encoder reads {' '.join(source)}, a decoder writes {len(target)} Chinese words: "
        + _between(source, weights, step),
    )  # fmt: skip
    encoder = _row(d, left, source, source, "h", "encoder")
    read = ["<bos>", *map(label, target[:-1])]
    decoder = _row(d, first, read, target, "s", "decoder")
    for state, word in zip(decoder, target, strict=True):
        x = state.x if weights else state.x + 0.15
        d.arrow((x, state.top[1]), (x, 2.95 if weights else 3.75))
        d.text(x, 3.2 if weights else 4.0, label(word), size=10)
    if weights:
        _look(d, encoder, decoder[step - 1], weights)
    else:
        _feed(d, encoder[-1], decoder)
    return d


def _between(source, weights, step):
    if not weights:
        return "the encoder's last state becomes one vector, which feeds every decoder step."
    most = source[max(range(len(source)), key=weights.__getitem__)]
    return (
        f"its step {step} has a line to every encoder state, the thicker the larger its weight, "
        f"and the thickest goes to {most}; their weighted sum is the step's context."
    )


def _row(d, left, read, made, name, role):
    """A row of states, each made of the word under it and of the state before."""
    states = []
    for t, word in enumerate(read[: len(made)], start=1):
        x = left + STEP * (t - 1)
        state = d.box(x, 1.95, f"${name}_{t}$", role=role)
        d.text(x, 0.85, word, size=10)
        d.arrow((x, 1.05), state.bottom)
        if states:
            d.arrow(states[-1], state)
        states.append(state)
    d.text((states[0].x + states[-1].x) / 2, 0.25, role, color=QUIET)
    return states


def _feed(d, last, decoder):
    """One vector between the two, and a rail from it to every step."""
    vector = d.box((last.x + decoder[0].x) / 2, 3.0, "one vector", role="memory")
    d.arrow(last.top, (vector.x - 0.3, vector.bottom[1]))
    end = decoder[-1].x - 0.15
    d.ax.plot([vector.right[0], end], [3.0, 3.0], color=COLOURS["memory"], linewidth=1.8)
    for state in decoder:
        d.arrow((state.x - 0.15, 3.0), (state.x - 0.15, state.top[1]), role="memory")


def _look(d, encoder, state, weights):
    """The decoder step's context above it, with a line from every encoder state."""
    context = d.box((encoder[-1].x + state.x) / 2, 4.65, "context", shape="Σ α h", role="attention")
    for place, weight in zip(encoder, weights, strict=True):
        d.ax.annotate(
            "", context.left, place.top, zorder=1.4,
            arrowprops={
                "arrowstyle": "-|>", "color": COLOURS["attention"], "linewidth": 0.5 + 5 * weight,
                "alpha": 0.35 + 0.65 * weight, "shrinkA": 1, "shrinkB": 1,
            },
        )  # fmt: skip
        d.text(place.x - 0.38, 2.5, f"{weight:.2f}", size=9)
    d.arrow(context.right, (state.x - 0.2, state.top[1]), bend=-0.15, role="attention")


def numbers(vector):
    text = ", ".join(f"{float(value):.2g}" for value in vector)
    return f"[{text}]".replace("-", "−")
