"""Drawings to make, and what must be on each: `case` and `refused` fill CASES and REFUSED.

What a case says of its drawing is named like a probe in test_drawings.py.
"""

CASES, REFUSED = {}, []


def case(name, draw, **expected):
    """Add a drawing, made by calling `draw`, and what is expected of it."""
    if name in CASES:
        raise ValueError(f"there are two cases named {name}")
    CASES[name] = (draw, expected)


def refused(draw, match, error=ValueError):
    """Add a call that must raise an error whose message matches."""
    REFUSED.append((draw, match, error))
