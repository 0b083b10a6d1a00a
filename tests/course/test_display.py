"""What the course shows is escaped and readable on light and dark."""

import pytest

from tinytf_course import display as course_display


def test_markup_is_escaped():
    assert course_display.inline("a < b & `c<d>`") == "a &lt; b &amp; <code>c&lt;d&gt;</code>"


@pytest.mark.parametrize("background", [(255, 255, 255), (17, 17, 17)])
@pytest.mark.parametrize("colour", ["GOOD", "BAD", "QUIET"])
def test_colours_read_on_light_and_dark(colour, background):
    colour = getattr(course_display, colour)
    one, other = luminance([int(colour[i : i + 2], 16) for i in (1, 3, 5)]), luminance(background)
    assert (max(one, other) + 0.05) / (min(one, other) + 0.05) > 3.9


def luminance(rgb):
    parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))
