"""Whether a run showed the same as the one before: the same in substance, if not to the bit.

Two texts are the same if they are equal once names drawn at random (addresses in memory, ids of
widgets and explorers) and durations (a number before ns, µs, ms, s, seconds, minutes) are masked,
and their numbers agree. Whole numbers agree if they are equal. Two numbers with a decimal point or
an exponent agree if they differ by at most RELATIVE of the larger, or by one in their last printed
digit and at most LAST_DIGIT of the larger, or if both are below NOTHING: gaps of rounding.

Two pictures are the same if they have one size and no pixel differs by more than SHADE of 255 in
any channel: what antialiasing does to a line that moved by rounding, and less than any digit does.

What is measured in seconds differs from run to run. A cell that shows it has the tag `varies`: it
is the same while its source is, and while it shows the same kinds of things and the same claims.
"""

import base64
import io
import re

RELATIVE, LAST_DIGIT, NOTHING = 1e-4, 0.01, 1e-5
SHADE = 16
VARIES = "varies"

_RANDOM = re.compile(
    r"\b0x[0-9a-f]{6,16}\b|\btinytf-[0-9a-f]{8}-\d+\b|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
)
_DIGITS = r"(?<![\w.])[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?"
_NUMBER = re.compile(_DIGITS + r"(?!\w)")
_DURATION = re.compile(_DIGITS + r"\s?(?:ns|µs|us|ms|s|seconds?|minutes?)\b(?!/)")


def same_cell(new, old):
    """Whether two runs of a code cell showed the same, in substance."""
    if VARIES in new["metadata"].get("tags", []):
        return new["source"] == old["source"] and _kinds(new) == _kinds(old)
    outputs = new["outputs"], old["outputs"]
    return len(outputs[0]) == len(outputs[1]) and all(map(same_output, *outputs))


def same_output(new, old):
    """Whether two outputs show the same, in substance."""
    if _kind(new) != _kind(old):
        return False
    if not same_value(new.get("metadata", {}), old.get("metadata", {})):
        return False
    if new["output_type"] == "stream":
        return same_text(new["text"], old["text"])
    if new["output_type"] == "error":
        return same_text(new["evalue"], old["evalue"])
    pairs = [(kind, value, old["data"][kind]) for kind, value in new["data"].items()]
    return all(
        same_picture(a, b) if kind == "image/png" else same_value(a, b) for kind, a, b in pairs
    )


def same_value(new, old):
    """Whether two values of JSON are the same, their texts and numbers in substance."""
    if isinstance(new, str) and isinstance(old, str):
        return same_text(new, old)
    if isinstance(new, dict) and isinstance(old, dict):
        return new.keys() == old.keys() and all(same_value(new[k], old[k]) for k in new)
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(map(same_value, new, old))
    if isinstance(new, float) and isinstance(old, float):
        return agree(repr(new), repr(old))
    return type(new) is type(old) and new == old


def same_text(new, old):
    """Whether two texts say the same: equal but for random names, durations, last digits."""
    if new == old:
        return True
    new, old = (_DURATION.sub("<duration>", _RANDOM.sub("<name>", text)) for text in (new, old))
    if _NUMBER.sub("#", new) != _NUMBER.sub("#", old):
        return False
    return all(map(agree, _NUMBER.findall(new), _NUMBER.findall(old)))


def agree(new, old):
    """Whether two printed numbers agree; see the top of this file."""
    if new == old:
        return True
    a, b = (float(text.replace(",", "").replace("−", "-")) for text in (new, old))
    if not any(mark in new + old for mark in (".", "e")):
        return a == b
    gap, size = abs(a - b), max(abs(a), abs(b))
    if size < NOTHING or gap <= RELATIVE * size:
        return True
    last = max(_last_digit(new), _last_digit(old))
    return gap <= 1.001 * last and gap <= LAST_DIGIT * size  # 1.001: 0.3 - 0.2 is not quite 0.1


def same_picture(new, old):
    """Whether two PNG pictures, in base64, look the same."""
    if new == old:
        return True
    import numpy
    from PIL import Image

    new, old = (
        numpy.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGBA"), dtype=int)
        for data in (new, old)
    )
    return new.shape == old.shape and abs(new - old).max() <= SHADE


def claim_of(output):
    """The claim that an output records, or None."""
    return output.get("metadata", {}).get("claim")


def _kinds(cell):
    return [_kind(output) for output in cell["outputs"]]


def _kind(output):
    """What an output is, whatever it says: its type, its forms, its claim."""
    claim = claim_of(output) or {}
    forms = sorted(output.get("data", {}))
    return output["output_type"], output.get("name"), forms, claim.get("id")


def _last_digit(text):
    """What one more in the last printed digit adds: 0.01 for 3.14, 1e-9 for 2.1e-08."""
    mantissa, _, exponent = text.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - decimals)
