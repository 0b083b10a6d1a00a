"""26.3 a roofline from a stopwatch (★★☆, 10 minutes)

You can't open this machine, only time it: `seconds(weights, texts)` is how long it takes for a
decode step of a model with so many weights, for so many texts at once. Choose what to time, and
write `my_machine(seconds)`, which returns the machine's rate, in operations per second, and its
bandwidth, in bytes per second.

<details><summary>What is known of the machine</summary>

The weights have two bytes each. There is no KV cache, so nothing but weights is multiplied and
fetched. The machine multiplies and fetches at the same time: a step takes as long as the slower of
the two, and in addition a fixed time for its calls, which you don't know and which can be longer
than all the rest. Rate and bandwidth break even somewhere between 1.5 and 20,000 operations per
byte. You may time any model, up to 10¹² weights, and any number of texts, up to 10⁶.

</details>

Hint: Which step surely waits for memory, and which for arithmetic? How many bytes does the one
fetch, and how many operations does the other one make?

Hint: The calls take the same time in every step. What do two steps differ in, of which one has
twice as many weights?
"""

import math

from tinytf_course.expect import expect, number
from tinytf_course.words import described


def my_machine(seconds):
    """Return (rate, bandwidth): operations and bytes per second, from timings alone.

    seconds(weights, texts) is how long a decode step takes: a fixed time for the calls, and then
    the longer of multiplying and fetching. A weight has two bytes.
    """
    weights, many = 10**11, 10**6
    fetching = seconds(2 * weights, 1) - seconds(weights, 1)  # one text waits for memory
    multiplying = seconds(2 * weights, many) - seconds(weights, many)
    return 2 * weights * many / multiplying, 2 * weights / fetching


def _stopwatch(rate, bandwidth, calls):
    def seconds(weights, texts):
        inside = 0 <= weights <= 10**12 and 1 <= texts <= 10**6
        expect(inside, f"you time {weights:,} weights and {texts:,} texts, which is not possible")
        return calls + max(2 * weights * texts / rate, 2 * weights / bandwidth)

    return seconds


def _measured(answer, rate, bandwidth, calls, which=(0, 1), note=""):
    """Expect the rate, the bandwidth or both of a machine to be found."""
    where = f"for a machine of rate {rate:g}, bandwidth {bandwidth:g} and {calls:g} s for calls"
    got = answer(_stopwatch(rate, bandwidth, calls))
    pair = isinstance(got, list | tuple) and len(got) == 2
    expect(pair, f"{where}, you return {described(got)}, expected (rate, bandwidth)")
    for i in which:
        name, expected = (("rate", rate), ("bandwidth", bandwidth))[i]
        found = number(got[i], f"{where}, for the {name}")
        close = math.isclose(found, expected, rel_tol=1e-5)
        words = f"{where}, your {name} is {found:g}, expected {expected:g}. {note}"
        expect(close, words.strip())


def test_bandwidth(answer):
    """without calls, the bandwidth is found"""
    _measured(answer, 1e13, 1e11, 0.0, [1], "How many bytes does one text fetch?")


def test_rate(answer):
    """without calls, the rate is found"""
    _measured(answer, 1e13, 1e11, 0.0, [0], "How many operations do many texts make?")


def test_calls(answer):
    """the time that calls take is not counted"""
    note = "The calls take as long in a small step as in a large one."
    _measured(answer, 1e13, 1e11, 100.0, note=note)
    _measured(answer, 1e13, 1e11, 0.01, note=note)


def test_early(answer):
    """a machine that breaks even at 1.5 operations per byte is measured"""
    note = "It breaks even at 1.5 operations per byte, and two texts make 2."
    _measured(answer, 1.5e11, 1e11, 1e-3, note=note)


def test_late(answer):
    """a machine that breaks even at 20,000 operations per byte is measured"""
    _measured(answer, 2e15, 1e11, 1e-3, note="It breaks even at 20,000 operations per byte.")


def test_real(answer):
    """an H100 is measured"""
    _measured(answer, 989e12, 3.35e12, 1e-4, note="It breaks even at 295 operations per byte.")


MISTAKES = r"""
the calls counted
    seconds(2 * weights, 1) - seconds(weights, 1) => seconds(weights, 1)
    seconds(2 * weights, many) - seconds(weights, many) => seconds(weights, many)
    says: The calls take as long
    One timing includes the calls. In the difference of two timings, they cancel.
the calls counted for one text
    seconds(2 * weights, 1) - seconds(weights, 1) => seconds(weights, 1)
    says: s for calls, your bandwidth is
    The calls take their time in the step for one text, too.
the calls counted for many texts
    seconds(2 * weights, many) - seconds(weights, many) => seconds(weights, many)
    says: s for calls, your rate is
    The calls take their time in the step for many texts, too.
everything from one text
    10**6 => 1
    says: How many operations do many texts make
    A step for one text waits for memory, so it tells nothing of the arithmetic.
everything from many texts
    seconds(2 * weights, 1) - seconds(weights, 1) =>
        seconds(2 * weights, many) - seconds(weights, many)
    says: How many bytes does one text fetch
    A step for many texts waits for arithmetic, so it tells nothing of the memory.
not enough texts
    10**6 => 1000
    says: It breaks even at 20,000 operations per byte
    A thousand texts make a thousand operations for each byte. A machine that breaks even later
    still waits for memory.
a few texts for one
    seconds(2 * weights, 1) - seconds(weights, 1) => seconds(2 * weights, 8) - seconds(weights, 8)
    says: and two texts make 2
    Some machines already wait for arithmetic at a few texts. One text is the safest.
only multiplications
    2 * weights * many / => weights * many /
    says: How many operations do many texts make
    Each weight takes a multiplication and an addition for each text.
weights for bytes
    2 * weights / => weights /
    says: How many bytes does one text fetch
    Bandwidth is in bytes, and a weight has two.
the operations of one text
    weights * many / => weights /
    says: How many operations do many texts make
    Each weight is multiplied for every text.
bytes for every text
    2 * weights / fetching => 2 * weights * many / fetching
    says: How many bytes does one text fetch
    The step that was timed had one text; and with many, they would share the weights.
more texts for more weights
    seconds(2 * weights, 1) - seconds(weights, 1) => seconds(weights, 2) - seconds(weights, 1)
    2 * weights / => weights /
    says: float division by zero
    A second text fetches nothing more: the weights are there. Only more weights need more time.
the two changed places
    2 * weights * many / multiplying, 2 * weights / fetching =>
        2 * weights / fetching, 2 * weights * many / multiplying
    says: s for calls, your bandwidth is
    The result is (rate, bandwidth), in this order.
"""

HARMLESS = r"""
weights, many = … => weights, many = …, 10 ** 6)
    any large model will do
… => …(10 ** 11, 10 ** 5)
    a hundred thousand texts wait for arithmetic, too
… => …(10 ** 11, 9 ** 6)
    half a million texts wait for arithmetic, too
"""
