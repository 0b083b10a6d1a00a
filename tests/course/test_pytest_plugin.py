"""Chapters run under nbval, on the device asked for, and leave tidy outputs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tinytf_course import pytest_plugin

ROOT = Path(__file__).parents[2]


# notebooks: the kernel, nbval, and the checks on a chapter's form

CELLS = [
    "from tinytf_course import check, claim, graduate, predict, progress\nimport os, torch",
    'predict("03-P1", "Which axis sums to 1?", ["keys", "queries"])',
    'claim("05-1", "rows of `softmax` sum to 1", torch.ones(3).softmax(0).sum(), "~=", 1)',
    'predict.answer("03-P1", "keys", because="so it is.")',
    'for step in (bar := progress(range(40), "training")):\n    bar.set_postfix_str("loss 0")',
    'def my_rate(step, lr, warmup, steps, fall): ...\ncheck("15.1", my_rate)',
    "class Plain:\n    size: int = 3\nfrom tinytf_course.graduate import definition\n"
    'print(definition(Plain))  # NBVAL_CHECK_OUTPUT\nassert "size = 3" in definition(Plain)',
    "from ipywidgets import interact\ninteract(lambda t: None, t=(0, 3));",
    'print(os.environ.get("TINYTF_DEVICE"), os.environ.get("OMP_NUM_THREADS"))',
]


@pytest.fixture(scope="module")
def executed():
    import nbclient
    import nbformat

    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    saved = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(saved, timeout=120, kernel_name="python3").execute()
    return saved


def test_saved_outputs_are_tidy(executed):
    for cell in executed.cells:
        assert len(cell.outputs) <= 1
        assert all(output.get("name") != "stderr" for output in cell.outputs)
    shown = [cell.outputs[0] if cell.outputs else None for cell in executed.cells]
    assert shown[1].data["text/plain"].startswith("? 03-P1")
    assert "application/vnd.jupyter.widget-view+json" not in shown[1].data
    assert shown[2].metadata["claim"]["id"] == "05-1"
    assert "<code>softmax</code>" in shown[2].data["text/html"]
    assert shown[4].data == {"text/plain": "training: 40 of 40, loss 0"}
    assert "not yet" in shown[5].data["text/plain"]


def test_a_live_bar_and_live_buttons_leave_one_output_each():
    import nbclient
    import nbformat

    class WithFrontEnd(nbclient.NotebookClient):
        async def async_start_new_kernel_client(self):
            started = await super().async_start_new_kernel_client()
            self.kc.allow_stdin = True
            return started

    slow = "import time\nfor _ in progress(range(6), 'training'):\n    time.sleep(0.1)"
    cells = [nbformat.v4.new_code_cell(cell) for cell in (CELLS[0], slow, CELLS[1])]
    saved = nbformat.v4.new_notebook(cells=cells)
    WithFrontEnd(saved, timeout=120, kernel_name="python3").execute()
    (bar,), (buttons,) = saved.cells[1].outputs, saved.cells[2].outputs
    assert bar.data == {"text/plain": "training: 6 of 6"}
    assert "application/vnd.jupyter.widget-view+json" in buttons.data
    assert "<li>queries</li>" in buttons.data["text/html"]


def test_nbval_runs_chapters_on_the_device_and_fails_on_a_false_claim(executed, tmp_path):
    compared = next(place for place, cell in enumerate(CELLS) if "NBVAL_CHECK_OUTPUT" in cell)
    for name, claimed in (("03_true", 1), ("04_false", 2)):
        saved = json.loads(json.dumps(executed))
        saved["cells"] = [saved["cells"][place] for place in (0, 2, compared)]
        saved["cells"][1]["source"] = CELLS[2].replace('"~=", 1', f'"~=", {claimed}')
        for fact in ('os.environ["TINYTF_DEVICE"] == "cpu"', "gc.get_threshold()[0] == 20_000"):
            source = f"import gc, os; assert {fact}"
            saved["cells"].append(cell(source))
        (tmp_path / f"{name}.ipynb").write_text(json.dumps(saved))
    options = (
        "-p tinytf_course.pytest_plugin --nbval-lax --nbval-current-env "
        "--nbval-cell-timeout 300 -n 1 --dist loadscope"
    )
    run = run_pytest(tmp_path, *options.split(), "--device", "cpu")
    assert run.returncode == 1, run.stdout + run.stderr
    assert f"1 failed, {2 * len(saved['cells']) - 1} passed" in run.stdout
    assert "FAILED 04_false.ipynb::Cell 1" in run.stdout
    assert "ClaimError: ✗ 05-1" in run.stdout


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_an_absent_device_is_an_error(pytestconfig, monkeypatch):
    monkeypatch.setattr(pytestconfig.option, "device", "cuda")
    with pytest.raises(pytest.UsageError, match="--device cuda: this machine has no cuda device"):
        pytest_plugin.pytest_configure(pytestconfig)


def run_pytest(folder, *options):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "."]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "notebooks")]),
    }
    environment = {k: v for k, v in environment.items() if not k.startswith("PYTEST_")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def cell(source, *outputs, kind="code"):
    made = {"cell_type": kind, "metadata": {}, "source": source}
    return made | {"execution_count": 0, "outputs": list(outputs)} if kind == "code" else made
