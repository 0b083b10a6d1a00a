"""The course's first cells in a real browser: JupyterLab opens and runs them, the explorer answers.

That chapters run whole is nbval's to say; here it is what a page does with them.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tinytf_course.commands.start import lab_environment

ROOT = Path(__file__).parents[2]
CHAPTER = "00_start_here.ipynb"
LAST = "first-look-explorer"  # the cell with the explorer
ALSO = ("predict-00-a", "exercise-00-2-answer", "look")  # buttons, a grader's words, sliders
TOKEN = "tinytf"
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

pytestmark = pytest.mark.browser


def opening(path):
    """Leave what a page has to show, without outputs: whatever it shows was computed here."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    end = next(place for place, cell in enumerate(notebook["cells"]) if cell["id"] == LAST)
    first, rest = notebook["cells"][: end + 1], notebook["cells"][end + 1 :]
    notebook["cells"] = [*first, *(cell for cell in rest if cell["id"] in ALSO)]
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)
    path.write_text(json.dumps(notebook), encoding="utf-8")


@pytest.fixture
def lab(tmp_path):
    """A JupyterLab of its own on a copy of the notebooks, and its address."""
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    opening(tmp_path / "notebooks" / CHAPTER)
    folders = {
        "JUPYTER_CONFIG_DIR": tmp_path / "config",
        "JUPYTER_RUNTIME_DIR": tmp_path / "runtime",
        "JUPYTERLAB_SETTINGS_DIR": tmp_path / "settings",
        "JUPYTERLAB_WORKSPACES_DIR": tmp_path / "workspaces",
        "IPYTHONDIR": tmp_path / "ipython",
    }
    env = lab_environment() | {name: str(path) for name, path in folders.items()}
    env["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT), str(ROOT / "notebooks"), os.environ.get("PYTHONPATH", "")]
    )
    log = tmp_path / "lab.log"
    with log.open("w") as out:
        server = subprocess.Popen(
            [
                sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
                "--ip=127.0.0.1", "--port=0", f"--IdentityProvider.token={TOKEN}",
                f"--ServerApp.root_dir={tmp_path / 'notebooks'}",
                "--LabApp.extension_manager=readonly", "--LabApp.expose_app_in_browser=True",
            ],
            env=env, stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        for _ in range(240):
            found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text())
            if found or server.poll() is not None:
                break
            time.sleep(0.25)
        assert found, f"JupyterLab did not start:\n{log.read_text()[-2000:]}"
        yield found.group(0)
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine's PATH")
def test_the_first_cells_run_and_the_explorer_answers_to_mouse_and_keyboard(lab):
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    outside, errors = [], []
    with api.sync_playwright() as p:
        browser = p.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--no-first-run"],
        )
        page = browser.new_page(viewport={"width": 1300, "height": 1400})
        page.on("pageerror", lambda error: errors.append(str(error)))

        def only_here(route):
            if route.request.url.startswith((lab, "data:", "blob:")):
                route.continue_()
            else:
                outside.append(route.request.url)
                route.abort()

        page.route("**/*", only_here)
        page.goto(f"{lab}/lab/tree/{CHAPTER}?token={TOKEN}&reset")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=90_000)
        # the toolbar says idle before the kernel is attached: ask the application itself
        page.evaluate(
            """async () => {
                const session = window.jupyterapp.shell.currentWidget.sessionContext;
                await session.ready;
                await session.session.kernel.info;
            }"""
        )
        started = time.monotonic()
        page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
        page.wait_for_function(
            """() => {
                const panel = window.jupyterapp.shell.currentWidget;
                const codes = [...panel.content.model.cells].filter(c => c.type === 'code');
                const outputs = codes.flatMap(c => c.sharedModel.outputs);
                return outputs.some(o => o.output_type === 'error')
                    || codes.every(c => c.executionCount !== null)
                    && panel.sessionContext.session.kernel.status === 'idle';
            }""",
            timeout=120_000,
        )
        assert time.monotonic() - started < 120
        failures = page.evaluate(
            """() => [...window.jupyterapp.shell.currentWidget.content.model.cells]
                .filter(c => c.type === 'code').flatMap(c => c.sharedModel.outputs)
                .filter(o => o.output_type === 'error').map(o => `${o.ename}: ${o.evalue}`)"""
        )
        assert not failures, failures[0]
        assert page.get_by_text("official Jupyter news").count() == 0
        explorer = page.locator(".tinytf-explorer").first
        explorer.scroll_into_view_if_needed()
        page.wait_for_selector(".tinytf-explorer[data-ready='1']", timeout=60_000)

        def state(name):
            return explorer.get_attribute(f"data-{name}")

        def picture():
            return explorer.locator(".key-token").evaluate_all(
                "tokens => tokens.map(t => t.dataset.weight)"
            )

        before = picture()
        assert len(before) > 3
        assert sum(map(float, before)) == pytest.approx(1.0, abs=0.05)
        explorer.locator(".query-token").nth(2).hover()
        page.wait_for_timeout(200)
        assert state("query") == "2"
        hovered = picture()
        assert hovered != before
        explorer.locator(".query-token").nth(2).focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(200)
        assert state("query") == "3"
        assert picture() != hovered
        head = state("head")
        buttons = explorer.locator(".head-button:visible")
        other = next(
            i for i in range(buttons.count()) if buttons.nth(i).get_attribute("data-head") != head
        )
        buttons.nth(other).click()
        page.wait_for_timeout(200)
        assert state("head") != head
        sentence = state("sentence")
        explorer.locator(".sentence-select").select_option(index=1)
        page.wait_for_timeout(200)
        assert state("sentence") != sentence
        browser.close()
    assert not outside, f"the page asked for {outside[:3]}"
    assert not errors, errors[:3]
