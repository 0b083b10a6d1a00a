"""Figures that take data and return Axes, and two ways to move them.

One house style for the whole course: attention on a fixed 0..1 scale in one colour-blind-safe
ramp, signed quantities on one diverging ramp centred on 0, words on the axes, pinyin where a
machine has no Chinese font.
"""

from .attention import alignment_grid, head_grid, heatmap, layer_head_scores
from .curves import learning_curve
from .explorer import AttentionExplorer, attention_explorer, attention_still
from .positional import (
    position_similarity,
    positional_curves,
    positional_heatmap,
    rotations,
    scheme_curves,
)
from .spoken import alt
from .statistics import activation_statistics, bars, histogram, lines, violins
from .style import ATTENTION, COLOURS, CYCLE, SIGNED, label, labels, use_house_style
from .widgets import explore

__all__ = [
    "ATTENTION",
    "COLOURS",
    "CYCLE",
    "SIGNED",
    "AttentionExplorer",
    "activation_statistics",
    "alignment_grid",
    "alt",
    "attention_explorer",
    "attention_still",
    "bars",
    "explore",
    "head_grid",
    "heatmap",
    "histogram",
    "label",
    "labels",
    "layer_head_scores",
    "learning_curve",
    "lines",
    "position_similarity",
    "positional_curves",
    "positional_heatmap",
    "rotations",
    "scheme_curves",
    "use_house_style",
    "violins",
]
