"""Building a chapter: run, compare, keep; an empty diff where nothing of substance changed."""

import json
import os
import signal
import subprocess
import sys
import time

import nbformat
import pytest

from tinytf_course.__main__ import main
from tinytf_course.build import BuildError, changes, dump, load, mark_varying, read, run, settle
from tinytf_course.notebooks import NotebookError
from tinytf_course.outline import CHAPTERS

CLAIM = """def claim(id, sentence, measured, relation, bound):  # as tinytf's, which imports torch
    assert measured < bound, "ClaimError: " + id
    record = {"id": id, "sentence": sentence, "measured": str(measured)}
    display({"text/plain": f"{id} {measured}"}, raw=True, metadata={"claim": record})


claim("99-1", "a sentence", total, "<", 100)"""
FIGURE = """import matplotlib.pyplot as plt
plt.figure(figsize=(1, 1)).add_axes([0, 0, 1, 1]).plot([0, total])
plt.show()"""
WIDGET = """import ipywidgets
display(ipywidgets.IntSlider(total))"""
NOISE = """import time
print(f"{time.perf_counter_ns()} tokens at {id(object()):#x}")"""


def made(*cells):
    """The JSON of a notebook; a cell is its source, Markdown if it begins with #, and its tags."""
    built = []
    for cell in cells:
        source, *tags = cell if isinstance(cell, tuple) else (cell,)
        kind = "markdown" if source.startswith("#") else "code"
        new = getattr(nbformat.v4, f"new_{kind}_cell")(source)
        new.metadata = {"tags": tags} if tags else {}
        built.append(new)
    return nbformat.writes(nbformat.v4.new_notebook(cells=built))


def git(folder, *arguments):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def course(tmp_path):
    """A folder of one notebook, 99_it.ipynb, in git. `write(cells)` commits it."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    git(tmp_path, "init", "-q")

    class Course:
        path = folder / "99_it.ipynb"

        def write(self, *cells, commit=True):
            self.path.write_text(made(*cells), encoding="utf-8")
            if commit:
                self.commit()

        def commit(self):
            git(tmp_path, "add", "-A")
            git(tmp_path, "commit", "-q", "-m", "it", "--allow-empty")

        def build(self, *options):
            return main(["build", *options, "--notebooks", str(folder)])

        def diff(self):
            return git(tmp_path, "diff", "--stat")

        def cells(self):
            return {cell["id"]: cell for cell in json.loads(self.path.read_text())["cells"]}

        def edit(self, name, source):
            saved = json.loads(self.path.read_text())
            for cell in saved["cells"]:
                cell["source"] = source if cell["id"] == name else cell["source"]
            self.path.write_text(json.dumps(saved))

    return Course()


def test_an_unchanged_chapter_gives_an_empty_diff_and_a_changed_one_says_what(course, capsys):
    course.write(
        "# 99 It", "total = 3\nprint(total)", CLAIM, FIGURE, WIDGET, (NOISE, "varies"),
        "print('took 3.14159 s', object())",
    )  # fmt: skip
    assert course.build("99") == 0
    assert "99_it.ipynb: written" in capsys.readouterr().out
    cells = course.cells()
    assert list(cells) == [
        "title", "start-total", "claim", "start-code", "start-code-2", "start-code-3",
        "start-code-4",
    ]  # fmt: skip
    assert [cell.get("execution_count") for cell in cells.values()] == [None, 1, 2, 3, 4, 5, 6]
    course.commit()

    assert course.build() == 0
    assert capsys.readouterr().out == "99_it.ipynb: unchanged\n"
    assert not course.diff()

    course.edit("start-total", "total = 7\nprint(total)")
    before = course.path.read_text()
    capsys.readouterr()
    assert course.build("--check") == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown == [
        "99_it.ipynb: would change",
        "  start-total: source, text output",
        "  claim: claim",
        "  start-code: figure",
        "  start-code-2: text output, control",
    ]
    assert course.path.read_text() == before


def test_force_takes_the_noise_too(course):
    course.write("# It", (NOISE, "varies"))
    assert course.build() == 0
    course.commit()
    assert course.build("--force") == 0
    assert "99_it.ipynb" in course.diff()


def test_runs_in_an_editor_leave_no_trace(course, capsys):
    """An author ran and saved it: new counts, new noise, an editor's metadata."""
    course.write("# It", (NOISE, "varies"), "print('0.50')")
    course.build()
    course.commit()
    saved = json.loads(course.path.read_text())
    saved["metadata"]["language_info"]["version"] = "3.12.1"
    for cell in saved["cells"][1:]:
        cell["outputs"][0]["text"] = ["1.0 tokens at 0x5\n"]
        cell |= {"execution_count": 17, "metadata": cell["metadata"] | {"trusted": True}}
    course.path.write_text(json.dumps(saved))
    capsys.readouterr()
    assert course.build() == 0
    assert not course.diff()


def test_the_varying_cells_are_found_by_running_twice(course, capsys):
    course.write("# It", NOISE, "print(1)")
    assert course.build("--mark-varying") == 0
    assert "99_it.ipynb: start-code varies" in capsys.readouterr().out
    assert [cell["metadata"] for cell in course.cells().values()] == [{}, {"tags": ["varies"]}, {}]


def test_a_cell_that_fails_is_named_and_the_file_left(course, capsys):
    course.write("# It", "print(1)", "total = 300", CLAIM, commit=False)
    before = course.path.read_bytes()
    assert course.build() == 1
    said = capsys.readouterr().err
    assert "99_it.ipynb: cell claim failed: AssertionError: ClaimError: 99-1" in said
    assert "the file is as it was" in said
    assert course.path.read_bytes() == before
    assert os.listdir(course.path.parent) == ["99_it.ipynb"]


def test_a_kernel_that_dies_is_named_with_its_cell():
    with pytest.raises(BuildError, match="cell start-code ended the kernel"):
        run(read(made("# It", "import os; os._exit(1)")), ".")


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for one process")
def test_ctrl_c_leaves_the_file_and_ends_the_kernel(course, tmp_path):
    flag = tmp_path / "running"
    slow = f"import os, pathlib, time\npathlib.Path({str(flag)!r}).write_text(str(os.getpid()))"
    course.write("# It", slow + "\ntime.sleep(60)")
    before = course.path.read_bytes()
    command = [sys.executable, "-m", "tinytf_course", "build", "--notebooks", course.path.parent]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait(lambda: flag.exists() and flag.read_text())
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "99_it.ipynb: interrupted; the file is as it was" in said
    assert "Traceback" not in said
    assert course.path.read_bytes() == before
    wait(lambda: not alive(int(flag.read_text())))


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for one process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("running", [False, True])
def test_a_signal_ends_the_build_while_a_kernel_starts_and_while_it_runs(
    number, running, course, tmp_path
):
    """A kernel whose start takes a second says when it began; no second chapter is begun."""
    flag, start = tmp_path / "flag", tmp_path / "start"
    start.mkdir()
    note = (
        f"import os, pathlib, sys, time\npathlib.Path({str(flag)!r}).write_text(str(os.getpid()))"
    )
    if not running:
        kernel = "if any('ipykernel_launcher' in word for word in sys.orig_argv):\n    "
        note = note.replace("\npath", f"\n{kernel}path")
        (start / "sitecustomize.py").write_text(note + "; time.sleep(3)")
    course.write("# It", f"{note}\ntime.sleep(60)" if running else "1", commit=False)
    before = course.path.read_bytes()
    (course.path.parent / "99_z.ipynb").write_bytes(before)
    paths = os.pathsep.join(filter(None, [str(start), *sys.path]))
    command = [sys.executable, "-m", "tinytf_course", "build", "--notebooks", course.path.parent]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "PYTHONPATH": paths})  # fmt: skip
    wait(lambda: flag.exists() and flag.read_text())
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert "99_it.ipynb: interrupted; the file is as it was" in said
    assert "99_z" not in said
    assert "Traceback" not in said
    assert process.returncode == 130
    assert course.path.read_bytes() == before
    wait(lambda: not alive(int(flag.read_text())))


def wait(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_ids_only_runs_nothing(course, capsys):
    course.write("# It", "raise SystemError")
    assert course.build("--ids-only") == 0
    assert list(course.cells()) == ["title", "start-code"]
    first = course.path.read_bytes()
    assert course.build("--ids-only") == 0
    assert course.path.read_bytes() == first


def test_the_head_follows_the_outline(tmp_path, capsys):
    path = tmp_path / "05_it.ipynb"
    text = "# Three\n\n**What?**\n\nWords. About 5 minutes, or\nso.\n\nMore words."
    path.write_text(made(text))
    [five] = (chapter for chapter in CHAPTERS if chapter.number == "05")
    assert " ".join(load(path).cells[0].source.split()) == (
        "# 05 Scaled dot-product attention **How does a word find what it needs in the other words "
        f"of its sentence?** Words. About {five.core} minutes, and {five.beside} more for its "
        "electives. You need: words as vectors (chapter 4). More words."
    )
    path.write_text(made("# Three"))
    with pytest.raises(NotebookError, match=r"05_it.ipynb: the first cell .* does not say .*How"):
        load(path)


def test_what_is_no_notebook_is_named_and_left_out(course, capsys):
    course.write("# It")
    strange = {
        "01_broken.ipynb": "{",
        "02_other.ipynb": '{"cells": 3}',
        "90_old.ipynb": '{"nbformat": 2, "nbformat_minor": 0, "worksheets": 1, "metadata": {}}',
        "91_bytes.ipynb": b"\xff\xfe",
        "92_list.ipynb": "[]",
    }
    for name, text in strange.items():
        content = text if isinstance(text, bytes) else text.encode()
        (course.path.parent / name).write_bytes(content)
    assert course.build("--ids-only") == 0
    said = capsys.readouterr()
    assert "99_it.ipynb: written" in said.out
    for name in strange:
        assert f"left out: {name}" in said.err
    assert course.build("01", "--ids-only") == 1
    course.commit()
    (course.path.parent / "01_broken.ipynb").write_text(made("# One\n\n**Q?**\n\nAbout 1 minutes."))
    assert course.build("01", "--ids-only") == 0
    capsys.readouterr()
    assert course.build("44") == 1
    assert "44: no such chapter" in capsys.readouterr().err


def outputs(*texts, source="f()", tags=()):
    """A notebook of one cell that was run and printed these texts, each a display."""
    notebook = read(made("# It", (source, *tags)))
    notebook.cells[1].execution_count = 1
    for text in texts:
        shown = nbformat.v4.new_output("display_data", {"text/plain": text})
        notebook.cells[1].outputs.append(shown)
    return notebook


def texts(notebook):
    return [output.data["text/plain"] for output in notebook.cells[1].outputs]


def test_what_is_the_same_is_kept_output_by_output():
    assert texts(settle(outputs("1.15", "b"), outputs("1.14", "c"))) == ["1.14", "b"]
    assert texts(settle(outputs("1.15"), outputs("1.14", "c"))) == ["1.15"]
    assert texts(settle(outputs("2.25"), outputs("1.1"), outputs("2.26"))) == ["2.26"]
    assert texts(settle(outputs("1.15"), outputs("1.14"), outputs("1.16"))) == ["1.14"]
    never_run = outputs("1.14")
    never_run.cells[1].execution_count = None
    assert texts(settle(outputs("1.15"), never_run)) == ["1.15"]


def test_an_edited_cell_shows_what_it_says_now():
    new = outputs("0 < 1e-07", source="claim(0, '<', 1e-7)")
    assert texts(settle(new, outputs("0 < 1e-06", source="claim(0, '<', 1e-6)"))) == ["0 < 1e-07"]


def test_what_varies_is_kept_while_the_committed_source_is_the_same():
    new = outputs("5 a second", tags=["varies"])
    assert texts(settle(new, outputs("900 a second"))) == ["900 a second"]
    new = outputs("5 a second", tags=["varies"])
    edited = outputs("900 a second", source="g()"), outputs("7 a second")
    assert texts(settle(new, *edited)) == ["5 a second"]


def test_changes_are_named():
    old, new = read(made("# It", "a = 1", "b = 2", "c = 3")), read(made("# It", "a = 1", "c = 3"))
    assert changes(new, old) == {"start-b": ["removed"]}
    assert changes(old, new) == {"start-b": ["new"]}
    turned = read(dump(old))
    turned.cells[1:3] = turned.cells[2:0:-1]
    assert changes(turned, old) == {"(order)": ["moved"]}
    assert changes(outputs("a", tags=["x"]), outputs("a")) == {"start-code": ["tags"]}
    assert not changes(old, read(dump(old)))


def test_marking_keeps_other_tags():
    notebook = outputs("1", tags=["nbval-skip"])
    assert mark_varying(notebook, outputs("1"), outputs("2")) == ["start-code"]
    assert notebook.cells[1].metadata["tags"] == ["nbval-skip", "varies"]
    assert mark_varying(notebook, outputs("1"), outputs("1")) == []
