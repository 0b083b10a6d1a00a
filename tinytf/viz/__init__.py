"""Figures that take data and return Axes, and two ways to move them.

One house style for the whole course: attention on a fixed 0..1 scale in one colour-blind-safe
ramp, signed quantities on one diverging ramp centred on 0, words on the axes, pinyin where a
machine has no Chinese font.
"""

from .attention import alignment_grid, head_grid, heatmap, layer_head_scores
from .bert import group_dots, input_card, tag_bars
from .cost import byte_bars, roofline, rung_table
from .coursemap import course_map
from .curves import learning_curve
from .decoder import (
    cost_dots,
    draw_decoder_layer,
    draw_layer_cache,
    draw_leak_test,
    draw_newest_column,
    verdicts,
)  # fmt: skip
from .decoding import beam_tree
from .diagram import Box, Diagram
from .embedding import plane, token_rows, word_map
from .explorer import AttentionExplorer, attention_explorer, attention_still
from .families import spoiled_rows
from .feedforward import unit_card
from .gpt import block_table, ranking, text_bits
from .heads import head_table
from .images import digit_attention, patch_row, similarity_grid
from .llama import head_groups, seed_dots
from .norms import norm_groups
from .positional import (
    position_similarity,
    positional_curves,
    positional_heatmap,
    rotations,
    scheme_curves,
)
from .residual import draw_averaged, draw_norm_places, draw_shortcut
from .sampling import settings_plane, text_strips, token_bars
from .spoken import alt
from .stacked import dot_histogram, stacked_bars
from .statistics import activation_statistics, bars, histogram, lines, violins
from .style import ATTENTION, COLOURS, CYCLE, SIGNED, label, labels, use_house_style
from .widgets import explore
from .words import word_odds, word_paths

__all__ = [
    "ATTENTION",
    "COLOURS",
    "CYCLE",
    "SIGNED",
    "AttentionExplorer",
    "Box",
    "Diagram",
    "activation_statistics",
    "alignment_grid",
    "alt",
    "attention_explorer",
    "attention_still",
    "bars",
    "beam_tree",
    "block_table",
    "byte_bars",
    "cost_dots",
    "course_map",
    "digit_attention",
    "dot_histogram",
    "draw_averaged",
    "draw_decoder_layer",
    "draw_layer_cache",
    "draw_leak_test",
    "draw_newest_column",
    "draw_norm_places",
    "draw_shortcut",
    "explore",
    "group_dots",
    "head_grid",
    "head_groups",
    "head_table",
    "heatmap",
    "histogram",
    "input_card",
    "label",
    "labels",
    "layer_head_scores",
    "learning_curve",
    "lines",
    "norm_groups",
    "patch_row",
    "plane",
    "position_similarity",
    "positional_curves",
    "positional_heatmap",
    "ranking",
    "roofline",
    "rotations",
    "rung_table",
    "scheme_curves",
    "seed_dots",
    "settings_plane",
    "similarity_grid",
    "spoiled_rows",
    "stacked_bars",
    "tag_bars",
    "text_bits",
    "text_strips",
    "token_bars",
    "token_rows",
    "unit_card",
    "use_house_style",
    "verdicts",
    "violins",
    "word_map",
    "word_odds",
    "word_paths",
]
