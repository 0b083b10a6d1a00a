"""Tests mirror package and course: `tinytf/ROOM/NAME.py` is tested in `tests/ROOM/test_NAME.py`.

The course's are in `tests/course`.
"""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
TREES = {"": ROOT / "tinytf", "course/": ROOT / "notebooks" / "tinytf_course"}
ROOMS_OF_THE_COURSE = ("studies", "lessons", "stories", "live")  # tested file by file

# Tests of something else than one file of the package, and of what.
OF_SOMETHING_ELSE = {
    "test_benchmarks.py": "the benchmarks beside it",
    "test_faults.py": "files broken and processes stopped, a slice of the campaign in faults/",
    "test_every_model.py": "what holds for the four models alike",
    "test_properties.py": "that future, padding and a cache change nothing, for all models alike",
    "test_configs.py": "the defaults of all configs, and that none can be changed",
    "test_errata.py": "mistakes of the source documents, wherever they could be made",
    "test_house.py": "what stands where in the package, and who imports whom",
    "test_layout.py": "this",
    "test_packaging.py": "what the wheel holds",
    "course/test_names.py": "which mistake a wrong answer is told, in course/check.py",
    "test_wall.py": "the wall between package and course",
    "test_repository.py": "what surrounds the course: workflows, forms, citation, installing",
    "apps/test_hostile_files.py": "files of all apps with anything in their headers",
    "pretrained/test_families.py": "what all families of published weights share",
    "pretrained/test_hostile_folders.py": "folders broken on purpose, whatever the family",
    "course/test_devices.py": "what chapters define, on other devices",
    "course/test_damage.py": "a learner's damaged notebooks, through all commands that read them",
    "course/release/test_class.py": "what a whole class may hand in to `collect`",
    "course/test_clinic_checks.py": "the checks of the clinic, which are many",
    "course/drawings/test_worked_out.py": "what drawings work out before they draw it",
    "course/test_browser.py": "a chapter in JupyterLab",
    "course/live/test_in_browser.py": "the panels of live/, by mouse and keyboard",
    "course/live/test_states.py": "what the panels of live/ keep and say while they are changed",
    "course/live/test_model.py": "the scripts of live/ that compute, against tinytf",
    "course/test_strangers.py": "answers of people who had not read the graders",
    "course/test_form_checks.py": "the checks in test_notebooks_form.py",
    "course/test_notebooks_form.py": "the saved notebooks",
    "viz/test_explorer_page.py": "the explorer in a browser",
    "viz/test_palette.py": "the colours of style.py, for every kind of eye",
    "training/test_compiled.py": "whole runs of compiled models",
}

# Files whose tests are elsewhere, and where. The list may only shrink.
WITHOUT_A_FILE = {
    "checks.py": "with each config that calls it",
    **dict.fromkeys(
        (
            f"course/stories/{name}.py"
            for name in ("page", "plots", "questions", "templates", "words")
        ),
        "in course/stories/test_checking.py, which reads all that they write",
    ),
    "course/trial.py": "in course/test_check.py, whose verdicts it gives",
    "course/answering.py": "in course/test_worker.py, whose process it is",
    "course/carried.py": "in course/test_worker.py, whose messages it makes",
    "course/noting.py": "in course/test_expect.py, whose words note what they find",
    "course/mutations.py": "in course/test_mutants.py, whose changes they are",
    "course/tensors.py": "in course/test_expect.py, which compares by them",
    "course/studies/alignment.py": "in course/studies/test_recurrence.py, whose grades it gives",
    "support/protocols.py": "by what accepts them: it only names types",
    "training/config.py": "in training/test_trainer.py: bad settings are refused",
    "training/optimizer.py": "in training/test_trainer.py: a step equals plain AdamW",
}


def mirror(file):
    """Where a file is tested; a package inside a room is tested as one at least."""
    parts = Path(file).with_suffix("").parts
    if parts[-1] == "__init__":
        parts = parts[:-1] or ("tinytf",)
    *room, name = parts[: 3 if parts[1:2] and parts[1] in ROOMS_OF_THE_COURSE else 2]
    if room[-1:] == ["studies"] and name.endswith("_tables"):
        name = "tables"  # all tables of studies are tested alike
    return "/".join([*room, f"test_{name.strip('_')}.py"])


def inner_mirror(file):
    """Where a file of a package inside a room may be tested by itself."""
    *folders, name = Path(file).with_suffix("").parts
    return "/".join([*folders, f"test_{name}.py"])


def has_code(path):
    """Whether a file holds more than its docstring, imports and a list of names."""
    kinds = ast.Expr, ast.Import, ast.ImportFrom, ast.Assign
    return not all(isinstance(node, kinds) for node in ast.parse(path.read_text()).body)


FILES = {
    prefix + path.relative_to(tree).as_posix(): path
    for prefix, tree in TREES.items()
    for path in sorted(tree.rglob("*.py"))
}
MIRRORS = {name: mirror(name) for name in FILES}
TEST_FILES = {str(path.relative_to(TESTS)) for path in TESTS.rglob("test_*.py")}


def test_each_test_file_is_named_like_what_it_tests():
    known = {*MIRRORS.values(), *map(inner_mirror, FILES), *OF_SOMETHING_ELSE}
    astray = TEST_FILES - known
    assert not astray, f"{sorted(astray)}: no file of the package at that place"
    gone = set(OF_SOMETHING_ELSE) - TEST_FILES
    assert not gone, f"{sorted(gone)} is listed, but not there"


def test_each_file_has_its_tests():
    missing = {name for name, test in MIRRORS.items() if test not in TEST_FILES}
    missing = {name for name in missing if has_code(FILES[name])}
    assert not missing - set(WITHOUT_A_FILE), "no test file, and none named in WITHOUT_A_FILE"
    assert not set(WITHOUT_A_FILE) - missing, "has its test file, or is gone: off the list"


def test_what_tests_share_says_what_it_is_for():
    for path in TESTS.rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text())), path


# What has as many lines as there is to say: exercises, parts, events, and data.
LONG = tuple(
    f"course/{room}/" for room in ["exercises", "parts", "clinic", "phrasebook", "stories"]
)


def test_no_file_is_long_and_the_training_loop_reads_top_to_bottom():
    lines = {name: path.read_text(encoding="utf-8").count("\n") for name, path in FILES.items()}
    assert {name: n for name, n in lines.items() if n > 300 and not name.startswith(LONG)} == {}
    assert lines["training/trainer.py"] < 240
