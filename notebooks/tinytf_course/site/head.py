"""What a page says of itself to search engines and to sites that link to it."""

import json

from tinytf_course import online

# 1200 x 630 pixels, as such sites show it. Its weights are the translator's own, the mean of the
# four heads of cross-attention in layer 0 for "the cat sat on the mat".
PREVIEW = "_static/preview.png"


def front_matter(title, description, **options):
    """The front matter of a page: its description, its preview, and Sphinx's `options`.

    A picture needs a full address, which follows from the repository: GitHub's pages of it.
    """
    owner, _, name = (online.REPOSITORY or "").partition("/")
    picture = f"https://{owner}.github.io/{name}/{PREVIEW}" if name else PREVIEW
    meta = {
        "description": description,
        "property=og:title": title,
        "property=og:description": description,
        "property=og:type": "website",
        "property=og:image": picture,
        "name=twitter:card": "summary_large_image",
    }
    matter = {**options, "myst": {"html_meta": meta}}
    return f"---\n{json.dumps(matter, ensure_ascii=False)}\n---"
