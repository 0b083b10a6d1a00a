"""What moved out of `tinytf` when the course got its own folder, and code brought up to date.

Copies of chapters that were made before have imports by the old names; `start --update` rewrites
them in cells that the reader wrote in.
"""

import re

__all__ = ["MOVED", "rewritten"]

MOVED = {  # module or package as it was: as it is
    "tinytf.course": "tinytf_course",
    "tinytf.data.batches": "tinytf_course.phrasebook.batches",
    "tinytf.data.digits": "tinytf_course.lessons.digits",
    "tinytf.data.phrasebook": "tinytf_course.phrasebook",
    "tinytf.data.understanding": "tinytf_course.lessons.understanding",
    "tinytf.decoding.exact": "tinytf_course.lessons.exact",
    "tinytf.interpret.ablation": "tinytf_course.lessons.ablation",
    "tinytf.interpret.coreference": "tinytf_course.lessons.coreference",
    "tinytf.metrics.compression": "tinytf_course.lessons.compression",
    "tinytf.metrics.ngrams": "tinytf_course.lessons.ngrams",
    "tinytf.metrics.scaling": "tinytf_course.lessons.scaling",
    "tinytf.metrics.storage": "tinytf_course.lessons.storage",
    "tinytf.studies": "tinytf_course.studies",
    "tinytf.support.processes": "tinytf_course.lessons.processes",
    "tinytf.viz.bert": "tinytf_course.drawings.bert",
    "tinytf.viz.bleu": "tinytf_course.drawings.bleu",
    "tinytf.viz.cache": "tinytf_course.drawings.cache",
    "tinytf.viz.checks": "tinytf_course.drawings.checks",
    "tinytf.viz.clinic": "tinytf_course.drawings.clinic",
    "tinytf.viz.clock": "tinytf_course.drawings.clock",
    "tinytf.viz.cost": "tinytf_course.drawings.cost",
    "tinytf.viz.counting": "tinytf_course.drawings.counting",
    "tinytf.viz.coursemap": "tinytf_course.drawings.coursemap",
    "tinytf.viz.decoder": "tinytf_course.drawings.decoder",
    "tinytf.viz.decoder_only": "tinytf_course.drawings.decoder_only",
    "tinytf.viz.decoding": "tinytf_course.drawings.decoding",
    "tinytf.viz.diagram": "tinytf_course.drawings.diagram",
    "tinytf.viz.embedding": "tinytf_course.drawings.embedding",
    "tinytf.viz.encoder": "tinytf_course.drawings.encoder",
    "tinytf.viz.families": "tinytf_course.drawings.families",
    "tinytf.viz.feedforward": "tinytf_course.drawings.feedforward",
    "tinytf.viz.following": "tinytf_course.drawings.following",
    "tinytf.viz.gpt": "tinytf_course.drawings.gpt",
    "tinytf.viz.heads": "tinytf_course.drawings.heads",
    "tinytf.viz.images": "tinytf_course.drawings.images",
    "tinytf.viz.inside": "tinytf_course.drawings.inside",
    "tinytf.viz.llama": "tinytf_course.drawings.llama",
    "tinytf.viz.lookup": "tinytf_course.drawings.lookup",
    "tinytf.viz.marian": "tinytf_course.drawings.marian",
    "tinytf.viz.multihead": "tinytf_course.drawings.multihead",
    "tinytf.viz.norms": "tinytf_course.drawings.norms",
    "tinytf.viz.patch_explorer": "tinytf_course.drawings.patch_explorer",
    "tinytf.viz.pretraining": "tinytf_course.drawings.pretraining",
    "tinytf.viz.reach": "tinytf_course.drawings.reach",
    "tinytf.viz.recurrent": "tinytf_course.drawings.recurrent",
    "tinytf.viz.residual": "tinytf_course.drawings.residual",
    "tinytf.viz.sampling": "tinytf_course.drawings.sampling",
    "tinytf.viz.saving": "tinytf_course.drawings.saving",
    "tinytf.viz.stacked": "tinytf_course.drawings.stacked",
    "tinytf.viz.tokens": "tinytf_course.drawings.tokens",
    "tinytf.viz.transformer": "tinytf_course.drawings.transformer",
    "tinytf.viz.words": "tinytf_course.drawings.words",
}
# What `from tinytf.viz import …` gave and `tinytf_course.drawings` gives now.
DRAWN = frozenset(
    [
        "Box",
        "Diagram",
        "beam_tree",
        "bert",
        "bleu",
        "byte_bars",
        "cache",
        "checks",
        "clinic",
        "clock",
        "cost",
        "cost_dots",
        "counting",
        "course_map",
        "coursemap",
        "decoder",
        "decoder_only",
        "decoding",
        "diagram",
        "digit_attention",
        "dot_histogram",
        "draw_averaged",
        "draw_decoder_layer",
        "draw_layer_cache",
        "draw_leak_test",
        "draw_newest_column",
        "draw_norm_places",
        "draw_shortcut",
        "embedding",
        "encoder",
        "families",
        "feedforward",
        "following",
        "gpt",
        "group_dots",
        "head_groups",
        "head_table",
        "heads",
        "images",
        "input_card",
        "inside",
        "llama",
        "lookup",
        "marian",
        "multihead",
        "norm_groups",
        "norms",
        "patch_explorer",
        "patch_row",
        "plane",
        "pretraining",
        "ranking",
        "reach",
        "recurrent",
        "residual",
        "roofline",
        "rung_table",
        "sampling",
        "saving",
        "seed_dots",
        "settings_plane",
        "similarity_grid",
        "spoiled_rows",
        "stacked",
        "stacked_bars",
        "tag_bars",
        "text_bits",
        "text_strips",
        "token_bars",
        "token_rows",
        "tokens",
        "transformer",
        "unit_card",
        "verdicts",
        "word_map",
        "word_odds",
        "word_paths",
        "words",
    ]
)
_NAMES = "|".join(map(re.escape, sorted(MOVED, key=len, reverse=True)))  # the longer one first
_OLD = re.compile(rf"\b({_NAMES})\b(?!-)")
_FROM = re.compile(
    r"^([ \t]*)from (tinytf(?:\.\w+)*) import (\([^)]*\)|[^\n(;#]+?)([ \t]*(?:[;#][^\n]*)?)$", re.M
)
_VIZ = "drawings as viz"


def rewritten(code, dotted=True):
    """Python source with each import of what moved by its new name.

    With `dotted`, every other mention of a moved module by its full name is changed as well, as in
    `graduate(name, "tinytf.module")`.
    """
    code = _FROM.sub(_split, code)
    return _OLD.sub(lambda found: MOVED[found[1]], code) if dotted else code


def _split(found):
    """One `from … import …` as one for each place that its names are in now."""
    indent, module, names, rest = found.groups()
    bare = re.sub(r"#[^\n]*", "", names).strip("() \n\t")
    places = {}
    for name in filter(None, (part.strip() for part in bare.split(","))):
        places.setdefault(_place(module, name.split()[0]), []).append(name)
    if set(places) <= {module}:
        return found[0]
    lines = []
    for place, taken in places.items():
        if (module, taken) == ("tinytf", ["course"]):
            lines.append(f"{indent}import tinytf_course as course")
        else:
            shown = ", ".join(
                _VIZ if (module, name) == ("tinytf", "viz") else name for name in taken
            )
            lines.append(f"{indent}from {place} import {shown}")
    return "\n".join(lines) + rest


def _place(module, name):
    """The module that offers a name now."""
    if (module, name) in (("tinytf", "viz"), ("tinytf", "course")):
        return "tinytf_course"
    new = MOVED.get(f"{module}.{name}")
    if new:
        return new.rpartition(".")[0] or new
    return "tinytf_course.drawings" if module == "tinytf.viz" and name in DRAWN else module
