"""A chapter's claims on other seeds: what is moved, what stays, and what is said."""

import csv
import random
from pathlib import Path

import nbformat
import pytest

from tinytf_course.__main__ import main
from tinytf_course.notebooks import notebooks
from tinytf_course.reseeded import Margin, Measured, margins, measure

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
CELLS = [
    "from tinytf_course import claim, setup\ndevice = setup()",
    "import torch\nfrom tinytf.support.randomness import seeded",
    "torch.manual_seed(0)\nclaim('03-1', 'A draw from a seed is above 0', torch.rand(()), '>', 0)",
    "draws = torch.Generator().manual_seed(5)\n"
    "claim('03-2', 'A draw is its own', torch.rand((), generator=draws), '>=', 0)",
    "with seeded(0):\n    claim('03-3', 'A seeded draw is negative', torch.rand(()), '<', 0)",
    "claim('03-4', 'Two is two', 2, '==', 2)",
    "raise ValueError('too late')",
    "from tinytf.data.manual import manual_split\n"
    "claim('03-5', 'The split stays', manual_split()[1][:40], '==', manual_split()[1][:40])",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("notebooks")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    notebook.cells[-2].id = "broken"
    nbformat.write(notebook, made / "03_a.ipynb")
    return made


@pytest.fixture(scope="module")
def runs(folder):
    notebook = nbformat.read(folder / "03_a.ipynb", as_version=4)
    return [measure(notebook, folder, seed) for seed in (0, 1, 2)]


def test_every_source_of_random_numbers_is_moved(runs):
    for i in range(3):
        assert len({found[i].value for found, _ in runs}) == 3


def test_what_decides_a_split_stays(runs):
    assert len({found[-1].value for found, _ in runs}) == 1


def test_a_claim_that_does_not_hold_and_a_cell_that_fails_end_nothing(runs):
    for found, failed in runs:
        assert [one.id for one in found] == ["03-1", "03-2", "03-3", "03-4", "03-5"]
        assert [one.holds for one in found] == [True, True, False, True, True]
        assert failed == ["broken"]


def test_this_process_keeps_its_seeds(runs):
    assert random.Random(0).random() == 0.8444218515250481


def test_margins_gather_the_values_of_the_runs():
    one = Measured("03-1", "s", "<", 1.0, 0.5, True)
    other = one._replace(value=2.0, holds=False)
    assert margins([[one], [other]]) == [Margin("03-1", "<", 1.0, [0.5, 2.0], 1)]


def test_the_command_prints_a_table_and_names_what_failed(folder, capsys):
    assert main(["claims", "--seeds", "2", "3", "--notebooks", str(folder)]) == 1
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "chapter,claim,relation,bound,seeds,held,lowest,highest"
    assert "# 03: cell broken fails on seed 1" in rows
    assert "03,03-4,==,2,2,2,2,2" in rows
    [false] = [row for row in rows if row.startswith("03,03-3,")]
    assert false.split(",")[4:6] == ["2", "0"]


def test_the_table_of_margins_has_no_claim_that_fails_on_another_seed():
    rows = list(csv.DictReader((Path(__file__).parent / "margins.csv").open(encoding="utf-8")))
    assert len(rows) > 400
    assert not [row for row in rows if row["held"] != row["seeds"] or int(row["seeds"]) < 7]
    claimed = {claim["id"] for notebook in notebooks(NOTEBOOKS) for claim in notebook.claims()}
    assert not [row["claim"] for row in rows if row["claim"] not in claimed]
