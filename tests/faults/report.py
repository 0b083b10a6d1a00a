"""What became of each fault, counted by kind."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

OUTCOMES = ("clear error", "unharmed", "accepted", "raw error", "crash", "lost")
BAD = OUTCOMES[3:]


class Case(NamedTuple):
    """One fault: its kind, what it was done to, what came of it, and what was said."""

    kind: str
    what: str
    outcome: str
    words: str = ""


def table(cases: Iterable[Case]) -> str:
    """Say how many of each kind were tried, and what became of them."""
    counts: dict[str, Counter[str]] = {}
    for case in cases:
        counts.setdefault(case.kind, Counter())[case.outcome] += 1
    total = sum(counts.values(), Counter())
    rows = [("kind", "tried", *OUTCOMES)]
    for kind, count in [*counts.items(), ("in all", total)]:
        rows.append((kind, str(count.total()), *(str(count[o]) for o in OUTCOMES)))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        numbers = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([row[0].ljust(widths[0]), *numbers]))
    return "\n".join(lines)
