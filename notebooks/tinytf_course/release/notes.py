"""The teacher's edition: a page and a quiz sheet for each chapter, and the syllabi."""

from html import escape

from tinytf.support.files import write_atomically
from tinytf_course.release import teaching
from tinytf_course.release.facts import facts, problems
from tinytf_course.release.syllabus import rendered
from tinytf_course.release.teachers_page import index, page, sheet
from tinytf_course.release.teaching import FOLDER, NotesError, read

__all__ = ["edition", "html", "teachers_edition"]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 54em; margin: 2em auto; padding: 0 1em }
table { border-collapse: collapse; margin: 1em 0 } h2 { margin-top: 2em }
td, th { border: 1px solid #bbb; padding: 4px 8px; text-align: left; vertical-align: top }
blockquote { border-left: 4px solid #999; margin-left: 0; padding-left: 1em; font-style: italic }
code { font-size: 0.9em; white-space: nowrap } td:first-child { white-space: nowrap }
 @media print { body { font-size: 11pt; margin: 0 } }
"""


def teachers_edition(folder, notebooks):
    """Write the pages into a folder; return (how many chapters have notes, those without).

    Raises NotesError for notes that don't have the form, or name what the chapter has not, and
    ValueError where there are none.
    """
    written = teaching.written()
    if not written:
        raise ValueError("this edition has no teacher's notes")
    pages, without = edition(written, notebooks)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        write_atomically(folder / name, text.encode())
    return len(set(written) - without), sorted(without)


def edition(written, notebooks):
    """({name of a file: its text}, the chapters without notes or notebook).

    Raises NotesError for notes that don't have the form, or name what the chapter has not.
    """
    pages, chapters, found = {}, [], {each.chapter: each for each in notebooks}
    for number in [number for number in written if number in found]:
        notes, its = read(written[number]), facts(found[number])
        if wrong := problems(notes, its):
            raise NotesError(f"{written[number].name}: {'; '.join(wrong)}")
        file = f"{found[number].path.stem}.md"
        pages[file], pages[f"quiz_{file}"] = page(notes, its), sheet(notes, its)
        chapters.append((its, file))
    syllabi = (FOLDER / "syllabi.md").read_text(encoding="utf-8")
    pages["index.md"] = index(chapters, rendered(syllabi))
    return pages | html(pages), set(written) ^ set(found)


def html(pages):
    """The same pages as HTML, links and all; none where `mistune` is not installed."""
    try:
        import mistune  # JupyterLab brings it
    except ImportError:
        return {}
    to_html = mistune.create_markdown(plugins=["table"])
    made = {}
    for name, text in pages.items():
        title = escape(text.splitlines()[0].removeprefix("# "))
        head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        body = to_html(text).replace('.md">', '.html">')
        made[name.replace(".md", ".html")] = f"{head}<style>{_STYLE}</style>{body}</html>\n"
    return made
