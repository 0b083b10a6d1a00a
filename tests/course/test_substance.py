"""When two runs showed the same: rounding and durations apart, and nothing else."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from tinytf_course.substance import agree, same_cell, same_output, same_picture, same_text


@pytest.mark.parametrize(
    ("new", "old", "same"),
    [
        ("1.14", "1.15", True),  # the last digit, and within 1 %
        ("1.14", "1.16", False),
        ("0.1", "0.2", False),  # the last digit, and twice as much
        ("0.951", "0.957", False),
        ("0.61", "0.62", False),  # the last digit, and more than 1 %
        ("0.19783210", "0.19783199", True),
        ("2.3e-16", "2.1e-08", True),  # gaps of rounding
        ("0", "1.2e-7", True),
        ("0.001", "0.002", False),
        ("3.1e-4", "3.2e-4", False),
        ("1,024", "1,024", True),
        ("1,024", "1,025", False),
        ("100000", "100001", False),
        ("−0.50", "0.50", False),
    ],
)
def test_numbers_agree(new, old, same):
    assert agree(new, old) is same
    assert agree(old, new) is same
    assert same_text(f"loss {new} of it", f"loss {old} of it") is same


@pytest.mark.parametrize(
    ("new", "old", "same"),
    [
        ("took 0.87 ms, then 12 s", "took 2.31 ms, then 9 s", True),
        ("in 3 minutes", "in 4 minutes", True),
        ("12 s/step", "13 s/step", False),  # a rate is not a duration
        ("3 samples", "4 samples", False),
        ("<f at 0x7f12ab34cd56>", "<f at 0x7f99ab34cd00>", True),
        ('id="tinytf-e0b42035-0"', 'id="tinytf-397e4162-3"', True),
        ("6f9619ff-8b86-4d01-b42d-00cf4fc964ff", "0f9619ff-8b86-4d01-b42d-00cf4fc964ff", True),
        ("animal", "street", False),
        ("head 3.5x", "head 3.6x", False),
        ("[1., 2.]", "[1., 3.]", False),
        ("a 1.0", "a 1.0 2.0", False),
        ("nan", "0.5", False),
    ],
)  # fmt: skip
def test_texts(new, old, same):
    assert same_text(new, old) is same
    assert same_text(old, new) is same


def png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "png")
    return base64.b64encode(file.getvalue()).decode()


def test_pictures():
    pixels = np.full((20, 30, 3), 100)
    shifted, digit = pixels.copy(), pixels.copy()
    shifted[3, 4, 1] += 16
    digit[3, 4, 1] += 17
    assert same_picture(png(pixels), png(shifted))
    assert not same_picture(png(pixels), png(digit))
    assert not same_picture(png(pixels), png(pixels[:19]))


def shown(text, **metadata):
    return {"output_type": "display_data", "data": {"text/plain": text}, "metadata": metadata}


def test_outputs_are_compared_form_by_form():
    stream = {"output_type": "stream", "name": "stdout", "text": "1.14"}
    assert same_output(stream, dict(stream, text="1.15"))
    assert not same_output(stream, dict(stream, text="1.25"))
    assert not same_output(stream, dict(stream, name="stderr"))
    assert not same_output(shown("1.14"), stream)
    assert not same_output(shown("x"), shown("y"))
    both = {**shown("x"), "data": {"text/plain": "x", "image/png": png(np.zeros((2, 2, 3)))}}
    white = {**both, "data": {"text/plain": "x", "image/png": png(np.full((2, 2, 3), 255))}}
    assert not same_output(both, shown("x"))
    assert not same_output(both, white)
    claim = {"id": "03-1", "sentence": "s", "measured": "1.14 < 2"}
    assert same_output(shown("x", claim=claim), shown("x", claim=claim | {"measured": "1.15 < 2"}))
    assert not same_output(shown("x", claim=claim), shown("x", claim=claim | {"id": "03-2"}))
    result = {"output_type": "execute_result", "metadata": {}, "data": {}, "execution_count": 1}
    assert same_output(result, result | {"execution_count": 2})
    error = {"output_type": "error", "ename": "E", "evalue": "a", "traceback": ["line"]}
    assert same_output(error, error | {"traceback": ["other"]})
    assert not same_output(error, error | {"evalue": "b"})


def cell(source, *outputs, tags=()):
    return {"source": source, "outputs": list(outputs), "metadata": {"tags": list(tags)}}


def test_a_cell_that_varies_is_the_same_while_its_source_and_claims_are():
    fast, slow = shown("5,000 tokens a second"), shown("90 tokens a second")
    assert not same_cell(cell("x", fast), cell("x", slow))
    assert same_cell(cell("x", fast, tags=["varies"]), cell("x", slow))
    assert not same_cell(cell("y", fast, tags=["varies"]), cell("x", slow))
    assert not same_cell(cell("x", fast, slow, tags=["varies"]), cell("x", slow))
    claims = [shown("c", claim={"id": id, "sentence": "s", "measured": id}) for id in "ab"]
    assert not same_cell(cell("x", claims[0], tags=["varies"]), cell("x", claims[1]))
    assert not same_cell(cell("x", fast), cell("x", fast, slow))
