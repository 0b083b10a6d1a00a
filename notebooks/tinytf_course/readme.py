"""What README.md and two pages beside it say of the course: written between comments, not by hand.

In README.md, `<!-- chapters: ... -->` to `<!-- end of chapters -->` holds the table of chapters,
and `hours` how long they take. In .github/GUIDE.md, `online` says how to run them without
installing anything; in .github/PACKAGE.md, `parts` maps what each chapter builds to its file.
"""

import re
from pathlib import Path

from tinytf_course.house import map_markdown
from tinytf_course.online import without_installing
from tinytf_course.outline import chapter_table, hours

PAGES = {
    "README.md": {"hours": hours, "chapters": chapter_table},
    ".github/GUIDE.md": {"online": without_installing},
    ".github/PACKAGE.md": {"parts": map_markdown},
}


def refreshed(text, folder, page="README.md"):
    """The page's text with its written regions as they follow from the notebooks in `folder`.

    Raises ValueError if a region's comments are not there, each once.
    """
    up = "../" * page.count("/")
    for name, write in PAGES[page].items():
        region = re.compile(rf"(<!-- {name}: [^\n]*-->\n).*?(<!-- end of {name} -->)", re.S)
        if len(region.findall(text)) != 1:
            raise ValueError(f"{page} needs one <!-- {name}: … --> with <!-- end of {name} -->")
        written = re.sub(r"\]\((?!\w+:)", f"]({up}", write(folder))
        text = region.sub(lambda found, new=written: f"{found[1]}{new}\n{found[2]}", text)
    return text


def readme_of(folder):
    """The README beside a folder of notebooks, or None."""
    path = Path(folder).resolve().parent / "README.md"
    return path if path.is_file() else None
