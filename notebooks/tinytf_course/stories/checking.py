"""Where a text first stops making sense, and why."""

from copy import deepcopy
from dataclasses import dataclass

from tinytf_course.stories.templates import readings, sentences
from tinytf_course.stories.world import Fault, World

__all__ = ["Verdict", "check"]
LONGEST, LETTERS = 60, 20_000  # sentences and letters; a text that is longer is no story


@dataclass(frozen=True)
class Verdict:
    """What is wrong with a text, if anything.

    rule: the rule that it breaks, "" if it makes sense. why: in words. sentence: the number of the
    sentence, from 0. sentences: all of them, and what is left over after the last. worlds: as it
    was before the first sentence, and after each that makes sense.
    """

    rule: str
    why: str
    sentence: int
    sentences: tuple
    worlds: tuple

    @property
    def world(self):
        """The world before the fault, or at the end."""
        return self.worlds[-1]

    @property
    def makes_sense(self):
        """Whether nothing is wrong."""
        return not self.rule

    def __str__(self):
        if self.makes_sense:
            return "It makes sense."
        said = self.sentences[self.sentence] if self.sentence < len(self.sentences) else ""
        return f"Sentence {self.sentence + 1} breaks the rule {self.rule!r}: {self.why}. {said}"


def check(text):
    """Read a text, and say where it first stops making sense and why; returns a `Verdict`.

    It takes any text, and never raises. A sentence that can mean several events means the first
    that makes sense.
    """
    text = str(text)
    parts, rest = sentences(text[:LETTERS])
    said = (*parts, rest) if rest else tuple(parts)
    worlds = [World()]
    if len(text) > LETTERS or len(parts) > LONGEST:
        most = f"{LONGEST} sentences or {LETTERS:,} letters"
        return Verdict("ending", f"it has more than {most}", 0, said, (*worlds,))
    for number, sentence in enumerate(parts):
        meant = readings(sentence)
        fault = None if meant else Fault("grammar", "the storybook has no such sentence")
        for event, slots in meant:
            after = deepcopy(worlds[-1])
            try:
                after.apply(event, slots)
            except Fault as found:
                fault = fault or found
            except Exception:  # the rules forgot something: it is no reason to fail
                fault = fault or Fault("cause", "that can not be followed")
            else:
                fault = None
                worlds.append(after)
                break
        if fault is not None:
            return Verdict(fault.rule, fault.why, number, said, tuple(worlds))
    if rest:
        return Verdict("ending", "it breaks off", len(parts), said, tuple(worlds))
    if not worlds[-1].ended:
        return Verdict("ending", "the story has no end", len(parts), said, tuple(worlds))
    return Verdict("", "", len(parts), said, tuple(worlds))
