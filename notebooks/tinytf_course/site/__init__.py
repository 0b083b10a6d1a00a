"""The course as pages for a browser: chapters, claims, glossary and an index, without a network.

`outputs` turns what a cell showed into HTML, `chapter` a notebook into Markdown for Sphinx, `folds`
hides what would answer a prediction, `terms` links words to the glossary, `pages` writes index,
claims and glossary, `api` the pages of the package, `head` what a page says of itself. `panels`
draws the states of figures that move, which `states` chooses. `assets` finds the local MathJax,
`build` puts it together, and `slim` takes out what the theme brings and no page needs.
"""

from tinytf_course.site.assets import MissingPackage
from tinytf_course.site.build import build_site

__all__ = ["MissingPackage", "build_site"]
