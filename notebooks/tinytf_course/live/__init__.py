"""Models that run in the reader's browser: a translator, a writer, and a film of attention.

`assets` writes what the panels load, `panels` the HTML that a page holds, and `places` says where
in the site they stand. The rest is JavaScript without dependencies: `model.js` is the forward pass,
`text.js` the tokenizers, `apps.js` the two apps, `parts.js` what the panels share.
"""

from tinytf_course.live.assets import write_assets
from tinytf_course.live.panels import KINDS, page, panel
from tinytf_course.live.places import add

__all__ = ["KINDS", "add", "page", "panel", "write_assets"]
