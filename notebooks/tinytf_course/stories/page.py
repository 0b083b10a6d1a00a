"""A story with its world beside it, sentence by sentence, and its first fault marked."""

import html

from tinytf_course.display import BAD, GOOD, sign
from tinytf_course.stories import words as w
from tinytf_course.stories.checking import check
from tinytf_course.stories.world import where

__all__ = ["Page"]
_CELL = "text-align: left; vertical-align: top; padding: 2px 12px 2px 0"


class Page:
    """What `check` finds in a text: in a notebook a table, elsewhere plain text.

    A row is a sentence and what has changed with it: who is where and how they feel, and who has
    what. Sentences after the first fault are set back; the world is not known any more.
    """

    def __init__(self, text):
        self.verdict = check(text)

    @property
    def rows(self):
        """Each sentence with what it has changed in the world, None from the first fault on."""
        worlds = self.verdict.worlds
        told, before = [], {}
        for number, sentence in enumerate(self.verdict.sentences):
            if number + 1 >= len(worlds):
                told.append((sentence, None))
                continue
            after = facts(worlds[number + 1])
            told.append(
                (sentence, [said for key, said in after.items() if before.get(key) != said])
            )
            before = after
        return told

    @property
    def last(self):
        """The verdict in one line."""
        found = self.verdict
        return "it makes sense" if found.makes_sense else f"{found.rule}: {found.why}"

    def __repr__(self):
        lines = [
            ("✗ " if self._faulty(number) else "  ")
            + sentence
            + (f"   [{'; '.join(changed)}]" if changed else "")
            for number, (sentence, changed) in enumerate(self.rows)
        ]
        return "\n".join([*lines, ("✓ " if self.verdict.makes_sense else "✗ ") + self.last])

    def _repr_html_(self):
        rows = []
        for number, (sentence, changed) in enumerate(self.rows):
            said, now = html.escape(sentence), "<br>".join(map(html.escape, changed or ()))
            if self._faulty(number):
                mark = f"text-decoration: underline wavy {BAD}; text-underline-offset: 3px"
                said, now = f'<span style="{mark}">{said}</span>', self._mark()
            elif changed is None:
                said = f'<span style="opacity: 0.5">{said}</span>'
            rows.append(f'<tr><td style="{_CELL}">{said}</td><td style="{_CELL}">{now}</td></tr>')
        if self.verdict.makes_sense or self.verdict.sentence >= len(rows):
            rows.append(f'<tr><td></td><td style="{_CELL}">{self._mark()}</td></tr>')
        head = "".join(f'<th style="{_CELL}">{name}</th>' for name in ("sentence", "the world"))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"

    def _faulty(self, number):
        return not self.verdict.makes_sense and number == self.verdict.sentence

    def _mark(self):
        good = self.verdict.makes_sense
        return f"{sign(GOOD if good else BAD, '✓' if good else '✗')} {html.escape(self.last)}"


def facts(world):
    """Give a world in short sentences: {what is told of: the sentence}."""
    told = {}
    for name, person in world.people.items():
        told[name, "place"] = f"{name}: {where(person.place)}"
        if person.mood:
            told[name, "mood"] = f"{name} is {person.mood}"
    for name, thing in world.wants.items():
        told[name, "wants"] = f"{name} wants {w.article(thing)}"
    for who, what, detail in world.promises:
        of = {"return": f"bring back the {detail}", "help": "help", "give": "give something"}[what]
        told[who, what] = f"{who} has promised to {of}"
    for noun, thing in world.things.items():
        lies = thing.place in w.PLACES
        if holder := world.told_holder(noun):
            told[noun] = f"{holder} {'have' if holder == 'both' else 'has'} the {noun}"
        elif lies:
            told[noun] = f"the {noun} lies {where(thing.place)}"
        if thing.state:
            told[noun, "state"] = f"the {noun} is {thing.state}"
    return told
