"""The saved form of a picture: at most 256 colours, which makes it a quarter of its size.

What a figure draws are flat colours and the steps between them at the edges of letters and lines.
With 256 colours no channel of a pixel moves by more than SHADE of 255, which no eye sees.
"""

import base64
import io

import numpy as np

COLOURS, SHADE = 256, 16


def small(data):
    """A PNG picture in base64 with at most 256 colours; as it is where that is no gain.

    What is small already stays, and so does a picture that needs more colours, a photograph say.
    """
    from PIL import Image

    raw = base64.b64decode(data)
    picture = Image.open(io.BytesIO(raw))
    if picture.mode == "P":
        return data
    plain = picture.convert("RGBA")
    if plain.getextrema()[3] != (255, 255):  # partly transparent
        return data
    plain = np.asarray(plain.convert("RGB"))
    fewer = _fewer(plain)
    out = io.BytesIO()
    fewer.save(out, "PNG", optimize=True)
    apart = abs(np.asarray(fewer.convert("RGB"), dtype=int) - plain).max()
    if apart > SHADE or len(out.getvalue()) >= len(raw):
        return data
    return base64.b64encode(out.getvalue()).decode("ascii")


def _fewer(plain):
    """The picture with a palette; each of its colours is the commonest of those that it is for."""
    from PIL import Image

    picture = Image.fromarray(plain)
    fewer = picture.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    places = np.asarray(fewer, dtype=np.int64)
    packed = plain.astype(np.int64) @ [1 << 16, 1 << 8, 1]
    kinds, counts = np.unique(places << 24 | packed, return_counts=True)
    palette = np.zeros(COLOURS, dtype=np.int64)
    for kind in kinds[np.argsort(counts, kind="stable")]:  # the commonest last
        palette[kind >> 24] = kind & 0xFFFFFF
    shades = np.stack([palette >> 16, palette >> 8 & 255, palette & 255], axis=1)
    fewer.putpalette(shades[: places.max() + 1].astype(np.uint8).tobytes())
    return fewer
