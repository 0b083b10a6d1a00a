"""What README.md and two pages beside it say of the course: written between comments, not by hand.

In README.md, `<!-- chapters: ... -->` to `<!-- end of chapters -->` holds the table of chapters,
and `hours` how long they take, as do the words of its picture. In .github/GUIDE.md, `online`
says how to run them without installing anything; in .github/PACKAGE.md, `parts` maps what each
chapter builds to its file.
.github/course-map.svg, README's picture of the course, is written as a whole.
"""

import re
from pathlib import Path

from tinytf_course.house import map_markdown
from tinytf_course.online import badges, without_installing
from tinytf_course.outline import CHAPTERS, in_hours


def chapter_table(folder):
    """The README's table of the chapters that lie in `folder`, in Markdown."""
    elsewhere = " open in |" if badges("x") else ""
    lines = [f"| | question | core | electives |{elsewhere}", "|---" * (4 + bool(elsewhere)) + "|"]
    for chapter, path in _written(folder):
        link = f"[{chapter.number} {chapter.title}]({Path(folder).name}/{path.name})"
        core, beside = (f"{n} min" if n else "" for n in (chapter.core, chapter.beside))
        elsewhere = badges(path.name)
        elsewhere = f" {elsewhere} |" if elsewhere else ""
        lines.append(f"| {link} | {chapter.question} | {core} | {beside} |{elsewhere}")
    return "\n".join(lines)


def hours(folder):
    """The README's sentence on how long the chapters that lie in `folder` take, in Markdown."""
    core, beside = in_hours(chapter for chapter, _ in _written(folder))
    return (
        f"**It takes** about {core} hours for the core, exercises included. About {beside} hours "
        "of electives stand beside it, each with its minutes; nothing in the core needs one."
    )


def _written(folder):
    for chapter in CHAPTERS:
        for path in sorted(Path(folder).glob(f"{chapter.number}_*.ipynb")):
            yield chapter, path


def course_picture():
    """The course map with everything filled in, light or dark as the reader's screen is."""
    from tinytf_course.drawings.coursemap import BY_NUMBER, draw_map  # which loads matplotlib

    return draw_map(done=BY_NUMBER, dark="@media (prefers-color-scheme:dark)")


_MAP = ".github/course-map.svg"
PAGES = {
    "README.md": {"hours": hours, "chapters": chapter_table},
    ".github/GUIDE.md": {"online": without_installing},
    ".github/PACKAGE.md": {"parts": map_markdown},
    _MAP: course_picture,
}


def refreshed(text, folder, page="README.md"):
    """The page's text with its written regions as they follow from the notebooks in `folder`.

    Raises ValueError if a region's comments are not there, each once.
    """
    if callable(PAGES[page]):
        return PAGES[page]()
    up = "../" * page.count("/")
    for name, write in PAGES[page].items():
        region = re.compile(rf"(<!-- {name}: [^\n]*-->\n).*?(<!-- end of {name} -->)", re.S)
        if len(region.findall(text)) != 1:
            raise ValueError(f"{page} needs one <!-- {name}: … --> with <!-- end of {name} -->")
        written = re.sub(r"\]\((?!\w+:)", f"]({up}", write(folder))
        text = region.sub(lambda found, new=written: f"{found[1]}{new}\n{found[2]}", text)
    from tinytf_course.drawings.coursemap import spoken_map  # which loads matplotlib

    return re.sub(rf"!\[[^]]*\]\({_MAP}\)", f"![{spoken_map()}]({_MAP})", text)


def readme_of(folder):
    """The README beside a folder of notebooks, or None."""
    path = Path(folder).resolve().parent / "README.md"
    return path if path.is_file() else None
