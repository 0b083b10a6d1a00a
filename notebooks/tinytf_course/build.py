"""Build a chapter: run it, and save what it shows, unchanged unless its substance changed."""

import asyncio
import atexit
import contextlib
import os
import re
import signal
import subprocess
from copy import deepcopy
from pathlib import Path

import nbformat

from tinytf_course.asked import with_exercises
from tinytf_course.cell_ids import give_ids
from tinytf_course.electives import marked
from tinytf_course.online import with_badges, with_guard
from tinytf_course.outline import CHAPTERS
from tinytf_course.places import PATHS
from tinytf_course.saved import NotebookError, read_text
from tinytf_course.substance import VARIES, claim_of, same_cell, same_output, same_value
from tinytf_course.tidy import WIDGETS, tidy

SECONDS = 600  # the most that one cell may take


class BuildError(RuntimeError):
    """A chapter that could not be run to its end; the message names the cell."""


def read(text, name="the notebook"):
    """A notebook from its JSON, tidy, every cell with a lasting id. NotebookError if it is none."""
    try:
        notebook = nbformat.reads(text, as_version=4)
        nbformat.validate(notebook)
    except Exception as error:  # nbformat raises what its readers and validators raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise NotebookError(f"{name} is not a notebook: {reason}") from error
    give_ids(notebook.cells)
    return tidy(notebook)


def load(path):
    """Read a notebook from a file, see `read`: head, exercises and guard as they have to be."""
    path = Path(path)
    notebook = read(read_text(path), path.name)
    number = path.name.split("_")[0]
    chapter = next((one for one in CHAPTERS if one.number == number and one.minutes), None)
    if chapter and notebook.cells:
        first = notebook.cells[0]
        try:
            first.source = with_badges(head(first.source, chapter), path.name)
            with_exercises(notebook.cells, number)
        except (ValueError, KeyError) as error:
            raise NotebookError(f"{path.name}: {error.args[0]}") from error
        marks = marked(notebook.cells, chapter)
        for cell in notebook.cells:
            cell.source = marks.get(cell.id, cell.source)
        with_guard(notebook)
    return notebook


def dump(notebook):
    """The text of a notebook's file."""
    return nbformat.writes(notebook) + "\n"


def committed(path):
    """The text of the file in git's last commit, or None where there is none."""
    path = Path(path)
    command = ["git", "show", f"HEAD:./{path.name}"]
    try:
        shown = subprocess.run(command, cwd=path.parent, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return shown.stdout.decode("utf-8", "replace")


def run(notebook, folder, note=lambda number: None):
    """A copy of the notebook with the outputs of a run in a fresh kernel, in `folder`.

    The kernel imports the package that runs this, on the CPU unless TINYTF_DEVICE says otherwise.
    `note` is called with the number of each cell as it starts. Raises BuildError naming the cell
    that fails; KeyboardInterrupt ends the kernel.
    """
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    notebook = deepcopy(notebook)
    here = {"cell": "the kernel's start", "interrupted": False}

    def interrupt():
        here["interrupted"] = True
        here["task"].cancel()

    def listen():
        """Have Ctrl-C and SIGTERM end the run; nbclient takes them for itself with each kernel."""
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C needs no help
                asyncio.get_running_loop().add_signal_handler(number, interrupt)

    def start(cell, cell_index):
        here["cell"] = f"cell {cell['id']}"
        note(cell_index)

    client = _client(
        listen, notebook, timeout=SECONDS, kernel_name="python3", record_timing=False,
        on_cell_start=start, resources={"metadata": {"path": str(folder)}},
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
    )  # fmt: skip
    paths = os.pathsep.join(filter(None, [*PATHS, os.environ.get("PYTHONPATH")]))
    environment = {"TINYTF_DEVICE": "cpu", **os.environ, "PYTHONPATH": paths}

    async def execute():
        here["task"] = asyncio.current_task()
        listen()
        await client.async_execute(env=environment, stderr=subprocess.DEVNULL)

    try:
        asyncio.run(execute())
    except (DeadKernelError, RuntimeError, asyncio.CancelledError) as error:
        if here["interrupted"]:
            raise KeyboardInterrupt from None
        raise BuildError(f"{here['cell']} ended the kernel: {error}") from error
    except CellExecutionError as error:
        raise BuildError(f"{here['cell']} failed: {_reason(error)}") from error
    except CellTimeoutError as error:
        raise BuildError(f"{here['cell']} took more than {SECONDS} seconds") from error
    return tidy(notebook)


def _client(listen, *arguments, **options):
    """A client that calls `listen` as its kernel starts, and ends one whose start is ended."""
    from jupyter_core.utils import run_sync
    from nbclient import NotebookClient

    class Client(NotebookClient):
        async def async_start_new_kernel(self, **options):
            listen()
            await self._whole(super().async_start_new_kernel(**options))

        async def async_start_new_kernel_client(self):
            return await self._whole(super().async_start_new_kernel_client())

        async def _whole(self, step):
            try:
                return await step
            except BaseException:
                await self._async_cleanup_kernel()
                atexit.unregister(self._cleanup_kernel)
                raise

        async def _async_cleanup_kernel(self):
            if self.km is not None:  # else it has ended already, and Python's end asks once more
                await super()._async_cleanup_kernel()

        _cleanup_kernel = run_sync(_async_cleanup_kernel)

    return Client(*arguments, **options)


def settle(fresh, *earlier):
    """Put into `fresh` the outputs of earlier versions that its own are the same as, in substance.

    An output is looked for in the cell of the same id and source, in the versions in turn: git's
    last commit before the file as it lies there, so that runs in an editor leave no trace. What a
    cell with the tag `varies` shows is taken from the first version alone.
    """
    versions = [{cell.id: cell for cell in version.cells} for version in earlier]
    for cell in fresh.cells:
        if cell.cell_type != "code":
            continue
        varies = VARIES in cell.metadata.get("tags", [])
        kept = [cells.get(cell.id) for cells in (versions[:1] if varies else versions)]
        kept = [
            old for old in kept if old and old.source == cell.source and old.get("execution_count")
        ]
        for old in kept:
            if same_cell(cell, old):
                cell.outputs = deepcopy(old.outputs)
                break
            if not varies and len(cell.outputs) == len(old.outputs):
                cell.outputs = [
                    deepcopy(before) if same_output(now, before) else now
                    for now, before in zip(cell.outputs, old.outputs)
                ]
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = cell.execution_count
    models = _models(fresh)
    for name, model in models.items():
        states = (_models(version).get(name) for version in earlier)
        models[name] = next((old for old in states if old and same_value(model, old)), model)
    return fresh


def changes(new, old):
    """What differs between two versions: {cell id: kinds}.

    The kinds are new, removed, moved, source, tags, claim, figure, text output, control.
    """
    before, after = ({cell.id: cell for cell in version.cells} for version in (old, new))
    found = {name: ["removed"] for name in before if name not in after}
    common = [name for name in before if name in after]
    moved = [name for name in after if name in before] != common
    for name, cell in after.items():
        kinds = ["new"] if name not in before else _differences(cell, before[name])
        if kinds:
            found[name] = kinds
    if moved:
        found["(order)"] = ["moved"]
    widgets = _models(new), _models(old)
    for name in widgets[0].keys() | widgets[1].keys():
        cell = name.rpartition("-")[0]
        same = widgets[0].get(name) == widgets[1].get(name)
        if not same and "control" not in found.setdefault(cell, []):
            found[cell].append("control")
    return found


def mark_varying(notebook, first, second):
    """Tag the cells that showed something else in a second run; return their ids."""
    runs = zip(notebook.cells, first.cells, second.cells)
    varying = [
        cell for cell, one, other in runs if cell.cell_type == "code" and not same_cell(one, other)
    ]
    for cell in varying:
        tags = cell.metadata.get("tags", [])
        cell.metadata["tags"] = sorted({*tags, VARIES})
    return [cell.id for cell in varying]


def _differences(new, old):
    kinds = []
    if (new.cell_type, new.source) != (old.cell_type, old.source):
        kinds.append("source")
    if new.metadata != old.metadata:
        kinds.append("tags")
    outputs = [_shown(cell) for cell in (new, old)]
    if outputs[0] != outputs[1]:
        parts = [part for shown in outputs for part in shown]
        differing = [part for part in parts if parts.count(part) == 1]
        kinds += sorted({kind for kind, _ in differing} or {"text output"})
    return kinds


def _shown(cell):
    """Each output as its kind and what it holds, without the number of its run."""
    shown = []
    for output in cell.get("outputs", []):
        picture = any(form.startswith("image/") for form in output.get("data", {}))
        kind = "claim" if claim_of(output) else "figure" if picture else "text output"
        shown.append((kind, {k: v for k, v in output.items() if k != "execution_count"}))
    return shown


def _models(notebook):
    return notebook.metadata.get("widgets", {}).get(WIDGETS, {}).get("state", {})


def head(text, chapter):
    """A notebook's first cell with the chapter's title, question and minutes, the rest as it is.

    The cell begins with the title as a heading and the question in bold; the paragraph that begins
    with "About" and minutes ends with what the reader needs. Raises ValueError if one is missing.
    """
    for form, fact in (
        (r"\A# .*$", f"# {chapter.number} {chapter.title}"),
        (r"(?<=\n\n)\*\*[^*]+\*\*(?=\n\n|\Z)", f"**{chapter.question}**"),
        (r"(?:(?<=^)|(?<=\. ))About \d+ minutes(?:.|\n(?!\n))*", chapter.time),
    ):
        text, count = re.subn(form, lambda _, fact=fact: fact, text, count=1, flags=re.M)
        if not count:
            raise ValueError(f"the first cell of chapter {chapter.number} does not say {fact!r}")
    return text


def _reason(error):
    """The error's own words: its name and message, without the frames."""
    name, message = getattr(error, "ename", ""), str(getattr(error, "evalue", error)).strip()
    return f"{name}: {message}" if name else message
