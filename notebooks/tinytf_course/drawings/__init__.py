"""Drawings of the chapters, and beside them the package's figures: one name offers both."""

from tinytf.viz import *  # noqa: F403
from tinytf.viz import __all__ as _general
from tinytf.viz import (  # noqa: F401
    attention,
    axes,
    curves,
    example,
    explorer,
    font,
    positional,
    spoken,
    statistics,
    style,
    widgets,
)

from .bert import group_dots, input_card, tag_bars
from .cost import byte_bars, roofline, rung_table
from .coursemap import course_map
from .decoder import (
    cost_dots,
    draw_decoder_layer,
    draw_layer_cache,
    draw_leak_test,
    draw_let_through,
    draw_newest_column,
    verdicts,
)
from .decoding import beam_tree
from .diagram import Box, Diagram
from .embedding import nearest_words, plane, token_rows, word_map
from .families import spoiled_rows
from .feedforward import unit_card
from .gpt import next_tokens, ranking, text_bits
from .heads import head_table
from .images import digit_attention, patch_row, similarity_grid
from .llama import head_groups, seed_dots
from .norms import norm_groups
from .residual import draw_averaged, draw_norm_places, draw_shortcut
from .sampling import settings_plane, text_strips, token_bars
from .stacked import dot_histogram, stacked_bars
from .words import word_odds, word_paths

__all__ = [
    *_general,
    "Box",
    "Diagram",
    "beam_tree",
    "byte_bars",
    "cost_dots",
    "course_map",
    "digit_attention",
    "dot_histogram",
    "draw_averaged",
    "draw_decoder_layer",
    "draw_layer_cache",
    "draw_leak_test",
    "draw_let_through",
    "draw_newest_column",
    "draw_norm_places",
    "draw_shortcut",
    "group_dots",
    "head_groups",
    "head_table",
    "input_card",
    "nearest_words",
    "next_tokens",
    "norm_groups",
    "patch_row",
    "plane",
    "ranking",
    "roofline",
    "rung_table",
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
    "verdicts",
    "word_map",
    "word_odds",
    "word_paths",
]
