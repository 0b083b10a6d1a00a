"""JavaScript that other people wrote: copied out of the packages that carry it, never fetched."""

import shutil
from importlib.util import find_spec
from pathlib import Path

_INSTALL = 'pip install -e ".[site]"'
_FOUND_IN = {  # package that is installed -> folder inside of the module
    "mathjax": ("django-static-mathjax", "mathjax", "static/mathjax"),
    "reveal.js": ("sphinx-revealjs", "sphinx_revealjs", "_static/revealjs"),
}
_NEEDED = {
    "mathjax": ("es5/tex-svg.js", "LICENSE"),
    "reveal.js": (
        "dist/reveal.js", "dist/reveal.css", "dist/reset.css", "plugin/notes/notes.js",
        "plugin/notes/speaker-view.html", "LICENSE",
    ),
}  # fmt: skip


class MissingPackage(RuntimeError):
    """A package of the extra `site` is not installed; the message says what to run."""


def require(*modules):
    """Raise MissingPackage unless all these modules can be imported."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise MissingPackage(f"not installed: {', '.join(missing)}; run {_INSTALL}")


def copy_library(name, folder):
    """Copy what we use of "mathjax" or "reveal.js", and its licence, into `folder`.

    Raises MissingPackage if the package that carries it is not installed, or carries it elsewhere.
    """
    package, module, inside = _FOUND_IN[name]
    spec = find_spec(module)
    if spec is None:
        raise MissingPackage(f"{name} is in the package {package}; run {_INSTALL}")
    for file in _NEEDED[name]:
        source, target = Path(spec.origin).parent / inside / file, Path(folder) / file
        if not source.is_file():
            raise MissingPackage(f"{package} is installed, but has no {inside}/{file}")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
