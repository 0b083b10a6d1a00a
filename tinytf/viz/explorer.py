"""The attention explorer: a self-contained page element to see where a translation looks.

Inline HTML, CSS and JavaScript with no address in it: it works in a live notebook, in a static
export and on an aeroplane. Where scripts do not run, the opening view stays as a plain table.

Hooks for browser tests, stable:
  root        `.tinytf-explorer` with `data-ready="1"` once scripts run, and the state in
              `data-sentence`, `data-kind`, `data-layer`, `data-head` (or "mean"), `data-query`
  controls    `.sentence-select`, `.kind-button[data-kind]`, `.layer-button[data-layer]`,
              `.head-button[data-head]`, `.thumb[data-layer][data-head]`
  words       `.query-token[data-query]` (focusable), `.key-token[data-key][data-weight]`
  pictures    `.ribbons path`, `.cell[data-query][data-key][data-weight]`, `.reading` (in words)
  static      `.still`, hidden once scripts run
Layers, heads and words are counted from 0, as in the code they show.
"""

import html
import json
from collections.abc import Mapping
from functools import cache
from hashlib import blake2s
from importlib.resources import files
from itertools import count

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_hex

from .attention import alignment_grid, heatmap, sounded
from .example import KINDS, NAMES, causal, checked, choose, sounds
from .style import ATTENTION, INK, cell_text, readable_on

LEVELS = 20  # steps of the colour ramp
MOST_TOKENS = 128  # a side; a page of 500 x 500 takes 31 MB, and no cell of it can be read
MOST_WEIGHTS = 1 << 22  # of all maps together, two letters each
_DARK_INK = "#10202e"  # of numbers on the light steps of a ramp
_DARK = LinearSegmentedColormap.from_list(
    "tinytf.attention.dark", ("#1c242e", "#1d3d57", "#1f6391", "#3d93c9", "#8ccbee", "#eaf7ff")
)
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_serial = count()


class AttentionExplorer:
    """What `attention_explorer` returns: a notebook shows it, `save` writes it as a page."""

    def __init__(self, payload, still, title):
        self.payload = payload
        text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
        digest = blake2s(text.encode(), digest_size=4).hexdigest()
        self.uid = f"tinytf-{digest}-{next(_serial)}"
        state = payload["start"]
        self.html = _asset("explorer.html").format(
            uid=self.uid,
            state=" ".join(f'data-{name}="{value}"' for name, value in state.items()),
            title=html.escape(title, quote=True),
            css=_css(),
            still=still,
            data=text.replace("<", "\\u003c")
            .replace("\u2028", "\\u2028")
            .replace("\u2029", "\\u2029"),
            js=_asset("explorer.js"),
        )

    def __repr__(self):
        return f"<attention explorer: {len(self.payload['examples'])} sentences>"

    def _repr_html_(self):
        return self.html

    def save(self, path):
        """Write the explorer as a page of its own, to open in any browser."""
        page = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><body>{self.html}</body></html>'
        )
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)


def attention_explorer(examples, title=None, *, kind=None, layer=None, head=None, query=0):
    """Build the explorer for a list of examples; display the object it returns.

    An example is a dict: `source` and `target` tokens, `attention` {"cross": (L, H, T, S),
    "encoder": (L, H, S, S), "decoder": (L, H, T, T)} (any of the three), and optionally `pinyin`
    of the target, `gold` links (source index, target index), and `read`, the tokens the decoder
    was fed (by default <bos> and all of the target but its last: row t is what was seen in
    writing target[t]). `attention` by layer name, as `tinytf.inspect.record` has it, will do, and
    so will the object that `Translator.explain` returns.

    kind, layer, head (an index or "mean") and query choose the opening view; by default
    cross-attention in the head that lies nearest the gold links. Raises ValueError where shapes
    and tokens disagree, for more than 128 tokens a side or 4,194,304 weights in all, and for text
    that no page can hold (a lone surrogate).
    """
    if isinstance(examples, Mapping) or hasattr(examples, "attention"):
        examples = [examples]
    examples = [checked(example, index) for index, example in enumerate(examples)]
    if not examples:
        raise ValueError("attention_explorer needs at least one example, got none")
    shared = [name for name in KINDS if all(name in example["attention"] for example in examples)]
    if not shared:
        kinds = [sorted(example["attention"]) for example in examples]
        raise ValueError(f"no kind of attention is common to all examples: {kinds}")
    title = title or "Where does the model look?"
    _check_pages(examples, shared, title)
    start = _opening(examples, shared, kind, layer, head, query)
    payload = {
        "kinds": shared,
        "start": start,
        "examples": [_packed(example, shared) for example in examples],
    }
    return AttentionExplorer(payload, _still_html(examples[0], start, title), title)


def attention_still(example, layer=0, head="mean", ax=None, *, kind="cross", title=None):
    """Draw one map of the explorer with matplotlib; returns the Axes.

    head: an index, or "mean" for the mean over the heads of `layer`.
    """
    example = checked(example, 0)
    weights = choose(example, kind, layer, head)
    name = "mean of heads" if head == "mean" else f"head {head}"
    title = title or f"{NAMES[kind]}, layer {layer}, {name}"
    if kind == "cross":
        gold, pinyin = example["gold"], example["pinyin"]
        source, target = example["source"], example["target"]
        return alignment_grid(weights, gold, source, target, ax, pinyin=pinyin, title=title)
    looking, looked_at = KINDS[kind]
    return heatmap(
        weights,
        sounded(example[looking], sounds(example, looking)),
        sounded(example[looked_at], sounds(example, looked_at)),
        ax,
        title=title,
        mask=np.tri(*weights.shape) if causal(weights, kind) else None,
    )


def _check_pages(examples, kinds, title):
    """Refuse what is too large for a page to show, or no text."""
    texts, weights = [("title", [title])], 0
    for index, example in enumerate(examples):
        for side in ("source", "target"):
            if len(example[side]) > MOST_TOKENS:
                raise ValueError(
                    f"example {index} has {len(example[side])} {side} tokens, an explorer shows up "
                    f"to {MOST_TOKENS}: cut the text, or draw one head with attention_still"
                )
        names = ("source", "target", "read", "pinyin", "read_pinyin")
        texts += [(f"example {index}: {name}", example[name]) for name in names]
        weights += sum(example["attention"][kind].size for kind in kinds)
    if weights > MOST_WEIGHTS:
        raise ValueError(
            f"the maps have {weights} weights, an explorer holds up to {MOST_WEIGHTS}: give it "
            "fewer examples, layers or heads, or shorter texts"
        )
    for where, tokens in texts:
        for token in tokens:
            if any("\ud800" <= character <= "\udfff" for character in token):
                raise ValueError(f"{where} has a lone surrogate in {token!r}: it is no character")


def _opening(examples, kinds, kind, layer, head, query):
    kind = kind or kinds[0]
    if kind not in kinds:
        raise ValueError(f"kind={kind!r} is none of {kinds}")
    if layer is None and head is None:
        layer, head = _best_head(examples[0], kind)
    layer, head = layer or 0, "mean" if head is None else head
    rows = len(choose(examples[0], kind, layer, head))
    if not 0 <= query < rows:
        raise ValueError(f"query={query} is outside the {rows} words 0..{rows - 1}")
    return {"sentence": 0, "kind": kind, "layer": layer, "head": head, "query": query}


def _best_head(example, kind):
    """The (layer, head) with most weight on the gold links; without links, the sharpest one."""
    weights = example["attention"][kind]
    score = weights.max(-1).mean(-1)
    if kind == "cross" and example["gold"]:
        score = sum(weights[:, :, t, s] for s, t in example["gold"])
    layer, head = np.unravel_index(score.argmax(), score.shape)
    return int(layer), int(head)


def _packed(example, kinds):
    """The example as JSON; a weight is two letters, its thousandths in base 64."""
    maps = {}
    for kind in kinds:
        weights = example["attention"][kind]
        thousandths = np.rint(weights * 1000).astype(int).ravel()
        letters = "".join(_ALPHABET[n >> 6] + _ALPHABET[n & 63] for n in thousandths)
        masked = all(causal(head, kind) for layer in weights for head in layer)
        maps[kind] = {"shape": weights.shape, "weights": letters, "causal": masked}
    names = ("source", "target", "read", "pinyin", "read_pinyin", "gold")
    return {name: example[name] for name in names} | {"maps": maps}


def _still_html(example, start, title):
    """The opening view as a plain table, for places that strip scripts and style sheets."""
    kind, layer, head = start["kind"], start["layer"], start["head"]
    weights = choose(example, kind, layer, head)
    looking, looked_at = KINDS[kind]
    gold = {(t, s) for s, t in example["gold"]} if kind == "cross" else set()
    rows, columns = _named(example, looking), _named(example, looked_at)
    quiet = f"padding:4px 8px;color:{INK};background:#ffffff;font-weight:600;text-align:"
    header = "".join(f'<th scope="col" style="{quiet}center">{name}</th>' for name in columns)
    body = ""
    for t, name in enumerate(rows):
        body += f'<tr><th scope="row" style="{quiet}right;white-space:nowrap">{name}</th>'
        for s, weight in enumerate(weights[t]):
            color = ATTENTION(round(weight * LEVELS) / LEVELS)
            style = f"background-color:{to_hex(color)};color:{readable_on(color, _DARK_INK)};"
            style += "padding:4px 8px;text-align:center;border:1px solid #ffffff;"
            style += "outline:2px solid #d9730d;outline-offset:-2px;" if (t, s) in gold else ""
            number = f"<b>{cell_text(weight)}</b>" if weight >= 0.5 else cell_text(weight)
            body += f'<td style="{style}">{number}</td>'
        body += "</tr>"
    which = "mean of heads" if head == "mean" else f"head {head}"
    sentence = " ".join(map(html.escape, example["source"]))
    written = " ".join(_named(example, "target"))
    note = " Orange outlines are the gold links." if gold else ""
    return (
        f'<p style="color:{INK};margin:0 0 6px"><strong>{html.escape(title)}</strong><br>'
        f"{sentence} → {written}</p>"
        f'<table style="border-collapse:collapse;margin:0;background:#ffffff"><thead><tr>'
        f'<td style="background:#ffffff"></td>{header}</tr></thead><tbody>{body}</tbody></table>'
        f'<p style="color:{INK};margin:6px 0 0">{NAMES[kind]}, layer {layer}, '
        f"{which}: the weights of each row sum to 1.{note} "
        "Trust or re-run this notebook to explore the other heads.</p>"
    )


def _named(example, side):
    tokens = example[side]
    pairs = zip(tokens, sounds(example, side) or tokens, strict=True)
    return [html.escape(t if t == sound else f"{t} {sound}") for t, sound in pairs]


@cache
def _asset(name):
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def _css():
    return with_ramp(_asset("explorer.css"), ".tinytf-explorer")


def with_ramp(sheet, root):
    """A style sheet with the ramp of attention weights: /*light*/ and /*dark*/ become its colours.

    Inside of the selector `root`, class c0 is the colour of the weight 0 and c20 that of 1.
    """
    sheet = sheet.replace("/*light*/", _variables(ATTENTION)).replace("/*dark*/", _variables(_DARK))
    steps = "\n".join(
        f"{root} .c{i}{{background:var(--c{i});color:var(--t{i});fill:var(--c{i})}}"
        for i in range(LEVELS + 1)
    )
    return sheet + steps


def _variables(ramp):
    """The ramp as CSS variables, and beside each step the ink that reads best on it."""
    colors = [ramp(i / LEVELS) for i in range(LEVELS + 1)]
    return "".join(
        f"--c{i}:{to_hex(c)};--t{i}:{readable_on(c, _DARK_INK)};" for i, c in enumerate(colors)
    )
