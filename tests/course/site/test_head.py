"""What pages say of themselves."""

import json

from tinytf_course import online
from tinytf_course.site.head import front_matter


def meta(text):
    """The facts of a front matter."""
    begin, matter, end = text.split("\n")
    assert begin == end == "---"
    return json.loads(matter)


def test_description_and_preview(monkeypatch):
    found = meta(front_matter("05 Attention", 'How does "it" find a word?', orphan=True))
    facts = found["myst"]["html_meta"]
    assert facts["description"] == facts["property=og:description"] == 'How does "it" find a word?'
    assert facts["property=og:title"] == "05 Attention"
    assert facts["property=og:image"] == "_static/preview.png"
    assert found["orphan"] is True
    monkeypatch.setattr(online, "REPOSITORY", "someone/course")
    facts = meta(front_matter("a", "b"))["myst"]["html_meta"]
    assert facts["property=og:image"] == "https://someone.github.io/course/_static/preview.png"
