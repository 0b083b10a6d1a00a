"""Chapters away from home: opened in Colab, Kaggle or Binder, or alone in an empty folder.

Every chapter's set-up cell, folded behind its title, begins with a guard that does nothing where
tinytf is installed. Elsewhere it fetches tinytf from the repository and leaves torch as it is;
where that can't be, it says in one sentence what to do and stops. `python -m tinytf_course build`
writes the guard, and the badges, from what stands here.
"""

from urllib.parse import quote, urlencode

REPOSITORY = None  # "owner/name" on GitHub, once it is public; no badge is shown before
BRANCH = "main"
CELL = "setup"
MARK = "# What this chapter uses\n"  # begins what a chapter's author writes in that cell

_GUARD = """\
from importlib.util import find_spec

if find_spec("tinytf_course") is None:  # where it is installed there is nothing to do

    class Stop(Exception):
        def _render_traceback_(self):
            return [str(self)]

"""
_ASK = """\
    raise Stop(
        "tinytf is not installed here: get the course's folder, run the first command "
        "of its README there, and open this chapter from there."
    )
"""
_FETCH = """\
    import site
    import sys
    from subprocess import run

    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    source = "{source}"
    if run([*pip, "--no-deps", "--editable", source], capture_output=True).returncode:
        raise Stop(
            "tinytf is not installed here and could not be fetched: connect to the network "
            "and run this cell again, or install it as {page} says."
        )
    run([*pip, {others}], capture_output=True)
    for folder in site.getsitepackages():  # this kernel looks again at what is installed
        site.addsitedir(folder)
"""
# What chapters import that Colab and Kaggle may lack. None of them brings a torch of its own.
_OTHERS = ("safetensors", "tqdm", "regex", "tokenizers", "sacrebleu")


def page(repository=None):
    """The repository's address, or None while it has none."""
    name = repository or REPOSITORY
    return f"https://github.com/{name}" if name else None


def guard(repository=None):
    """The lines that make sure of tinytf, as every set-up cell begins."""
    steps, address = _ASK, page(repository)
    if address:
        source = f"git+{address}@{BRANCH}#egg=tinytf"
        others = ", ".join(f'"{name}"' for name in _OTHERS)
        steps = _FETCH.format(source=source, page=address, others=others)
    return f"{_GUARD}{steps}\n"


def own_lines(source):
    """What a chapter's author wrote in its set-up cell: its source without the guard."""
    return source.rpartition(MARK)[2]


def with_guard(notebook, repository=None):
    """Fold the set-up cell of a notebook (as nbformat reads it) and bring its guard up to date."""
    for cell in notebook.cells:
        if cell.id == CELL:
            cell.source = f"{guard(repository)}{MARK}{own_lines(cell.source)}"
            cell.metadata["jupyter"] = {"source_hidden": True}
    return notebook


def badges(file, repository=None):
    """Markdown that opens a chapter elsewhere; an empty text while there is no address."""
    name = repository or REPOSITORY
    if not name:
        return ""
    path = f"{name}/blob/{BRANCH}/notebooks/{file}"
    places = {
        "Colab": f"https://colab.research.google.com/github/{path}",
        "Kaggle": f"https://kaggle.com/kernels/welcome?src=https://github.com/{path}",
        "Binder": binder_link(file, repository),
    }
    return " · ".join(f"[{place}]({address})" for place, address in places.items())


def without_installing(folder=None, repository=None):
    """The README's sentences on running a chapter without installing anything, in Markdown."""
    address = page(repository)
    here = (
        "With VS Code and Docker, *Reopen in Container* runs the course as `.devcontainer/` says; "
        "the files in `.binder/` are for a Binder."
    )
    if not address:
        return here
    return (
        "Without installing anything: the links in the table of chapters open one in Colab, Kaggle "
        "or Binder, where its first cell fetches the package and leaves torch as it is; "
        f"[a codespace](https://codespaces.new/{_named(repository)}) has all of them. {here}"
    )


def with_badges(title, file, repository=None):
    """A title's text that ends with the chapter's badges, or without, while there are none."""
    links = badges(file, repository)
    plain = without_badges(title)
    return f"{plain}\n\nOpen in: {links}" if links else plain


def without_badges(title):
    """A text without the paragraph of badges that `with_badges` gave it."""
    return "\n\n".join(part for part in title.split("\n\n") if not part.startswith("Open in: "))


def binder_link(file, repository=None):
    """Where Binder opens a chapter. Raises ValueError while there is no repository."""
    return f"https://mybinder.org/v2/gh/{_named(repository)}/{BRANCH}?" + urlencode(
        {"urlpath": f"lab/tree/notebooks/{file}"}, quote_via=quote, safe=""
    )


def pull_link(hub, file, repository=None):
    """The nbgitpuller link that gives a class's JupyterHub the course and opens a chapter.

    Raises ValueError while there is no repository.
    """
    name = _named(repository)
    folder = name.split("/")[1]
    return f"{hub.rstrip('/')}/hub/user-redirect/git-pull?" + urlencode(
        {
            "repo": f"https://github.com/{name}",
            "branch": BRANCH,
            "urlpath": f"lab/tree/{folder}/notebooks/{file}",
        },
        quote_via=quote,
        safe="",
    )


def _named(repository):
    if not (repository or REPOSITORY):
        raise ValueError("no repository: set REPOSITORY in notebooks/tinytf_course/online.py")
    return repository or REPOSITORY
