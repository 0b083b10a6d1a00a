"""What a chapter says about itself, gathered for its teacher's notes."""

import re
from typing import NamedTuple

from tinytf_course.cell_ids import heading
from tinytf_course.grading import exercises
from tinytf_course.notebooks import source, text
from tinytf_course.outline import CHAPTERS


class Prediction(NamedTuple):
    """A question asked before a run, and what the run said."""

    question: str
    options: list
    answer: str


class Facts(NamedTuple):
    """A chapter by its outline, exercises and saved notebook; all but `chapter` by their ids."""

    chapter: object
    exercises: dict
    predictions: dict
    claims: dict  # id: the sentence
    sections: dict  # cell: the headings that hold at its top and at its end

    def knows(self, name):
        """Whether the chapter has such a claim, prediction or exercise, or (with #) cell."""
        if name.startswith("#"):
            return name[1:] in self.sections
        return any(name in found for found in (self.claims, self.predictions, self.exercises))


def facts(notebook):
    """The Facts of a Notebook. Raises KeyError if the outline has no such chapter."""
    number = notebook.chapter
    return Facts(
        {chapter.number: chapter for chapter in CHAPTERS}[number],
        {id: each for id, each in exercises().items() if id.startswith(f"{number}.")},
        _predictions(notebook),
        {claim["id"]: claim["sentence"] for claim in notebook.claims()},
        _sections(notebook.cells),
    )


def problems(notes, facts):
    """What the notes say that is not so: names of nothing, by the chapter's own facts."""
    found = [f"{name} is nothing in this chapter" for name in notes.named if not facts.knows(name)]
    order = list(facts.sections)
    for plan in notes.plans:
        cells = [name for step in plan.steps for name in re.findall(r"\{#([\w-]+)\}", step.cells)]
        places = [order.index(cell) for cell in cells if cell in order]
        if places != sorted(places):
            found.append(f"the plan for {plan.minutes} minutes walks back: {cells}")
    return found


def _sections(cells):
    """{cell: (heading at its top, heading at its end)}; an exercise's holds for its own cells."""
    found, section, exercise = {}, "", ""
    for cell in cells:
        own, id = heading(cell), cell.get("id") or ""
        if own and own.startswith("Exercise "):
            exercise, own = own, None
        begins = source(cell).lstrip().startswith("#") and cell["cell_type"] == "markdown"
        top, section = section, own or section
        found[id] = (section if begins else top, section)
        if id.startswith("exercise-") and exercise:
            found[id] = (exercise, exercise)
    return found


def _predictions(notebook):
    found = {}
    for output in notebook.outputs:
        lines = text(output).strip().splitlines() or [""]
        if asked := re.match(r"\? (\d\d-\w+)  (.*)", lines[0]):
            options = [line.strip().removeprefix("- ") for line in lines[1:]]
            found[asked[1]] = Prediction(asked[2], options, "")
        told = re.match(r"[✓→] (\d\d-\w+)  (?:you said: .*; )?measured: (.*)", lines[0])
        if told and told[1] in found:
            found[told[1]] = found[told[1]]._replace(answer=told[2])
    return found
