"""Questions about a point of a story, each with all its right answers."""

from tinytf_course.stories import words as w
from tinytf_course.stories.world import HOME

__all__ = ["answers", "is_right"]
# a reason that begins so speaks of the person who feels it
OWN = ("wanted", "lost", "found", "got", "had", "missed", "broke", "was", "waited")


def answers(world):
    """Give what can be asked of a world: {question: all right wordings}, without stops, in order.

    Each of the wordings is right.
    """
    found = {}
    for name, person in world.people.items():
        if person.place == HOME:
            where = ("at home",)
        else:
            where = (w.at(person.place), f"at the {person.place}")
        found[f"Where is {name}?"] = _also(where, f"{name} is")
        found[f"Who is {name}?"] = _also(
            (w.article(person.kind), w.article(f"{person.trait} {person.kind}".strip())),
            f"{name} is",
        )
        if person.mood:
            own = person.why.split()[0] in OWN
            why = f"{name} {person.why}" if own else person.why
            found[f"Why is {name} {person.mood}?"] = (f"because {why}", why)
        if thing := world.wants.get(name):
            found[f"What does {name} want?"] = _also(
                (w.article(thing), f"the {thing}"), f"{name} wants"
            )
    for noun, thing in world.things.items():
        if holder := world.told_holder(noun):
            has = "have" if holder == "both" else "has"
            found[f"Who has the {noun}?"] = (
                holder, f"{holder} {has} it", f"{holder} {has} the {noun}",
            )  # fmt: skip
        elif thing.place in w.PLACES and noun != world.pocketed:
            found[f"Where is the {noun}?"] = _also(
                (w.at(thing.place), f"at the {thing.place}"), "it is"
            )
        if thing.owner:
            found[f"Whose is the {noun}?"] = (
                f"it belongs to {thing.owner}", thing.owner, f"the {noun} belongs to {thing.owner}",
            )  # fmt: skip
    for who, what, detail in world.promises:
        if what == "return" and "promise_back" in world.happened:
            told = (f"to bring back the {detail}", f"to give back the {detail}", "to bring it back")
            found[f"What has {who} promised?"] = told
    return found


def is_right(answer, wordings):
    """Say whether an answer is a right wording, whatever its capitals, stops and spaces."""
    return _plain(answer) in {_plain(words) for words in wordings}


def _also(short, lead):
    return tuple(short) + tuple(f"{lead} {words}" for words in short)


def _plain(text):
    return " ".join(str(text).lower().strip(" .!?").split())
