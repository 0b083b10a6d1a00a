"""The states of an `explore` panel: which of them are drawn beforehand."""

import math

MOST = 48  # states of a panel
_ALONE = 13  # values of a slider, where the controls are moved one at a time
_FEWEST = 3  # values that are left to a slider


def values_of(control):
    """The values that a widget takes, in the order of a slider, and whether some may be left out.

    A text field has one value, its own; so has a number without bounds.
    """
    if hasattr(control, "options"):
        pairs = [one if isinstance(one, tuple) else (one, one) for one in control.options]
        values = [value for _, value in pairs]
        numbers = all(type(value) in (int, float) for value in values)
        slides = hasattr(control, "continuous_update")  # a slider over the options
        return (sorted(values) if numbers else values), slides
    if isinstance(control.value, bool):
        return [False, True], False
    if getattr(control, "step", None) and hasattr(control, "max"):
        count = math.floor((control.max - control.min) / control.step + 1e-9) + 1
        digits = 9 if isinstance(control.value, float) else None
        values = [round(control.min + k * control.step, digits) for k in range(count)]
        return (values if control.value in values else sorted([*values, control.value])), True
    return [control.value], False


def beginnings(text):
    """A text read word by word: its first word, its first two, and so on to the whole."""
    words = text.split(" ")
    return [" ".join(words[:count]) for count in range(1, len(words) + 1)]


def chosen(controls, most=MOST):
    """Which states to draw: {name: values} and whether controls are moved together.

    All combinations where they are at most `most`, sliders with fewer values if need be. Otherwise
    one control is moved while the others stay where they began. A panel that has one text field and
    nothing to move reads the text word by word.
    """
    found = {name: values_of(control) for name, control in controls.items()}
    if all(len(values) == 1 for values, _ in found.values()):
        found = {
            name: (beginnings(values[0]) if isinstance(values[0], str) else values, True)
            for name, (values, _) in found.items()
        }
    start = {name: control.value for name, control in controls.items()}
    values = {name: values for name, (values, _) in found.items()}
    sliders = [name for name, (_, thins) in found.items() if thins]
    together = dict(values)
    while math.prod(map(len, together.values())) > most:
        longest = max(sliders, key=lambda name: len(together[name]), default=None)
        if longest is None or len(together[longest]) <= _FEWEST:
            return {
                name: thinned(all, min(_ALONE, most), start[name]) if name in sliders else all
                for name, all in values.items()
            }, False
        fewer = len(together[longest]) - 1
        together[longest] = thinned(values[longest], fewer, start[longest])
    return together, True


def thinned(values, count, kept):
    """At most `count` of the values (or _FEWEST): in even steps from `kept`, and both ends."""
    own, last = values.index(kept), len(values) - 1
    for step in range(1, len(values) + 1):
        inner = [place for place in range(own % step, last, step)
                 if place == own or step / 2 <= place <= last - step / 2]  # fmt: skip
        places = sorted({0, *inner, last})
        if len(places) <= max(count, _FEWEST):
            break
    return [values[place] for place in places]


def combinations(values, together, start):
    """The states as places in `values`: (0, 2) is the first control's first, the second's third."""
    names = list(values)
    begin = tuple(values[name].index(start[name]) for name in names)
    states = [()]
    if together:
        for name in names:
            states = [(*state, place) for state in states for place in range(len(values[name]))]
        return begin, states
    moved = {
        (*begin[:k], place, *begin[k + 1 :])
        for k, name in enumerate(names)
        for place in range(len(values[name]))
    }
    return begin, sorted(moved)
