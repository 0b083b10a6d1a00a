"""Saved pictures are small, and look as they did."""

import base64
import io

import numpy as np
from PIL import Image

from tinytf_course.pictures import SHADE, small


def png(pixels, mode="RGB"):
    out = io.BytesIO()
    Image.fromarray(np.asarray(pixels, dtype=np.uint8), mode).save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


def pixels(data, mode="RGB"):
    picture = Image.open(io.BytesIO(base64.b64decode(data)))
    return np.asarray(picture.convert(mode), dtype=int)


def drawing():
    """White paper, a bar of one of our colours, and a soft edge in many shades."""
    page = np.full((60, 400, 3), 255)
    page[10:30, :200] = (13, 108, 176)
    edge = np.linspace(0, 1, 400)[:, None]
    page[40:50] = (edge * (255, 250, 240) + (1 - edge) * (29, 39, 51)).round()
    return page


def test_a_drawing_is_smaller_with_its_flat_colours_as_they_were():
    before = drawing()
    after = small(png(before))
    assert len(after) < len(png(before))
    shown = pixels(after)
    assert (shown[:35] == before[:35]).all()
    assert 0 < abs(shown - before).max() <= SHADE
    assert small(after) == after
    assert small(png(before)) == after


def test_what_needs_more_colours_or_shines_through_stays():
    ramp = np.arange(256)
    photograph = np.stack([*np.meshgrid(ramp, ramp), np.full((256, 256), 7)], axis=-1)
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3))
    clear = np.concatenate([drawing(), np.full((60, 400, 1), 200)], axis=-1)
    for data in (png(noise), png(clear, "RGBA")):
        assert small(data) == data
    assert abs(pixels(small(png(photograph))) - photograph).max() <= SHADE
