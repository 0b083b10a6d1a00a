"""Looking inside a model: hooks, scores of heads, ablations, and the two heads of induction."""

import numpy as np

from tinytf.viz.attention import heatmap
from tinytf.viz.style import COLOURS, CYCLE, new_axes

from .diagram import SMALL, Diagram

__all__ = [
    "draw_ablations", "draw_hook", "draw_induction", "draw_probe", "noun_bars", "phase_change",
    "role_map",
]  # fmt: skip


def draw_hook():
    """Draw a module, its output, and the hook between it and the next module; returns the Axes."""
    d = Diagram(
        14.5, 4.2,
        "A module computes an output for the next module. A hook between the two is called with "
        "this output; it may put a copy into a record, and may return something else instead.",
    )  # fmt: skip
    x = d.box(1.2, 2.9, "input", shape="(B, T, C)", role="input")
    module = d.box(4.0, 2.9, "a module", shape="forward", role="feedforward")
    hook = d.box(7.6, 2.9, "hook(module, inputs, out)", shape="called each time", role="mask")
    after = d.box(12.0, 2.9, "the next module", role="decoder")
    record = d.box(7.6, 0.7, "record[name]", shape="read", role="output")
    d.arrow(x, module)
    d.arrow(module, hook, "out")
    d.arrow(hook, after, "goes on")
    d.arrow(hook, record, "detached")
    return d.ax


def draw_probe():
    """Draw an attention layer whose function is swapped for one that keeps its weights."""
    d = Diagram(
        15.5, 5.0,
        "An attention layer computes q, k and v, calls the function in layer.attention, and "
        "projects the result by W_O. The fused kernel never stores the weights, so no module has "
        "them as its output. We put our own function in its place, which computes the weights, "
        "passes them through change, and multiplies them by the values.",
    )  # fmt: skip
    x = d.box(1.0, 2.5, "x", shape="(B, T, C)", role="input")
    qkv = d.box(3.7, 2.5, "q, k, v", shape="(B, H, T, D)", role="query")
    fused = d.box(8.0, 4.1, "fused kernel", shape="weights never stored", role="plain", faint=True)
    w = d.box(6.9, 1.2, "weights", shape="(B, H, T, S)", role="weights")
    mix = d.box(10.2, 1.2, "weights @ v", shape="(B, H, T, D)", role="value")
    out = d.box(13.6, 2.5, "W_O", shape="(B, T, C)", role="output")
    frame = d.frame([w, mix], "layer.attention = ours", role="mask")
    d.arrow(x, qkv)
    d.arrow(qkv, fused, dashed=True)
    d.arrow(fused, out, dashed=True)
    d.arrow(qkv, (frame.left[0], 1.2))
    d.arrow(w, mix, "change")
    d.arrow((frame.right[0], 1.2), out)
    return d.ax


def draw_ablations():
    """Draw one head's weights, and what three ablations put in their place; returns the Axes."""
    d = Diagram(
        15.6, 4.6,
        "A head's weights for one query: 0.1 on garden, 0.8 on cat. By zero all weights are 0 and "
        "nothing arrives. By the mean, what arrives is the same for every sentence. By "
        "another sentence's pattern the weights are 0.8 on garden and 0.1 on cat: something "
        "definite and wrong.",
    )  # fmt: skip
    words = ["cat", "garden", "it"]
    shown = {
        "as it is": ([0.8, 0.1, 0.1], "the cat's value", "value"),
        "by zero": ([0, 0, 0], "nothing", "mask"),
        "by the mean": (None, "the same everywhere", "mask"),
        "by another's pattern": ([0.1, 0.8, 0.1], "the garden's value", "mask"),
    }
    for i, (name, (row, arrives, role)) in enumerate(shown.items()):
        x = 2.0 + 3.9 * i
        d.text(x, 4.2, name)
        if row is None:
            top = d.box(x, 2.9, "not used", shape="weights", role="plain", faint=True)
        else:
            top = d.matrix(x, 2.9, [row], columns=words, digits=1, cell=0.85)
        low = d.box(x, 0.8, arrives, shape="what the head passes on", role=role)
        d.arrow((x, top.bottom[1] - 0.05), low)
    return d.ax


def draw_induction():
    """Draw how two heads repeat what followed: B A … B → A; returns the Axes."""
    d = Diagram(
        15.6, 7.4,
        "The tokens R, B, A, K and later B again. In layer 0 a head at A attends to B and writes "
        "into A's vector that B came before it. In layer 1 the query of the second B looks "
        "for a token that came after B; A's key matches, its value is copied, and the model "
        "predicts A.",
    )  # fmt: skip
    tokens, xs = ["R", "B", "A", "K", "…", "B"], [1.2, 3.6, 6.0, 8.4, 10.6, 12.8]
    low = [d.box(x, 0.8, t, role="input", size=(0.9, None)) for x, t in zip(xs, tokens)]
    notes = ["", "after R", "after B", "after A", "", ""]
    mid = []
    for x, token, note in zip(xs, tokens, notes, strict=True):
        role = "key" if note == "after B" else "plain"
        text = f"{token}, {note}" if note else token
        mid.append(d.box(x, 3.4, text, role=role, faint=not note))
    for i in range(1, 4):
        d.arrow(low[i - 1], mid[i], role="attention")
        d.arrow(low[i], mid[i], dashed=True)
    d.arrow(low[5], mid[5], dashed=True)
    answer = d.box(12.8, 6.3, "A", shape="comes next", role="output")
    asks = d.box(9.4, 5.2, "what came after B?", shape="query of layer 1", role="query")
    d.arrow(mid[5], asks, role="query")
    d.arrow(asks, mid[2], "matches", role="key")
    d.arrow(mid[2].top, answer, "A is copied", bend=-0.35, role="value")
    d.text(0.1, 2.1, "layer 0: previous", size=SMALL, align="left")
    d.text(0.1, 5.2, "layer 1: the match", size=SMALL, align="left")
    return d.ax


def phase_change(rows, ax=None):
    """Draw a training run: its loss, and the best head's score in each of two layers, by step.

    rows: what `tinytf_course.studies.induction.grow` returns, of two layers. Returns the two
    Axes: the losses', and the scores' on its right.
    """
    ax = new_axes(ax, (8.5, 4.4))
    steps = [row["step"] for row in rows]
    (loss,) = ax.plot(steps, [row["loss"] for row in rows], color=COLOURS["loss"], linewidth=2.5)
    ax.set(xlabel="step", ylabel="loss on the repeat, nats", ylim=(0, None))
    right = ax.twinx()
    right.set(ylim=(0, 1), ylabel="best head's score")
    right.grid(False)
    drawn = [loss]
    for role, layer, color, dash in (
        ("previous", 0, CYCLE[0], "--"), ("induction", 1, CYCLE[2], ":"),
    ):  # fmt: skip
        best = [max(row[role][layer]) for row in rows]
        drawn += right.plot(steps, best, dash, color=color, linewidth=2.5)
    names = ["loss", "layer 0: previous position", "layer 1: induction score"]
    ax.legend(drawn, names, loc="center left")
    return ax, right


def role_map(scores, roles, heads):
    """Draw heads' scores (heads, roles) between -1 and 1, a column a head; returns the Axes.

    NaN, which is hatched, stands for a role that a head can't have.
    """
    known = ~scores.isnan().T
    return heatmap(
        scores.nan_to_num(0).T, roles, heads, new_axes(None, (13, 3.6)), mask=known,
        scale=(-1, 1), xlabel="", ylabel="", colorbar="score",
    )  # fmt: skip


def noun_bars(shares):
    """Draw how often the right noun and the other one are predicted; returns the Axes.

    shares: {row: (share of the right noun, share of the other)}; the rest is some other token.
    """
    ax = new_axes(None, (10, 3.8))
    right, other = np.array(list(shares.values())).T
    ax.barh(list(shares), right, color=COLOURS["value"], label="the right noun")
    ax.barh(list(shares), other, left=right, color=COLOURS["loss"], hatch="//", label="the other")
    rest = 1 - right - other
    ax.barh(list(shares), rest, left=right + other, color="0.85", label="another token")
    ax.invert_yaxis()
    ax.set(xlabel="share of the twins' sentences", ylabel="", xlim=(0, 1))
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.17), ncols=3)
    return ax
