"""What surrounds the course: workflows, issue forms, citation and install lists say the same."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from PIL import Image

import tinytf

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
YAML = [
    *sorted((ROOT / ".github").rglob("*.yml")),
    ROOT / ".pre-commit-config.yaml",
    ROOT / "CITATION.cff",
]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def workflow():
    return yaml.safe_load(text(".github/workflows/tests.yml"))


def commands(job):
    return [step["run"] for step in workflow()["jobs"][job]["steps"] if "run" in step]


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_every_yaml_file_parses(path):
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


def test_the_matrix_is_what_the_readme_promises():
    matrix = workflow()["jobs"]["tests"]["strategy"]["matrix"]
    low, high = re.search(r"Python (3\.\d+) to (3\.\d+)", README).groups()
    minors = range(int(low[2:]), int(high[2:]) + 1)
    assert matrix["python"] == [f"3.{minor}" for minor in minors]
    assert PROJECT["project"]["requires-python"] == f">={low}"
    assert matrix["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]


def test_the_workflow_runs_the_readme_s_second_command():
    second = next(line for line in README.splitlines() if "-m pytest" in line)
    steps = re.findall(r"-m pytest|install -r requirements\.txt", second)
    for job in ("tests", "gpu"):
        run = " ".join(commands(job))
        assert [step for step in steps if step in run] == steps
    assert "vars.GPU_RUNNER != ''" in workflow()["jobs"]["gpu"]["if"]
    assert any("--device cuda" in command for command in commands("gpu"))


def test_torch_is_one_version_wherever_it_is_named():
    pinned = next(r for r in PROJECT["project"]["optional-dependencies"]["course"] if "torch" in r)
    assert set(re.findall(r"torch==[\d.]+\d", text(".github/workflows/tests.yml"))) == {pinned}
    for page in ("README.md", ".github/GUIDE.md"):
        named = re.findall(r"\b(\d+\.\d+\.\d+)\b", text(page))
        assert named == [pinned[len("torch==") :]], page


def test_a_reader_installs_what_the_chapters_import_and_nothing_of_the_tests():
    required = [*PROJECT["project"]["dependencies"]]
    required += PROJECT["project"]["optional-dependencies"]["course"]
    names = {re.match(r"[\w-]+", one)[0].lower() for one in required}
    tools = {re.match(r"[\w-]+", one)[0] for one in text("requirements.txt").splitlines()
             if re.match(r"\w", one)}  # fmt: skip
    assert tools == {"nbval", "nbclient", "pytest", "pytest-xdist", "hypothesis", "playwright",
                     "ruff", "pyyaml", "nbgrader", "sphinx", "myst-parser", "sphinx-book-theme",
                     "sphinx-revealjs", "django-static-mathjax"}  # fmt: skip
    assert not tools & names
    imported = set()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                found = re.findall(r"^ *(?:import|from) (\w+)", "".join(cell["source"]), re.M)
                imported |= set(found)
    known, ours = {"sklearn": "scikit-learn"}, {"tinytf", "tinytf_course"}
    others = {known.get(name, name) for name in imported - sys.stdlib_module_names - ours}
    assert others <= names, f"{others - names}: imported by a chapter, not among the course's needs"


def test_the_first_command_is_the_binder_s_and_the_container_s_too():
    for place in ("README.md", ".devcontainer/devcontainer.json", ".binder/requirements.txt"):
        assert ".[course]" in text(place), place
    container = json.loads(text(".devcontainer/devcontainer.json"))
    assert "tinytf_course start" in container["postCreateCommand"]
    assert "tinytf_course start" in text(".binder/postBuild")
    assert text(".binder/runtime.txt").strip() == "python-3.12"


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load(text("CITATION.cff"))
    version = tinytf.__version__
    dynamic = tomllib.loads(text("pyproject.toml"))["tool"]["setuptools"]["dynamic"]
    assert dynamic["version"] == {"attr": "tinytf.__version__"}
    assert citation["version"] == version
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= citation.keys()
    assert f"## {version}\n" in text(".github/RELEASES.md")
    assert f"git tag v{version}`" in CONTRIBUTING


def test_each_issue_form_asks_for_what_is_needed():
    for name in ("erratum", "unclear", "machine"):
        form = yaml.safe_load(text(f".github/ISSUE_TEMPLATE/{name}.yml"))
        assert {"name", "description", "body"} <= form.keys()
        ids = [part["id"] for part in form["body"]]
        assert len(ids) == len(set(ids)) >= 3
        assert any(part.get("validations", {}).get("required") for part in form["body"])


def test_the_commands_of_the_contributing_page_exist():
    named = set(re.findall(r"-m tinytf_course (\w+)", CONTRIBUTING + README))
    run = [sys.executable, "-m", "tinytf_course", "--help"]
    shown = subprocess.run(run, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert named >= {"build", "start", "exercises", "attack"}
    assert not [name for name in named if not re.search(rf"\b{name}\b", shown)]


def test_every_link_of_the_pages_leads_somewhere():
    pages = [f".github/{name}.md" for name in ("CONTRIBUTING", "GUIDE", "PACKAGE", "RELEASES")]
    for page in ("README.md", *pages):
        for target in re.findall(r"\]\(([^)\s]+)\)", text(page)):
            target, _, heading = target.partition("#")
            if target.startswith("http"):
                continue
            path = (ROOT / page).parent / target if target else ROOT / page
            assert path.exists(), f"{page}: {target}"
            if heading:
                headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.M)
                assert heading in [h.lower().replace(" ", "-") for h in headings], heading


def test_the_readme_s_pictures_are_small_and_described():
    pictures = dict(re.findall(r"!\[([^\]]+)\]\(([^)]+)\)", README))
    assert list(pictures.values()) == [".github/explorer.png", ".github/course-map.svg"]
    for said, path in pictures.items():
        assert len(said) > 100
        assert (ROOT / path).stat().st_size < 150_000
    assert Image.open(ROOT / ".github/explorer.png").width >= 1000


def test_what_the_hooks_run_is_installed_with_the_tests():
    hooks = yaml.safe_load(text(".pre-commit-config.yaml"))["repos"][0]["hooks"]
    modules = {re.search(r"-m (\w+)", hook["entry"])[1] for hook in hooks}
    assert modules == {"ruff", "pytest", "tinytf_course"}
