"""One house style for every figure: palettes, sizes that project well, and labels that never box.

matplotlib's own font has no Chinese glyph and draws a boxed character that looks like a real label.
`use_house_style` therefore puts the package's own Chinese behind it (`font`), and `label` gives a
word with its pinyin, so a figure is the same on every machine. For a character that is not there
`label` falls back to pinyin, or names the code point; to draw more, append the name of a font that
you have to `plt.rcParams["font.family"]`.
"""

import unicodedata
from functools import cache, lru_cache

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import font_manager
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

from tinytf.support.handed_in import handed_in
from tinytf.viz import font

INK = "#1d2733"  # text and axes
FAINT = "#606a75"  # what stands back
PAPER = "#ffffff"
MASKED = "#e4e6ea"  # cells that may not be attended
GOLD = "#d9730d"  # gold alignment links: orange stays apart from blue for every kind of eye

# Single-hue ramps with evenly falling lightness keep their order in grey print as well.
RAMP = ("#f5f9fd", "#d3e5f2", "#9fcae3", "#5ba3cf", "#2676b1", "#0d4f8b", "#08264d")
ATTENTION = LinearSegmentedColormap.from_list("tinytf.attention", RAMP)
SIGNED = LinearSegmentedColormap.from_list(
    "tinytf.signed",
    ("#08264d", "#2676b1", "#9fcae3", "#fafafa", "#f3b98a", "#d9730d", "#6b2c05"),
)
CYCLE = ("#0d6cb0", "#de8f05", "#0a8f6a", "#c2410c", "#9c5fb5", "#4fb3e8", "#8a6d4f", "#6b7280")
# One colour for one thing in the whole course.
COLOURS = {
    "plain": "#6b7280",
    "input": "#6b7280",
    "query": "#0d6cb0",
    "key": "#de8f05",
    "value": "#0a8f6a",
    "weights": "#0d4f8b",
    "output": "#9c5fb5",
    "mask": "#c2410c",
    "encoder": "#4fb3e8",
    "decoder": "#9c5fb5",
    "memory": "#4fb3e8",
    "residual": "#1d2733",
    "norm": "#8a6d4f",
    "feedforward": "#0a8f6a",
    "attention": "#0d6cb0",
    "embedding": "#de8f05",
    "position": "#c2410c",
    "loss": "#c2410c",
    "Pre-LN": "#0d6cb0",
    "Post-LN": "#de8f05",
    "no norm": "#6b7280",
    "LayerNorm": "#0a8f6a",
    "RMSNorm": "#9c5fb5",
    "BatchNorm": "#8a6d4f",
}
# Pairs of these that some colour-blind eye takes for one (ΔE2000 below 15): told apart by dashes.
ALIKE = frozenset(map(frozenset, (
    ("#0d6cb0", "#0a8f6a"),
    ("#0d6cb0", "#9c5fb5"),
    ("#0d6cb0", "#6b7280"),
    ("#0d6cb0", "#0d4f8b"),
    ("#de8f05", "#d9730d"),
    ("#0a8f6a", "#8a6d4f"),
    ("#c2410c", "#8a6d4f"),
    ("#c2410c", "#d9730d"),
    ("#9c5fb5", "#4fb3e8"),
    ("#9c5fb5", "#8a6d4f"),
    ("#9c5fb5", "#6b7280"),
    ("#9c5fb5", "#0d4f8b"),
)))  # fmt: skip
DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))

PAGE = 900  # pixels of a page that a figure may be wide: a wider one is shown smaller
LEAST = 9  # points, the smallest type on a page; a pixel of a page is 3/4 of a point

BASE_FONT = "DejaVu Sans"
_VISIBLE = {"\n": "↵", "\t": "⇥", "\r": "␍"}

# seaborn's "ticks" at 1.1 times its "notebook" sizes, in our colours: without seaborn itself, whose
# import would keep every chapter waiting for a second.
_THEME = {
    "figure.figsize": (7.5, 4.2),
    "figure.dpi": 110,
    "figure.constrained_layout.use": True,
    "figure.facecolor": PAPER,  # dark notebook themes would swallow dark text otherwise
    "savefig.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "axes.edgecolor": "#8a94a0",
    "axes.linewidth": 1.25,
    "axes.labelcolor": INK,
    "axes.labelsize": 13.2,
    "axes.titlecolor": INK,
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "axes.titlepad": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": "#e6e9ed",
    "grid.linewidth": 1.0,
    "font.size": 13.2,
    "text.color": INK,
    "axes.prop_cycle": plt.cycler(color=CYCLE),
    "lines.linewidth": 2.4,
    "lines.markersize": 7,
    "lines.solid_capstyle": "round",
    "patch.edgecolor": "white",
    "patch.force_edgecolor": True,
    "hatch.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 12.1,
    "legend.title_fontsize": 13.2,
}
_TICKS = {
    "color": INK,
    "labelsize": 12.1,
    "major.size": 6.0,
    "major.width": 1.25,
    "minor.size": 4.0,
    "minor.width": 1.0,
}


def use_house_style():
    """Apply the course's look to every figure drawn from now on."""
    plt.rcParams.update(_THEME)
    plt.rc(("xtick", "ytick"), **_TICKS)
    plt.rcParams["font.family"] = [BASE_FONT, font.register()]  # falls back glyph by glyph


@cache
def _charmap(path):
    try:
        return frozenset(FT2Font(path).get_charmap())
    except (OSError, RuntimeError):  # a bitmap or damaged font is simply not a candidate
        return frozenset()


@lru_cache(maxsize=16)
def _covered(families):
    """The code points that the fonts named in `families` can draw between them."""
    paths = []
    for name in families:
        try:
            regular = font_manager.FontProperties(family=name, weight="normal")
            paths.append(font_manager.findfont(regular, fallback_to_default=False))
        except ValueError:  # not installed
            continue
    paths = paths or [font_manager.findfont(BASE_FONT)]  # which matplotlib falls back to
    return frozenset().union(*map(_charmap, paths))


def can_draw(text):
    """True if the fonts in use have a glyph for every character of `text`."""
    return all(ord(char) in _covered(tuple(plt.rcParams["font.family"])) for char in text)


def label(token, pinyin=None):
    """Text for one token on an axis: `猫 māo`; `māo` alone where no font in use has the character.

    With no `pinyin` given, the phrasebook's is used for a word it knows. White space is made
    visible, and `$` is kept from opening a formula.
    """
    token = str(token)
    shown = "".join(_VISIBLE.get(char, char) for char in token)
    shown = "␣" * len(shown) if shown.isspace() else shown
    if not any(font.is_chinese(char) for char in token):
        shown = shown if can_draw(shown) else _spell(shown)
    else:
        pinyin = pinyin or phrasebook_pinyin(token)
        both = f"{token} {pinyin}" if pinyin and pinyin != token else token
        shown = both if can_draw(token) else pinyin or _spell(token)
    return shown.replace("$", r"\$")


def labels(tokens, pinyin=None):
    """`label` for each token; `pinyin`, where given, has one entry per token."""
    tokens = list(tokens)
    if pinyin is None:
        return [label(token) for token in tokens]
    pinyin = list(pinyin)
    if len(pinyin) != len(tokens):
        raise ValueError(
            f"{len(pinyin)} pinyin entries for {len(tokens)} tokens: {pinyin} for {tokens}"
        )
    return [label(token, sound) for token, sound in zip(tokens, pinyin, strict=True)]


def phrasebook_pinyin(token):
    """The pinyin of a word the phrasebook knows, else None; None too without the course."""
    book = handed_in("phrasebook")
    try:
        return book and book.pinyin(token)
    except KeyError:
        return None


def _spell(token):
    """Last resort for a token no font can draw: its compatible form, else its code points."""
    plain = unicodedata.normalize("NFKC", token)
    return "".join(char if can_draw(char) else f"U+{ord(char):04X}" for char in plain)


def as_array(values, name="values", ndim=None):
    """A float64 numpy copy of a tensor (any device or dtype), an array or a nested list."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = (values if values.dtype.is_complex else values.double()).numpy()
    elif isinstance(values, list | tuple) and any(hasattr(value, "detach") for value in values):
        values = [as_array(value, name) for value in values]
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not a rectangular block of numbers: {error}") from None
    if ndim is not None and array.ndim != ndim:
        hint = "; choose one, e.g. x[0]" if array.ndim > ndim else ""
        raise ValueError(f"{name} needs {ndim} dimensions, got shape {array.shape}{hint}")
    return array


def cell_text(value, decimals=2):
    """What a cell of a heat map says of its number: nothing, where that rounds to 0."""
    text = f"{value:.{decimals}f}"
    return text if float(text) else ""


def readable_on(ground, ink=INK):
    """A colour for text on `ground`: `ink`, white or black, the first with a contrast of 4.5."""

    def luminance(color):
        parts = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color))
        return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), parts))

    def contrast(color):
        low, high = sorted((luminance(color) + 0.05, luminance(ground) + 0.05))
        return high / low

    inks = (ink, PAPER, "#000000")
    return next((color for color in inks if contrast(color) >= 4.5), max(inks, key=contrast))


def least_type(figure):
    """The size, in the figure's own points, of type that is LEAST points high on the page."""
    margin = 2 * plt.rcParams["savefig.pad_inches"]
    wide = (figure.get_figwidth() + margin) * figure.dpi
    return LEAST / 0.75 * max(1, wide / PAGE) * 72 / figure.dpi


def legible(figure):
    """Enlarge all type on `figure` that would be too small on the page (`least_type`); return it.

    A constrained layout then makes room for it.
    """
    figure.draw_without_rendering()  # which makes the numbers on the axes
    least = least_type(figure)
    for text in figure.findobj(Text):
        text.set_size(max(text.get_size(), least))
    return figure


def dash_beside(color, dash, drawn):
    """`dash`, or another where a line of the same look is among `drawn`: (colour, dash) of each."""
    taken = [d for c, d in drawn if c == color or frozenset((c, color)) in ALIKE]
    others = [one for one in DASHES if one not in taken]
    return dash if dash not in taken or not others else others[0]


def new_axes(ax=None, size=None):
    """`ax` itself, or fresh axes of `size` inches."""
    return ax if ax is not None else plt.subplots(figsize=size, layout="constrained")[1]
