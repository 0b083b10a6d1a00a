"""The HTML of a panel: what stands in a page before any script runs, and on paper."""

import html

from tinytf_course.live.assets import SCRIPTS, STYLE
from tinytf_course.live.still import film_still

KINDS = {  # title, what it is about
    "translator": (
        "Take the translator apart",
        "The course's translator, running in your browser. Type an English sentence, or choose an "
        "experiment: hide or move words, or switch off parts, and see what becomes of the Chinese.",
    ),
    "writer": (
        "Write with the storyteller",
        "The storyteller reads your text and gives each of its 1,024 tokens a probability. Choose "
        "the token that comes next, or let it be drawn.",
    ),
    "film": (
        "Attention in six steps, with real numbers",
        "One head of the translator's encoder, from the words to the mixture of their values. "
        "Point at or tap a number, or go to it with Tab and the arrow keys, to see how it was "
        "computed.",
    ),
}
_WITHOUT_SCRIPTS = "<p>To try it, open this page in a browser with scripts switched on.</p>"


def panel(kind, address="_static/live"):
    """The HTML of one panel; its scripts lie at `address`, where `write_assets` has put them."""
    title, about = KINDS[kind]
    still = film_still() if kind == "film" else ""
    scripts = "".join(f'<script defer src="{address}/{name}"></script>' for name in SCRIPTS[kind])
    return (
        f'<link rel="stylesheet" href="{address}/{STYLE}">'
        f'<section class="tinytf-live" data-kind="{kind}" aria-label="{html.escape(title)}">'
        f'<p class="title">{html.escape(title)}</p>'
        f'<p class="tinytf-lead">{html.escape(about)}</p>'
        f'<div class="still">{still}{_WITHOUT_SCRIPTS}</div>'
        f'<div class="app"></div></section>{scripts}'
    )


def page(kind, address="live"):
    """A page that holds one panel and nothing else."""
    title = html.escape(KINDS[kind][0])
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"></head>'
        f"<body><main><h1>{title}</h1>{panel(kind, address)}</main></body></html>"
    )
