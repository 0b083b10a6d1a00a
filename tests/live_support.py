"""For tests of the panels: node with their scripts in order, and what a panel has written."""

import json
import shutil
import subprocess

import pytest

from tinytf_course.live import assets

READY = ".tinytf-live[data-state='ready']"


def node():
    """Node from the PATH, or else the one inside playwright's wheel; skips where neither is."""
    if found := shutil.which("node"):
        return found
    try:
        from playwright._impl._driver import compute_driver_executable
    except ImportError:
        pytest.skip("no node on this machine's PATH, and no playwright, which carries one")
    return compute_driver_executable()[0]


def in_javascript(driver, folder, **tasks):
    """Run a script with the panels' scripts in `folder`; the tasks and its answer are JSON."""
    (folder / "phrasebook.js").write_text(assets.phrasebook_script(), encoding="utf-8")
    names = ("model.js", "text.js", "phrasebook.js", "apps.js")
    own = {"phrasebook.js": folder / "phrasebook.js"}
    scripts = [str(own.get(name, assets.HERE / name)) for name in names]
    weights = str(assets.WEIGHTS["translator"].parent)
    said = json.dumps({"scripts": scripts, "weights": weights, **tasks})
    done = subprocess.run(
        [node(), driver], input=said, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def wait_for(page, words):
    page.wait_for_function(
        "words => document.querySelector('.tinytf-live').dataset.output === words",
        arg=f"{words} <eos>".strip(),
    )
