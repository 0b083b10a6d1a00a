"""The explorer of patches is one whole page element, with a still where no script runs."""

import json
import re

import pytest

from tinytf_course.drawings.patch_explorer import patch_explorer


def example():
    cells = [[[0.0, "墙"], [1.0, "猫"]], [[0.25, "墙"], [-0.5, "<b>"]]]
    part = {"rows": ["one", "two"], "columns": ["it", "<eos>"], "cells": cells}
    maps = dict.fromkeys(("encoder", "decoder", "lens"), part)
    return {"clean": "a tired", "corrupted": "a wide", "answers": ["猫", "墙"], "maps": maps}


def test_it_is_self_contained_and_carries_its_numbers():
    shown = patch_explorer([example(), example()])._repr_html_()
    assert not re.search(r"https?://|@import|<link|src=|url\(", shown)
    data = re.search(r"const DATA = (.*);\n", shown).group(1)
    assert json.loads(data) == [example(), example()]
    assert "<eos>" not in shown
    assert "__" not in shown.replace("__proto__", "")


def test_two_on_a_page_have_ids_of_their_own():
    ids = [patch_explorer([example()]).uid for _ in range(2)]
    assert ids[0] != ids[1]


def test_without_scripts_the_encoder_s_map_stays():
    shown = patch_explorer([example()]).html
    still = shown[shown.index('class="still"') : shown.index('class="app"')]
    assert still.count("<td style=") == 4
    assert ">1.00<" in still
    assert ">0.00<" not in still
    assert "&lt;eos&gt;" in still


def test_a_page_is_saved(tmp_path):
    patch_explorer([example()]).save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match="at least one example"):
        patch_explorer([])
    wrong = example()
    wrong["maps"] = {name: part | {"columns": ["it"]} for name, part in wrong["maps"].items()}
    with pytest.raises(ValueError, match="map 'encoder': 2 rows of"):
        patch_explorer([wrong])


def test_a_title_and_words_that_look_like_a_place_stay_text():
    sick = example() | {"clean": "' onmouseover='alert(1)' __STILL__"}
    shown = patch_explorer([sick], title="__DATA__ __UID__").html
    assert 'data-title="__DATA__ __UID__"' in shown
    assert shown.count("<table>") == 1
