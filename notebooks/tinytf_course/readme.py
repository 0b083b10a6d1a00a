"""The parts of README.md that follow from the course: written between comments, never by hand.

`<!-- chapters: ... -->` to `<!-- end of chapters -->` holds the table of chapters, `<!-- parts:
... -->` to `<!-- end of parts -->` the map of what each builds and where it stands; `hours` says
how long they take, `online` how to run them without installing anything.
"""

import re
from pathlib import Path

from tinytf_course.house import map_markdown
from tinytf_course.online import without_installing
from tinytf_course.outline import chapter_table, hours

_REGIONS = {
    "hours": hours,
    "chapters": chapter_table,
    "online": without_installing,
    "parts": map_markdown,
}


def refreshed(text, folder):
    """The README's text with its written regions as they follow from the notebooks in `folder`.

    Raises ValueError if a region's comments are not there, each once.
    """
    for name, write in _REGIONS.items():
        region = re.compile(rf"(<!-- {name}: [^\n]*-->\n).*?(<!-- end of {name} -->)", re.S)
        if len(region.findall(text)) != 1:
            raise ValueError(f"README.md needs one <!-- {name}: … --> with <!-- end of {name} -->")
        written = write(folder)
        text = region.sub(lambda found, new=written: f"{found[1]}{new}\n{found[2]}", text)
    return text


def readme_of(folder):
    """The README beside a folder of notebooks, or None."""
    path = Path(folder).resolve().parent / "README.md"
    return path if path.is_file() else None
