"""`build`: run chapters and save what they show, so that an unchanged one gives an empty diff."""

import contextlib
import sys

from tinytf.support.files import CheckpointError, write_atomically
from tinytf_course.build import (
    BuildError,
    changes,
    committed,
    dump,
    load,
    mark_varying,
    read,
    settle,
)
from tinytf_course.build import (
    run as execute,
)
from tinytf_course.commands import add_folder, two_digits
from tinytf_course.commands.readme import refresh
from tinytf_course.notebooks import NotebookError, notebooks
from tinytf_course.progress import progress
from tinytf_course.readme import readme_of
from tinytf_course.saved import read_text


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser("build", description=__doc__)
    parser.add_argument("chapters", nargs="*", type=two_digits, metavar="NN", help="such as 03")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; 1 if something would change"
    )
    parser.add_argument(
        "--force", action="store_true", help="take every output of this run, noise and all"
    )
    parser.add_argument(
        "--ids-only", action="store_true", help="run nothing; give ids, tidy, write the heads"
    )
    parser.add_argument(
        "--mark-varying", action="store_true",
        help="run twice, and tag `varies` the cells that show something else the second time",
    )  # fmt: skip
    add_folder(parser)
    return parser


def run(options):
    """Build each chapter, then the README; 1 if one failed, or would change under --check."""
    chosen = [
        notebook.path
        for notebook in notebooks(options.notebooks)
        if not options.chapters or notebook.chapter in options.chapters
    ]
    missing = set(options.chapters) - {path.name.split("_")[0] for path in chosen}
    for chapter in sorted(missing):
        print(f"{chapter}: no such chapter in {options.notebooks}", file=sys.stderr)
    status = int(bool(missing) or not chosen)
    for path in chosen:
        try:
            status |= _build(path, options)
        except NotebookError as error:
            print(f"left out: {error}", file=sys.stderr)
            status |= bool(options.chapters)  # it was asked for
        except (BuildError, CheckpointError) as error:
            print(f"{path.name}: {error}\n  the file is as it was", file=sys.stderr)
            status = 1
        except KeyboardInterrupt:
            print(f"\n{path.name}: interrupted; the file is as it was", file=sys.stderr)
            return 130
    readme = readme_of(options.notebooks)
    return (status | refresh(readme, options)) if readme else status


def _build(path, options):
    """Build one chapter and say what changed; the exit status."""
    source, text, last = load(path), read_text(path), committed(path)
    saved = read(text, path.name)
    earlier = [saved]
    with contextlib.suppress(NotebookError):  # what was committed may be no notebook
        earlier = [read(last, path.name), saved] if last else [saved]
    built = source
    if not options.ids_only:
        built = _run(source, path)
        if options.mark_varying:
            for name in mark_varying(built, built, _run(source, path)):
                print(f"{path.name}: {name} varies")
        if not options.force:
            settle(built, *earlier)
    new = dump(built)
    found = changes(built, earlier[0])
    differs = new != text
    if differs and not options.check:
        write_atomically(path, new.encode(errors="backslashreplace"))
    verb = "unchanged" if not differs else "would change" if options.check else "written"
    print(f"{path.name}: {verb}")
    for name, kinds in found.items():
        print(f"  {name}: {', '.join(kinds)}")
    if new != last and not found and (differs or last):
        print("  ids, metadata or the cells' numbers")
    return int(differs and options.check)


def _run(source, path):
    """Run a chapter with a bar that moves by cells."""
    with progress(total=len(source.cells), desc=path.name.split("_")[0], unit="cell") as bar:
        built = execute(source, path.parent, lambda number: bar.update(number - bar.n))
        bar.update(len(source.cells) - bar.n)
    return built
