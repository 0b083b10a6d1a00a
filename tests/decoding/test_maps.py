"""Linear maps for decoding: those of the matrix as it is kept, and what they refuse."""

import re

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support import bounded

from tinytf.decoding.maps import BFloat16, Columns, Half, Int8

fbgemm = "fbgemm" in torch.backends.quantized.supported_engines
needs_fbgemm = pytest.mark.skipif(not fbgemm, reason="torch without FBGEMM")
half = pytest.param(Half, marks=needs_fbgemm)
shapes = st.tuples(st.integers(1, 20), st.integers(1, 40), st.integers(1, 70), st.booleans())


def drawn(shape, dtype=torch.float32, device="cpu"):
    rows, inputs, outputs, has_bias = shape
    torch.manual_seed(sum(shape))
    x, weight, bias = (
        torch.randn(*s, dtype=dtype, device=device)
        for s in [(rows, inputs), (outputs, inputs), (outputs,)]
    )
    return x, weight, bias if has_bias else None


def widened(ours):
    """The matrix that an `Int8` holds, (outputs, inputs)."""
    x = torch.eye(ours._inputs)
    return (ours(x) - (0 if ours.bias is None else ours.bias)).t()


@bounded
@given(shapes)
def test_columns_are_a_linear_map(exact, shape):
    x, weight, bias = drawn(shape, torch.float64, exact)
    expected = F.linear(x, weight, bias)
    torch.testing.assert_close(Columns(weight, bias)(x), expected, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_columns_copy_only_where_it_is_faster(dtype):
    weight = torch.randn(5, 3, dtype=dtype)
    matrix = Columns(weight).matrix
    assert matrix.shape == (3, 5)
    assert (matrix.data_ptr() == weight.data_ptr()) is (dtype == torch.bfloat16)
    assert matrix.is_contiguous() is (dtype != torch.bfloat16)


@needs_fbgemm
@bounded
@given(shapes)
def test_half_is_the_linear_map_of_the_rounded_matrix(shape):
    x, weight, bias = drawn(shape)
    expected = F.linear(x.double(), weight.half().double(), None if bias is None else bias.double())
    torch.testing.assert_close(Half(weight, bias)(x).double(), expected, atol=1e-5, rtol=1e-5)


@bounded
@given(shapes)
def test_bfloat16_is_the_linear_map_of_the_rounded_matrix(shape):
    x, weight, bias = drawn(shape)
    expected = F.linear(x.bfloat16().double(), weight.bfloat16().double()).bfloat16().float()
    expected = expected if bias is None else expected + bias
    torch.testing.assert_close(BFloat16(weight, bias)(x), expected, atol=1e-2, rtol=2**-7)


@bounded
@given(shapes)
def test_int8_is_a_linear_map_for_few_vectors_and_for_many(shape):
    x, weight, bias = drawn(shape)
    ours = Int8(weight, bias)
    matrix = widened(ours).double()
    expected = F.linear(x.double(), matrix, None if bias is None else bias.double())
    for several in (x, torch.cat([x] * 20)):
        got = ours(several)
        assert got.dtype == torch.float32
        assert got.is_contiguous()
        torch.testing.assert_close(got[: len(x)].double(), expected, atol=2e-5, rtol=1e-5)


@bounded
@given(shapes)
def test_no_weight_is_further_off_than_half_a_step(shape):
    _, weight, _ = drawn(shape)
    weight[:, 0] *= 1000  # an input with large weights spoils no other
    off = (widened(Int8(weight)) - weight).abs()
    reach = torch.maximum(weight.amax(0), torch.zeros(())) - weight.amin(0).clamp(max=0)
    assert (off <= reach / 510 * 1.01 + 1e-6).all()


def test_what_they_take():
    weight = torch.randn(5000, 64)
    assert Columns(weight).nbytes == weight.nbytes
    assert BFloat16(weight).nbytes == weight.nbytes / 2
    if fbgemm:
        assert Half(weight).nbytes == weight.nbytes / 2
    assert Int8(weight).nbytes == pytest.approx(weight.nbytes / 4, rel=0.02)
    assert len(Int8(torch.randn(50257, 1))._table) == 13  # of at most 4,096 outputs each
    assert len(Int8(torch.randn(8, 1))._table) == 4


@pytest.mark.parametrize("lay_out", [Columns, half, BFloat16, Int8])
@pytest.mark.parametrize("bias", [True, False])
def test_weights_are_left_alone_and_widths_that_differ_refused(lay_out, bias):
    x, weight, bias = drawn((2, 8, 5, bias))
    kept = [t for t in (x, weight, bias) if t is not None]
    before = [t.clone() for t in kept]
    ours = lay_out(weight, bias)
    for _ in range(2):
        y = ours(x)
        y.zero_()  # what is returned is the caller's
    assert all(torch.equal(a, b) for a, b in zip(kept, before, strict=True))
    assert ours(x).any()
    assert ours(torch.randn(0, 8)).shape == (0, 5)
    assert ours(torch.randn(40, 8)).shape == (40, 5)
    for wrong in (torch.randn(1, 7), torch.randn(4, 4)):
        with pytest.raises(RuntimeError):
            ours(wrong)


@pytest.mark.parametrize("lay_out", [half, BFloat16, Int8])
def test_other_numbers_than_float32_are_refused(lay_out):
    with pytest.raises(ValueError, match=r"made from float32.*, got torch\.float64 on cpu"):
        lay_out(torch.zeros(3, 4, dtype=torch.float64))
    if lay_out is not BFloat16:
        with pytest.raises(ValueError, match=r"on the CPU, got torch\.float32 on meta"):
            lay_out(torch.zeros(3, 4, device="meta"))


@pytest.mark.parametrize("value", [65521.0, -1e6, float("inf"), float("nan")])
def test_what_has_no_place_is_refused(value):
    weight = torch.zeros(3, 4)
    weight[1, 2] = value
    if fbgemm:
        with pytest.raises(ValueError, match=re.escape(f"size {abs(value):g} is beyond float16's")):
            Half(weight)
    if not weight.isfinite().all():
        with pytest.raises(ValueError, match="no place in int8's range"):
            Int8(weight)


def test_half_says_what_torch_lacks(monkeypatch):
    monkeypatch.setattr("tinytf.decoding.maps._FBGEMM", False)
    with pytest.raises(RuntimeError, match="need a torch with FBGEMM; this one has none"):
        Half(torch.zeros(3, 4))
