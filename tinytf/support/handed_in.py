"""What tinytf uses and does not hold: the phrasebook, which the course hands in.

The course says where its things are, `hand_in("phrasebook", "package.module")`, when it is
imported; and to programs that never import it, as entry points of the group `tinytf` of what is
installed. Neither loads anything: that is done where the thing is first used.
"""

from functools import cache
from importlib.metadata import entry_points
from pkgutil import resolve_name

__all__ = ["NotHandedIn", "hand_in", "handed_in", "needed"]

_PLACES: dict[str, str] = {}


class NotHandedIn(ImportError):
    """Something that the course brings is used where the course is not installed."""


def hand_in(name: str, place: str) -> None:
    """Say where a thing is: "package.module", or "package.module:name" for what a module defines.

    The last place that was handed in under a name is the one that counts.
    """
    _PLACES[name] = place


def handed_in(name: str):
    """Return the thing of this name, loaded when it is first used; None where nobody brings it."""
    place = _PLACES.get(name) or _installed().get(name)
    if place is None:
        return None
    try:
        return resolve_name(place)
    except ModuleNotFoundError as missing:
        if missing.name == place.partition(".")[0]:  # a wheel names the course and has it not
            return None
        raise


def needed(name: str):
    """Return the thing of this name. Raises NotHandedIn, with what to install, if nobody brings it.

    Its message is one sentence, so a command can show it as it is.
    """
    thing = handed_in(name)
    if thing is None:
        raise NotHandedIn(
            f"the {name} is part of the course, which is not installed: "
            "run pip install -e '.[course]' in the course's folder"
        )
    return thing


@cache
def _installed() -> dict[str, str]:
    return {entry.name: entry.value for entry in entry_points(group="tinytf")}
