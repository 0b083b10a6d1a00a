"""Slides from the chapters: one idea each, nothing larger than 1280 × 720, no network.

`prose` shortens text by rule, `code` splits cells, `deck` makes a chapter's slides, `fitting`
says how much fits on one, and `build` writes the files.
"""

from tinytf_course.slides.build import build_slides

__all__ = ["build_slides"]
