"""Weights of fewer bits: the linear map of the rounded matrix, and what is refused."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support import bounded

from tinytf.apps.writer import Writer
from tinytf.decoding.fast import fast_decoder, weight_bytes
from tinytf.decoding.quantized import BFloat16, Int8
from tinytf_course.studies.sampling import human_texts

shapes = st.tuples(st.integers(1, 20), st.integers(1, 40), st.integers(1, 70), st.booleans())
fbgemm = "fbgemm" in torch.backends.quantized.supported_engines
BY_ROWS = [False, pytest.param(True, marks=pytest.mark.skipif(not fbgemm, reason="no FBGEMM"))]


def drawn(shape):
    rows, inputs, outputs, has_bias = shape
    torch.manual_seed(sum(shape))
    x, weight, bias, y = (
        torch.randn(*s) for s in [(rows, inputs), (outputs, inputs), (outputs,), (rows, outputs)]
    )
    return x, weight, bias if has_bias else None, y


def widened(ours):
    """The matrix that an `Int8` holds, (outputs, inputs)."""
    x = torch.eye(ours._inputs)
    return (ours(x) - (0 if ours.bias is None else ours.bias)).t()


@bounded
@given(shapes)
def test_int8_is_a_linear_map_for_few_vectors_and_for_many(shape):
    x, weight, bias, y = drawn(shape)
    ours = Int8(weight, bias)
    matrix = widened(ours).double()
    expected = F.linear(x.double(), matrix, None if bias is None else bias.double())
    for several in (x, torch.cat([x] * 20)):
        got = ours(several)
        assert got.dtype == torch.float32
        assert got.is_contiguous()
        torch.testing.assert_close(got[: len(x)].double(), expected, atol=2e-5, rtol=1e-5)
    total = y.clone()
    ours.add_to(total, x)
    torch.testing.assert_close(total.double(), y + expected, atol=2e-5, rtol=1e-5)


@bounded
@given(shapes)
def test_no_weight_is_further_off_than_half_a_step(shape):
    _, weight, _, _ = drawn(shape)
    weight[:, 0] *= 1000  # an input with large weights spoils no other
    off = (widened(Int8(weight)) - weight).abs()
    reach = torch.maximum(weight.amax(0), torch.zeros(())) - weight.amin(0).clamp(max=0)
    assert (off <= reach / 510 * 1.01 + 1e-6).all()


def test_int8_takes_a_quarter_and_bfloat16_half():
    weight = torch.randn(5000, 64)
    assert Int8(weight).nbytes == pytest.approx(weight.nbytes / 4, rel=0.02)
    assert BFloat16(weight).nbytes == pytest.approx(weight.nbytes / 2, rel=0.02)
    assert len(Int8(torch.randn(50257, 1))._table) == 13  # of at most 4,096 outputs each


@pytest.mark.parametrize("by_rows", BY_ROWS)
def test_bfloat16_is_the_linear_map_of_the_rounded_matrix(by_rows, monkeypatch):
    if by_rows:
        monkeypatch.setattr("tinytf.decoding.matvec._WORTH", 1)
        monkeypatch.setattr("tinytf.decoding.matvec._WIDE", 1)
    for shape in ((1, 9, 70, True), (3, 40, 64, False), (7, 12, 5, True)):
        x, weight, bias, y = drawn(shape)
        ours = BFloat16(weight, bias)
        assert ours._map._by_rows is by_rows
        expected = F.linear(x.bfloat16().double(), weight.bfloat16().double()).bfloat16().float()
        expected = expected if bias is None else expected + bias
        torch.testing.assert_close(ours(x), expected, atol=1e-2, rtol=2**-7)
        total = y.clone()
        ours.add_to(total, x)
        torch.testing.assert_close(total, y + expected, atol=1e-2, rtol=2**-7)


@pytest.mark.parametrize("lay_out", [Int8, BFloat16])
def test_weights_are_left_alone_and_widths_that_differ_refused(lay_out):
    x, weight, bias, y = drawn((2, 8, 5, True))
    before = [t.clone() for t in (x, weight, bias, y)]
    ours = lay_out(weight, bias)
    ours(x)
    for wrong in (torch.randn(1, 7), torch.randn(4, 4), torch.randn(1, 1, 8)):
        with pytest.raises(RuntimeError, match=r"cannot be multiplied|be a matrix"):
            ours(wrong)
        with pytest.raises(RuntimeError, match=r"cannot be multiplied|be a matrix"):
            ours.add_to(y, wrong)
    assert all(torch.equal(a, b) for a, b in zip((x, weight, bias, y), before, strict=True))
    assert ours(torch.randn(0, 8)).shape == (0, 5)


def test_what_has_no_place_is_refused(monkeypatch):
    for lay_out in (Int8, BFloat16):
        with pytest.raises(ValueError, match=r"made from float32.*, got torch\.float64"):
            lay_out(torch.zeros(3, 4, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"on the CPU, got torch\.float32 on meta"):
        Int8(torch.zeros(3, 4, device="meta"))
    for value in (float("inf"), float("nan")):
        weight = torch.zeros(3, 4)
        weight[1, 2] = value
        with pytest.raises(ValueError, match="no place in int8's range"):
            Int8(weight)
    monkeypatch.setattr("tinytf.decoding.quantized._SUMS", "no_such_kernel")
    with pytest.raises(RuntimeError, match=r"torch .* has no sums of rows in int8"):
        Int8(torch.zeros(3, 4))


# The largest difference of a logit (they deviate by 3.6), and the least share of equal tokens.
NEAR = {"float16": (2e-3, 0.999), "bfloat16": (0.25, 0.98), "int8": (0.25, 0.98)}


@pytest.mark.parametrize("rows", [4, 5])  # read by rows, and multiplied
@pytest.mark.parametrize("weights", NEAR)
@pytest.mark.skipif(not fbgemm, reason="torch without FBGEMM")
def test_the_shipped_writer_hardly_changes_its_mind(weights, rows):
    """On texts it never read, of which each next token is asked for by itself."""
    writer = Writer.load(device="cpu")
    ids, model = human_texts(writer, 0, rows)[:, :96], writer.model
    twin, plain = fast_decoder(model, weights), fast_decoder(model)
    cache = twin.decoder.new_cache()
    with torch.no_grad():
        expected = model(ids)
        scores = torch.cat([twin(part, cache) for part in ids.split(1, dim=1)], dim=1)
    limit, share = NEAR[weights]
    assert 0 < (scores - expected).abs().max() < limit
    same = (scores.argmax(-1) == expected.argmax(-1)).double().mean()
    assert same >= share
    part = {"float16": 0.5, "bfloat16": 0.5, "int8": 0.27}[weights]
    assert weight_bytes(twin) == pytest.approx(part * weight_bytes(plain), rel=0.02)
