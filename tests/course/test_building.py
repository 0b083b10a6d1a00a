"""Build mode: stubs in place of definitions, the package's until the reader's passes."""

import json
import os
from pathlib import Path

import nbformat
import pytest
import torch
from nbclient import NotebookClient

from tinytf.feedforward import FeedForward
from tinytf.llama import LlamaConfig
from tinytf.training import denoising
from tinytf_course import building, stubs
from tinytf_course.__main__ import main
from tinytf_course.building import built, mode
from tinytf_course.graduate import outcome
from tinytf_course.stubs import build_copy

FOLDER = Path(__file__).parents[2] / "notebooks"
QUICK = ("14",)  # the others: TINYTF_MODE=build
CHAPTERS = sorted(path.name.split("_")[0] for path in FOLDER.glob("*.ipynb"))


def chapter(number):
    (path,) = FOLDER.glob(f"{number}_*.ipynb")
    return json.loads(path.read_text(encoding="utf-8"))


def run(notebook):
    fresh = nbformat.reads(json.dumps(notebook), as_version=4)
    place = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(fresh, timeout=600, resources=place).execute()
    outputs = [out for cell in fresh.cells if cell.cell_type == "code" for out in cell.outputs]
    return [out["metadata"]["built"] for out in outputs if "built" in out.get("metadata", {})]


@pytest.mark.parametrize("solved", [False, True], ids=["stubs", "solved"])
@pytest.mark.parametrize("number", CHAPTERS if os.environ.get("TINYTF_MODE") == "build" else QUICK)
def test_a_chapter_runs_from_top_to_bottom_in_build_mode(number, solved):
    seen = run(build_copy(chapter(number), solved))
    assert {one["status"] for one in seen} <= {"passed" if solved else "not yet"}
    assert len(seen) == sum(map(len, stubs._definition_cells(chapter(number)["cells"]).values()))


def notebook(*sources):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    return nbformat.from_dict(nbformat.v4.new_notebook(cells=cells))


PAGE = (
    "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
    "from tinytf_course import graduate",
    "def gelu(x):\n    return x",
    "import math\n\n\ndef gelu(x):\n    return x * (1 + torch.erf(x / math.sqrt(2))) / 2",
    "@torch.no_grad()\ndef other():\n    return 1",
    'graduate(gelu, "tinytf.feedforward")',
)


def test_a_config_that_only_checks_itself_can_stand_in():
    made = building.stand_in(LlamaConfig, {"PRESETS": {"mine": {"d_model": 7}}})
    assert made.preset("mine").d_model == 7  # which the package's own would refuse


def test_what_passes_is_used_and_graduates(capsys):
    source = PAGE[2].replace("erf(x / math.sqrt(2))", "special.erf(x * 0.5**0.5)")
    names = {}
    exec(f"{PAGE[0]}\n{source}", names)
    mine = built(names["gelu"], "tinytf.feedforward")
    assert mine is names["gelu"]
    assert outcome(mine).passed
    names["graduate"](mine, "tinytf.feedforward")
    said = capsys.readouterr().out
    assert "`gelu` is yours: all 5 tests hold" in said
    assert "`gelu` graduates: yours passes all 5 tests" in said


def test_what_fails_does_not_stand(capsys):
    class OneMap(FeedForward):
        def forward(self, x):
            return self.w_2(self.w_1(x))

    OneMap.__name__ = "FeedForward"
    stands = built(OneMap, "tinytf.feedforward")
    assert stands is not OneMap
    assert not issubclass(stands, OneMap)
    said = capsys.readouterr().out
    assert "the package's stands in" in said
    assert "when it reads two sentences" in said


def test_an_error_is_told_with_its_case(capsys):
    def gelu(x):
        return x.nothing

    built(gelu, "tinytf.feedforward")
    said = capsys.readouterr().out
    assert "when numbers are read, `return x.nothing` raises AttributeError" in said


def test_what_torch_has_not_implemented_is_no_stub(capsys):
    def infill_spans(ids, mask_id, generator, share=0.3, mean_length=3.0):
        torch.poisson(torch.tensor(mean_length))  # not for whole numbers
        return denoising.infill_spans(ids, mask_id, generator, share, mean_length)

    built(infill_spans, "tinytf.training.denoising")
    said = capsys.readouterr().out
    assert "still to be written" not in said
    assert "not implemented for 'Long'" in said


def test_a_stub_is_stood_in_for_among_the_notebooks_own_names(capsys):
    names = {}
    exec(
        "import torch\nfrom torch.nn import functional as F\n"
        "def attention_weights(q, k, mask=None):\n    return 'the reader\\'s'\n"
        "def explicit_attention(q, k, v, mask=None, dropout=0.0):\n    raise NotImplementedError\n"
        "from tinytf_course import built\n"
        'stands = built(explicit_attention, "tinytf.attention")\n',
        names,
    )
    said = capsys.readouterr().out
    assert "still to be written; until then the package's stands in" in said
    assert "It will be tested when one query mixes two values; when there are sentences" in said
    with pytest.raises(TypeError, match="str"):  # it calls the reader's weights
        names["stands"](1, 2, 3)


@pytest.mark.parametrize(("said", "meant"), [(None, "read"), ("", "read"), ("build", "build")])
def test_the_mode_is_read_from_the_environment(monkeypatch, said, meant):
    monkeypatch.delenv("TINYTF_MODE", raising=False)
    if said is not None:
        monkeypatch.setenv("TINYTF_MODE", said)
    assert mode() == meant


def test_another_mode_is_refused(monkeypatch):
    monkeypatch.setenv("TINYTF_MODE", "solve")
    with pytest.raises(ValueError, match="'solve' is not one of read, build"):
        mode()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "notebooks").mkdir()
    text = json.dumps(notebook(*PAGE))
    (tmp_path / "notebooks" / "07_it.ipynb").write_text(text)
    return tmp_path


def copied(folder, *options):
    places = ["--notebooks", str(folder / "notebooks"), "--to", str(folder / "mine")]
    return main(["start", "--no-open", *options, *places])


@pytest.mark.parametrize(("mode", "stubs"), [("read", 0), ("build", 1)])
def test_a_copy_is_made_to_read_or_to_build(mode, stubs, folder, capsys):
    assert copied(folder, "--mode", mode) == 0
    text = (folder / "mine" / "07_it.ipynb").read_text()
    assert text.count("raise NotImplementedError") == stubs
    assert "1 chapters copied, 0 were there" in capsys.readouterr().out


def test_the_environment_chooses_the_mode_of_copies(folder, monkeypatch, capsys):
    monkeypatch.setenv("TINYTF_MODE", "build")
    assert copied(folder, "7") == 0
    assert "NotImplementedError" in (folder / "mine" / "07_it.ipynb").read_text()
    monkeypatch.setenv("TINYTF_MODE", "solve")
    assert copied(folder) == 1
    assert "'solve' is not one of read, build" in capsys.readouterr().err


def test_a_readers_copy_is_never_overwritten(folder, capsys):
    assert copied(folder) == 0
    mine = folder / "mine" / "07_it.ipynb"
    mine.write_text("what I wrote")
    assert copied(folder, "--mode", "build") == 0
    assert mine.read_text() == "what I wrote"
    assert "0 chapters copied, 1 were there" in capsys.readouterr().out


def test_a_copy_for_reading_is_not_taken_for_one_to_build(folder, monkeypatch, capsys):
    (folder / "notebooks" / "08_it.ipynb").write_text(json.dumps(notebook(*PAGE)))
    assert copied(folder, "7") == 0
    before = (folder / "mine" / "07_it.ipynb").read_text()
    assert copied(folder, "7", "--mode", "build") == 1
    said = "07 is a copy for reading; `reset 07 --mode build` makes it one for building"
    assert said in capsys.readouterr().err
    assert copied(folder, "--mode", "build") == 1  # before anything is copied
    assert [path.name for path in (folder / "mine").iterdir()] == ["07_it.ipynb"]
    assert (folder / "mine" / "07_it.ipynb").read_text() == before
    assert copied(folder, "8", "--mode", "build") == 0
    assert copied(folder, "7", "8", "--mode", "read") == 1
    assert "08 is a copy for building; `reset 08 --mode read`" in capsys.readouterr().err
    monkeypatch.setenv("TINYTF_MODE", "build")  # for copies that are made from here on
    assert copied(folder, "7") == 0


def test_unknown_options_go_on_to_jupyterlab_and_it_asks_nothing(folder, monkeypatch, capsys):
    calls = []
    monkeypatch.setattr("subprocess.call", lambda *a, **k: calls.append((a[0], k)) or 0)
    places = ["--notebooks", str(folder / "notebooks"), "--to", str(folder / "mine")]
    assert main(["start", "7", "--allow-root", "--port=8889", *places]) == 0
    (command, options), = calls  # fmt: skip
    assert command[1:3] == ["-m", "jupyterlab"]
    assert command[3:] == ["--allow-root", "--port=8889", str(folder / "mine" / "07_it.ipynb")]
    paths = options["env"]["JUPYTER_CONFIG_PATH"].split(os.pathsep)
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", paths[0])
    config = pytest.importorskip("jupyterlab_server.config").get_static_page_config(level="all")
    assert config["disabledExtensions"]["@jupyterlab/apputils-extension:announcements"] is True
    assert copied(folder, "--allow-root") == 2
    assert "--allow-root is JupyterLab's, and --no-open" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["progress", "--allow-root"])
    assert "unrecognized arguments: --allow-root" in capsys.readouterr().err


def test_a_chapter_that_is_not_there_is_named(folder, capsys):
    assert copied(folder, "08") == 1
    assert "no such chapter" in capsys.readouterr().err
    assert not (folder / "mine").exists()
