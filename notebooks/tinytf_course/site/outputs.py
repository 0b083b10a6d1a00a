"""What a cell showed, as HTML. Pictures become files, with their alt text and their size."""

import base64
import hashlib
import html
import re
import struct
from pathlib import Path

from tinytf_course import notebooks

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LINK = re.compile(r'(href="\d\d[a-z]?_\w+)\.ipynb"')


class Pictures:
    """Saves pictures in `folder`; pages find them at `address`."""

    def __init__(self, folder, address):
        self.folder, self.address = Path(folder), address

    def save(self, png):
        """Write a picture given in base64; return its address, width and height."""
        data = base64.b64decode(png)
        name = f"{hashlib.sha256(data).hexdigest()[:16]}.png"
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(data)
        return f"{self.address}/{name}", *struct.unpack(">II", data[16:24])


def to_html(output, pictures):
    """One output as HTML: the richest form that needs no kernel, or "" if nothing is to be seen."""
    data = output.get("data", {})
    if "image/png" in data:
        return _figure(output, pictures)
    if "image/svg+xml" in data:
        svg = base64.b64encode("".join(data["image/svg+xml"]).encode()).decode()
        alt = html.escape(notebooks.text(output))
        image = f'<img src="data:image/svg+xml;base64,{svg}" alt="{alt}">'
        return f'<div class="figure" tabindex="0">{image}</div>'
    if "text/html" in data:
        shown = _LINK.sub(r'\1.html"', "".join(data["text/html"]))
        return f'<div class="shown">{shown}</div>'
    if "application/vnd.jupyter.widget-view+json" in data:
        return f'<p class="widget">{html.escape(notebooks.text(output))}</p>'
    text = "\n".join(output.get("traceback", ())) or notebooks.text(output)
    text = _COLOURS.sub("", text).rstrip("\n")
    return f'<pre class="shown" tabindex="0">{html.escape(text)}</pre>' if text.strip() else ""


def is_still(shown):
    """Whether an output's HTML is the name or the picture of a panel that a kernel would move."""
    return shown.startswith(('<p class="widget">', '<div class="figure"'))


def _figure(output, pictures):
    address, width, height = pictures.save("".join(output["data"]["image/png"]))
    alt = output.get("metadata", {}).get("image/png", {}).get("alt", "")
    return (
        f'<div class="figure" tabindex="0" style="--width: {width}px"><img src="{address}" '
        f'width="{width}" height="{height}" alt="{html.escape(alt)}" loading="lazy"></div>'
    )
