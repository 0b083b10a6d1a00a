"""Chapters away from home: the set-up cell's guard, badges, links for Binder and for a class."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import nbformat
import pytest

from tinytf_course import online
from tinytf_course.build import dump
from tinytf_course.notebooks import notebooks

NOTEBOOKS = notebooks(Path(__file__).parents[2] / "notebooks")
SOMEBODY = "somebody/tinytf"


def run_alone(code, folder, *options, **environment):
    """The cell in an IPython of an empty folder that has no tinytf; (what it says, exit status)."""
    script = "import importlib.util as u\nfind = u.find_spec\n"
    script += "u.find_spec = lambda name, *a: None if name == 'tinytf_course' else find(name, *a)\n"
    script += "from IPython.core.interactiveshell import InteractiveShell\n"
    script += f"result = InteractiveShell().run_cell({code!r})\nprint('ran:', result.success)\n"
    path = os.environ["PATH"]
    done = subprocess.run(
        [sys.executable, *options, "-c", script], cwd=folder, capture_output=True, text=True,
        env={"PATH": path, "HOME": str(folder), "IPYTHONDIR": str(folder), **environment},
    )  # fmt: skip
    return done.stdout + done.stderr


def test_at_home_the_cell_does_nothing():
    for repository in (None, SOMEBODY):
        names = {}
        exec(online.guard(repository), names)
        assert set(names) == {"__builtins__", "find_spec"}


def test_the_guard_is_brought_up_to_date_and_what_follows_stays():
    cell = nbformat.v4.new_code_cell("import torch\n\ndevice = setup()", id="setup")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    for repository in (None, SOMEBODY, None):
        online.with_guard(notebook, repository)
        assert cell.source.count("find_spec(") == 1
        assert ("git+https" in cell.source) == bool(repository)
        assert online.own_lines(cell.source) == "import torch\n\ndevice = setup()"


def test_the_cell_is_formatted_like_the_rest_of_a_notebook(tmp_path):
    for repository in (None, SOMEBODY):
        path = tmp_path / "cell.py"
        path.write_text(online.guard(repository).rstrip() + "\n")
        run = [sys.executable, "-m", "ruff", "format", "--check", "--line-length", "100", str(path)]
        assert subprocess.run(run, capture_output=True).returncode == 0


def test_alone_a_chapter_says_in_one_sentence_what_to_do(tmp_path):
    said = run_alone(online.guard(), tmp_path)
    assert said.count("tinytf is not installed here") == 1
    assert "the first command of its README" in said
    assert "Traceback" not in said
    assert "ran: False" in said
    assert len(said.strip().splitlines()) == 2


def test_without_a_network_the_cell_says_so_in_one_sentence(tmp_path):
    offline = {"PIP_NO_INDEX": "1", "PIP_RETRIES": "0", "https_proxy": "http://127.0.0.1:9"}
    said = run_alone(online.guard(SOMEBODY), tmp_path, **offline)
    assert said.count("could not be fetched: connect to the network") == 1
    assert f"https://github.com/{SOMEBODY} says." in said
    assert "Traceback" not in said
    assert len(said.strip().splitlines()) == 2


def test_with_one_it_fetches_tinytf_alone_and_leaves_torch(tmp_path):
    """A pip that only writes down what it was asked for."""
    asked = tmp_path / "asked"
    pip = tmp_path / "lib" / "pip"
    pip.mkdir(parents=True)
    (pip / "__init__.py").write_text("")
    (pip / "__main__.py").write_text(
        f"import sys\nopen({str(asked)!r}, 'a').write(' '.join(sys.argv[1:]) + chr(10))\n"
    )
    said = run_alone(online.guard(SOMEBODY), tmp_path, PYTHONPATH=str(tmp_path / "lib"))
    assert said.strip() == "ran: True"
    first, second = asked.read_text().splitlines()
    assert first.split()[-3:] == [
        "--no-deps", "--editable", f"git+https://github.com/{SOMEBODY}@main#egg=tinytf"
    ]  # fmt: skip
    assert "torch" not in second.split()
    assert {"safetensors", "regex", "sacrebleu"} <= set(second.split())


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda n: n.path.stem)
def test_a_chapter_opens_with_its_question_and_a_picture(notebook):
    """Behind the title there is one set-up cell, folded; it, or what follows, shows a picture."""
    built = nbformat.read(notebook.path, as_version=4)
    title, cell, *others = built.cells[:6]
    assert (title.cell_type, cell.id) == ("markdown", "setup")
    assert cell.source.startswith(online.guard() + online.MARK)
    assert cell.metadata["jupyter"] == {"source_hidden": True}
    outputs = [output for one in (cell, *others) for output in one.get("outputs", [])]
    shown = {form for output in outputs for form in output.get("data", {})}
    assert "text/html" in shown
    text = dump(built)
    assert dump(online.with_guard(nbformat.reads(text, as_version=4))) == text


def test_badges_come_and_go_with_the_address():
    title = "# 05 It\n\n**Why?**\n\nAbout 5 minutes."
    assert online.badges("05_it.ipynb") == ""
    assert online.with_badges(title, "05_it.ipynb") == title
    shown = online.with_badges(title, "05_it.ipynb", SOMEBODY)
    assert shown.startswith(
        title + "\n\nOpen in: [Colab](https://colab.research.google.com/github/"
    )
    assert f"{SOMEBODY}/blob/main/notebooks/05_it.ipynb)" in shown
    assert online.with_badges(shown, "05_it.ipynb", SOMEBODY) == shown
    assert online.with_badges(shown, "05_it.ipynb") == title


def test_links_say_what_to_fetch_and_what_to_open():
    link = urlsplit(online.pull_link("https://hub.example.org/", "05_it.ipynb", SOMEBODY))
    assert (link.netloc, link.path) == ("hub.example.org", "/hub/user-redirect/git-pull")
    assert parse_qs(link.query) == {
        "repo": [f"https://github.com/{SOMEBODY}"],
        "branch": ["main"],
        "urlpath": ["lab/tree/tinytf/notebooks/05_it.ipynb"],
    }
    link = urlsplit(online.binder_link("05_it.ipynb", SOMEBODY))
    assert link.path == f"/v2/gh/{SOMEBODY}/main"
    assert parse_qs(link.query) == {"urlpath": ["lab/tree/notebooks/05_it.ipynb"]}
    if online.REPOSITORY is None:
        with pytest.raises(ValueError, match="set REPOSITORY in notebooks/tinytf_course/online"):
            online.binder_link("05_it.ipynb")


def test_the_readme_speaks_of_links_only_where_there_are_any():
    assert "Colab" not in online.without_installing(repository=None) or online.REPOSITORY
    assert f"codespaces.new/{SOMEBODY}" in online.without_installing(repository=SOMEBODY)
