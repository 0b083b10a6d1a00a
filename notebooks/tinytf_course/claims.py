"""A claim is a measurement: a sentence with its number in it, and the bound it has to keep."""

import html
import math
import operator

from tinytf_course.display import BAD, GOOD, block, inline, show, sign, tag
from tinytf_course.graduate import readers_parts

_HOLDS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}
_SYMBOL = {"<=": "≤", ">=": "≥", "==": "=", "~=": "≈", "in": "in"}


class ClaimError(AssertionError):
    """A measured claim does not hold."""

    def _render_traceback_(self):
        """All that a notebook shows of it: the claim, not the frames that compared."""
        return [f"ClaimError: {self}"]


def claim(id, sentence, measured, relation, bound, *, tolerance=1e-6):
    """Show `sentence` with its measured number in it; raise ClaimError if it does not hold.

    `{}` in the sentence becomes the number, rounded for reading. `{:.2f}` and the other formats of
    Python round as they say, `{:.0%}` writes 89 %, and `{:.0pp}` the 89 of 89 percentage points.
    `relation` is one of < <= > >= == ~= in. With ~= the two differ by at most `tolerance`;
    with `in`, `bound` is (low, high), ends included. `measured` is a number, a bool, a string or
    a tensor of one element. NaN never holds. A notebook shows the bound where the mouse rests.

    Where the notebook runs on parts that its reader wrote, a claim that does not hold is shown and
    not raised: rounding or the order of random numbers may differ and be right.
    """
    measured, bound = scalar(measured), _bound(relation, bound)
    comparison = relation_text(measured, relation, bound, tolerance)
    sentence = filled(sentence, measured)
    if not holds(measured, relation, bound, tolerance):
        said = f"✗ {id}  {sentence}\n  does not hold: measured {comparison} is false"
        if not (mine := readers_parts()):
            raise ClaimError(said)
        _show_with_readers_parts(id, sentence, comparison, said, mine)
        return
    markup = (
        f'<span title="measured: {html.escape(comparison)}">{sign(GOOD, "✓")} {tag(id)} '
        f"{inline(sentence)}</span>"
    )
    record = {"id": id, "sentence": sentence, "measured": comparison}
    show(f"✓ {id}  {sentence}", block(GOOD, markup), {"claim": record})


class _ForReading:
    """A measured number in a sentence, see `claim`."""

    def __init__(self, value):
        self.value = value

    def __format__(self, form):
        if form.endswith("pp"):
            return f"{100 * self.value:{form[:-2]}f}"
        return f"{self.value:{form}}".replace("%", "\u00a0%") if form else number(self.value)


def filled(sentence, measured):
    """The sentence with the number in it."""
    return sentence.format(_ForReading(measured))


def _show_with_readers_parts(id, sentence, comparison, said, mine):
    names = ", ".join(f"`{name}`" for name in mine)
    why = (
        f"It holds with the package's parts. Here run yours: {names}. A right version that rounds, "
        "or draws its random numbers, in another way can miss a bound by a little; by much, it has "
        "a mistake that its tests don't see."
    )
    markup = (
        f"{sign(BAD, '✗')} {tag(id)} {inline(sentence)} · does not hold here: measured "
        f'{inline(comparison)}<div style="padding-left: 1.4em">{inline(why)}</div>'
    )
    show(f"{said}\n  {why}", block(BAD, markup), {"claim": {"id": id, "sentence": sentence}})


def holds(measured, relation, bound, tolerance=1e-6):
    """Whether the relation is true. Comparisons with NaN are false."""
    if relation == "in":
        return bool(bound[0] <= measured <= bound[1])
    if relation == "~=":
        return bool(measured == bound or abs(measured - bound) <= tolerance)
    return bool(_HOLDS[relation](measured, bound))


def relation_text(measured, relation, bound, tolerance=1e-6):
    """`0.31 < 0.5`, with as many digits as it takes to see the difference."""
    symbol = _SYMBOL.get(relation, relation)
    if isinstance(measured, bool | str) and relation == "==" and measured == bound:
        return str(measured)
    if relation == "in":
        return f"{_apart(measured, bound)} {symbol} [{number(bound[0])}, {number(bound[1])}]"
    if relation == "~=":
        return f"{number(measured)} {symbol} {number(bound)} (±{number(tolerance)})"
    return f"{_apart(measured, [bound])} {symbol} {number(bound, 6)}"


def number(value, digits=3):
    """A number for reading: 0.0312, 1.41, 12.5, 124,439,808, 3.1e-07."""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    size = math.floor(math.log10(abs(value)))
    if size < -3 or size > 8:
        return f"{value:.{digits}g}"
    text = f"{value:,.{max(0, digits - 1 - size)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def scalar(value):
    """A Python number from a number, a bool, or an array or tensor of one element."""
    shape = getattr(value, "shape", None)
    if shape is not None and math.prod(shape) != 1:
        raise TypeError(
            f"measured has shape {tuple(shape)}; a claim is about one number: "
            "reduce it first, with .max(), .sum() or .all()"
        )
    value = value.item() if hasattr(value, "item") else value
    if not isinstance(value, bool | int | float | str):
        raise TypeError(f"measured is a {type(value).__name__}; a claim needs a number")
    return value


def _bound(relation, bound):
    if relation == "in":
        low, high = bound
        return scalar(low), scalar(high)
    if relation != "~=" and relation not in _HOLDS:
        raise ValueError(f"relation {relation!r} is not one of {', '.join([*_HOLDS, '~=', 'in'])}")
    return scalar(bound)


def _apart(measured, bounds):
    digits = 3
    while digits < 12 and any(
        measured != bound and number(measured, digits) == number(bound, digits) for bound in bounds
    ):
        digits += 1
    return number(measured, digits)
