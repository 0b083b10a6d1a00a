"""Run a chapter's claims again on other seeds, to see how much of each margin is luck.

In a reseeded kernel every seed that a cell or the package sets is moved by the same amount: torch's
global and local generators, `random.Random`, and the dropout and batches of training. What decides
a split into training and test data stays, since shipped weights were trained on one side of it.
Claims are measured and noted there, and never raised.
"""

import random
import sys
from copy import deepcopy
from typing import NamedTuple

import torch

from tinytf_course import build, claims
from tinytf_course.display import show

STRIDE = 7919  # so far apart that `seed + 1` of one run is not a seed of another
FIXED = {"tinytf.data.manual"}  # modules whose random numbers decide a split


class Measured(NamedTuple):
    """What one claim measured in a reseeded run; `holds` is whether it kept its bound."""

    id: str
    sentence: str
    relation: str
    bound: object
    value: object
    holds: bool


class _Generator(torch.Generator):
    shift = 0

    def manual_seed(self, seed):
        """Seed it, moved."""
        return super().manual_seed(seed + self.shift)


class _Random(random.Random):
    shift = 0

    def __init__(self, seed=None):
        frame = sys._getframe(1)
        moved = isinstance(seed, int) and frame.f_globals.get("__name__") not in FIXED
        super().__init__(seed + self.shift if moved else seed)


def reseed(number):
    """Move all seeds of this process by `number` strides; note claims instead of raising them.

    Call it before the chapter's first cell. It is for kernels that end with the run.
    """
    import tinytf_course
    from tinytf.support import randomness

    shift = _Generator.shift = _Random.shift = number * STRIDE
    seed_torch, seed_all = torch.manual_seed, randomness.seed_all
    torch.Generator, random.Random = _Generator, _Random
    torch.manual_seed = lambda seed: seed_torch(int(seed) + shift)
    randomness.seed_all = lambda seed: seed_all(seed + shift)
    tinytf_course.claim = claims.claim = note


def note(id, sentence, measured, relation, bound, *, tolerance=1e-6):
    """Stand in for `claim`: show what was measured and whether it holds."""
    measured, bound = claims.scalar(measured), claims._bound(relation, bound)
    held = claims.holds(measured, relation, bound, tolerance)
    found = Measured(id, sentence, relation, bound, measured, held)
    show(f"{id} {measured}", "", {"measured": found._asdict()})


def measure(notebook, folder, number):
    """Run a notebook with all seeds moved by `number`; its claims, and the cells that failed.

    Returns (list of Measured, list of cell ids). A cell that fails does not end the run.
    Raises BuildError where the kernel ends, or a cell takes too long.
    """
    notebook = deepcopy(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    first = f"from tinytf_course.reseeded import reseed\nreseed({number})\n"
    code[0].source = first + code[0].source
    for cell in code:
        cell.metadata["tags"] = [*cell.metadata.get("tags", []), "raises-exception"]
    ran = build.run(notebook, folder)
    code = [cell for cell in ran.cells if cell.cell_type == "code"]
    found = [
        Measured(**output.metadata["measured"])
        for cell in code
        for output in cell.outputs
        if "measured" in output.get("metadata", {})
    ]
    failed = [cell.id for cell in code if any(o.output_type == "error" for o in cell.outputs)]
    return found, failed


class Margin(NamedTuple):
    """A claim on several seeds: its bound, the values in order of the seeds, how many held."""

    id: str
    relation: str
    bound: object
    values: list
    held: int

    @property
    def varies(self):
        """Whether the seed decides anything: a stored table or an identity measures the same."""
        return len(set(map(str, self.values))) > 1


def margins(runs):
    """The claims of several runs (lists of Measured), each with all its values, in their order."""
    found = {}
    for measured in (one for run in runs for one in run):
        id, _, relation, bound, value, holds = measured
        before = found.get(id, Margin(id, relation, bound, [], 0))
        found[id] = before._replace(values=[*before.values, value], held=before.held + holds)
    return list(found.values())
