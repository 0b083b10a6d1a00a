"""Cells of a reader's copy find theirs in the chapter, whatever became of the ids."""

from copy import deepcopy

import pytest
from test_copies import cell, chapter, texts

from tinytf_course.copies import fresh_copy, update

CHAPTER = chapter(
    cell("title", "# 07 It", "markdown"), cell("a", "x = 1"), cell("b", "y = 2"),
    cell("c", "z = 3"), cell("d", "y = 2"),
)  # fmt: skip
NEWER = chapter(*deepcopy(CHAPTER["cells"][:4]), cell("d", "y = 2, later"), cell("e", "w = 4"))


def without_ids(notebook):
    cells = [{k: v for k, v in one.items() if k != "id"} for one in notebook["cells"]]
    return notebook | {"cells": cells, "nbformat_minor": 4}


@pytest.mark.parametrize("place", [0, 1])
def test_of_two_cells_with_one_id_neither_is_lost(place):
    mine = fresh_copy(CHAPTER)
    twin = deepcopy(mine["cells"][4]) | {"source": ["my_work = 1"]}
    mine["cells"].insert(4 + place, twin)
    after, did = update(mine, NEWER)
    both = ["my_work = 1", "y = 2, later"] if not place else ["y = 2, later", "my_work = 1"]
    assert sorted(texts(after)[4:6]) == sorted(both)
    assert texts(after)[6] == "w = 4"
    ids = [one["id"] for one in after["cells"]]
    assert len(set(ids)) == len(ids) == 7
    assert did == (["e"], ["d"], [], [])
    assert texts(update(after, NEWER)[0]) == texts(after)


def test_both_of_two_edited_cells_with_one_id_stay():
    mine = fresh_copy(CHAPTER)
    mine["cells"][1]["source"] = ["x = 'mine'"]
    mine["cells"].append(deepcopy(mine["cells"][1]) | {"source": ["x = 'mine too'"]})
    after, _ = update(mine, NEWER)
    assert {"x = 'mine'", "x = 'mine too'"} < set(texts(after))
    assert "x = 1" not in texts(after)


def test_a_copy_whose_cells_have_no_ids_is_matched_by_text_and_not_doubled():
    mine = without_ids(fresh_copy(CHAPTER))
    mine["cells"][2]["outputs"] = ["ran"]
    after, did = update(mine, NEWER)
    assert texts(after) == texts(NEWER)
    assert [one["id"] for one in after["cells"]] == ["title", "a", "b", "c", "d", "e"]
    assert did == (["e"], ["d"], [], [])
    assert after["cells"][2]["outputs"] == ["ran"]
    assert after["nbformat_minor"] == 5


def test_what_was_written_in_a_cell_without_an_id_is_found_between_its_neighbours():
    mine = without_ids(fresh_copy(CHAPTER))
    mine["cells"][1]["source"] = ["x = 'all of it is another now'"]
    mine["cells"][4]["source"] = ["y = 'mine'"]
    after, did = update(mine, NEWER)
    assert texts(after) == ["# 07 It", "x = 'all of it is another now'", "y = 2", "z = 3",
                            "y = 'mine'", "w = 4"]  # fmt: skip
    assert did == (["e"], [], [], ["d"])


def test_beside_a_cell_of_their_own_the_likeness_of_the_text_decides():
    mine = without_ids(fresh_copy(CHAPTER))
    mine["cells"][3]["source"] = ["z = 3 + 1"]
    own = cell("gone", "print('a cell of my own')")
    own.pop("id")
    mine["cells"].insert(3, own)
    after, did = update(mine, NEWER)
    assert texts(after)[3:] == ["print('a cell of my own')", "z = 3 + 1", "y = 2, later", "w = 4"]
    assert after["cells"][3]["id"] == "mine-1"
    assert did.new == ["e"]


def test_an_update_of_the_updated_changes_nothing():
    mine = without_ids(fresh_copy(CHAPTER))
    mine["cells"].insert(2, {"cell_type": "code", "metadata": {}, "source": "own = 1"})
    once, _ = update(mine, NEWER)
    twice, did = update(once, NEWER)
    assert once == twice
    assert not did


def test_a_chapter_without_ids_updates_nobody():
    with pytest.raises(ValueError, match="cells without an id of their own"):
        update(fresh_copy(CHAPTER), without_ids(NEWER))
    twice = chapter(cell("a", "x"), cell("a", "y"))
    with pytest.raises(ValueError, match="cells without an id of their own"):
        update(fresh_copy(CHAPTER), twice)
