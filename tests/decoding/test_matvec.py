"""Matrices laid out for decoding: the same linear maps, and what they refuse."""

import re

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support import bounded

from tinytf.decoding.matvec import Columns, Half, _bags

fbgemm = "fbgemm" in torch.backends.quantized.supported_engines
needs_fbgemm = pytest.mark.skipif(not fbgemm, reason="torch without FBGEMM")
shapes = st.tuples(st.integers(1, 5), st.integers(1, 40), st.integers(1, 70), st.booleans())


def drawn(shape, dtype, device="cpu"):
    rows, inputs, outputs, has_bias = shape
    torch.manual_seed(sum(shape))
    x, weight, bias, y = (
        torch.randn(*s, dtype=dtype, device=device)
        for s in [(rows, inputs), (outputs, inputs), (outputs,), (rows, outputs)]
    )
    return x, weight, bias if has_bias else None, y


@bounded
@given(shapes)
def test_columns_are_a_linear_map(exact, shape):
    x, weight, bias, y = drawn(shape, torch.float64, exact)
    ours, expected = Columns(weight, bias), F.linear(x, weight, bias)
    torch.testing.assert_close(ours(x), expected, atol=1e-12, rtol=1e-12)
    total = y.clone()
    ours.add_to(total, x)
    torch.testing.assert_close(total, y + expected, atol=1e-12, rtol=1e-12)


@needs_fbgemm
@bounded
@given(shapes)
def test_a_large_matrix_read_by_rows_is_the_same_map(shape):
    x, weight, bias, y = drawn(shape, torch.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tinytf.decoding.matvec._WORTH", 1)
        patch.setattr("tinytf.decoding.matvec._WIDE", 1)
        ours = Columns(weight, bias)
    assert ours._by_rows
    expected = F.linear(x.double(), weight.double(), None if bias is None else bias.double())
    for given_x in (x, x.t().contiguous().t(), x.repeat(1, 2)[:, : x.size(1)]):
        torch.testing.assert_close(ours(given_x).double(), expected, atol=1e-5, rtol=1e-5)
    total = y.clone()
    ours.add_to(total, x)
    torch.testing.assert_close(total.double(), y + expected, atol=1e-5, rtol=1e-5)


@needs_fbgemm
def test_rows_are_read_for_few_vectors_of_a_large_matrix_in_float32(monkeypatch):
    read = []
    plain = torch.embedding_bag
    monkeypatch.setattr(
        torch, "embedding_bag", lambda *a, **k: read.append(len(a[2]) // 4) or plain(*a, **k)
    )
    weight = torch.randn(1024, 512)
    for rows in (1, 4, 5, 64):
        Columns(weight)(torch.randn(rows, 512))
    assert read == [1, 4]
    Columns(weight).add_to(torch.randn(2, 1024), torch.randn(2, 512))
    assert read == [1, 4, 2]
    Columns(weight[:-1])(torch.randn(1, 512))
    Columns(torch.randn(255, 4096))(torch.randn(1, 4096))
    Columns(weight.double())(torch.randn(1, 512, dtype=torch.float64))
    monkeypatch.setattr("tinytf.decoding.matvec._has_fbgemm", lambda: False)
    Columns(weight)(torch.randn(1, 512))
    assert read == [1, 4, 2]


@pytest.mark.parametrize("outputs", [1024, 1000, 70])  # large by rows, filled up, small
@pytest.mark.parametrize("bias", [True, False])
def test_what_does_not_fit_is_refused_and_nothing_is_changed(outputs, bias):
    ours = Columns(torch.randn(outputs, 1024), torch.randn(outputs) if bias else None)
    y = torch.zeros(3, outputs)
    for x in (
        torch.randn(1, 1023),
        torch.randn(2, 512),
        torch.randn(1, 1, 1024),
        torch.randn(9, 5),
    ):
        with pytest.raises(RuntimeError, match=r"be a matrix|shapes cannot be multiplied"):
            ours(x)
        with pytest.raises(RuntimeError, match=r"be a matrix|shapes cannot be multiplied"):
            ours.add_to(y, x)
    with pytest.raises(RuntimeError):
        ours.add_to(y, torch.randn(1, 1024))  # one row is not added to three
    assert not y.any()
    assert ours(torch.randn(0, 1024)).shape == (0, outputs)
    three = ours(torch.randn(3, 1024))
    assert three.shape == (3, outputs)
    assert three.is_contiguous()


def test_where_tensors_are_made_and_how_does_not_matter():
    """The rows that are added up are remembered: they must be right for every later call."""
    weight, x = torch.randn(1024, 1024), torch.randn(2, 1024)
    ours = Columns(weight)
    _bags.cache_clear()
    with torch.device("meta"), torch.inference_mode():
        ours(x)
    torch.testing.assert_close(ours(x), x @ weight.t(), atol=1e-3, rtol=0)
    x.requires_grad_()
    ours(x).sum().backward()
    torch.testing.assert_close(x.grad[0], weight.sum(0), atol=1e-3, rtol=0)


@needs_fbgemm
@bounded
@given(shapes)
def test_half_is_the_linear_map_of_the_rounded_matrix(shape):
    x, weight, bias, y = drawn(shape, torch.float32)
    ours = Half(weight, bias)
    bias = None if bias is None else bias.double()
    expected = F.linear(x.double(), weight.half().double(), bias)
    torch.testing.assert_close(ours(x).double(), expected, atol=1e-5, rtol=1e-5)
    total = y.clone()
    ours.add_to(total, x)
    torch.testing.assert_close(total.double(), y + expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_columns_copy_only_where_it_is_faster(dtype):
    weight = torch.randn(5, 3, dtype=dtype)
    matrix = Columns(weight).matrix
    assert matrix.shape == (3, 5)
    assert (matrix.data_ptr() == weight.data_ptr()) is (dtype == torch.bfloat16)
    assert matrix.is_contiguous() is (dtype != torch.bfloat16)


@pytest.mark.parametrize("lay_out", [Columns, pytest.param(Half, marks=needs_fbgemm)])
def test_weights_are_left_alone(lay_out):
    x, weight, bias, _ = drawn((2, 3, 4, True), torch.float32)
    before = [t.clone() for t in (x, weight, bias)]
    lay_out(weight, bias)(x)
    assert all(torch.equal(a, b) for a, b in zip((x, weight, bias), before, strict=True))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_half_needs_float32(dtype):
    with pytest.raises(ValueError, match=f"made from float32 on the CPU, got {dtype} on cpu"):
        Half(torch.zeros(3, 4, dtype=dtype))


@pytest.mark.parametrize("value", [65521.0, -1e6, float("inf"), float("nan")])
def test_half_refuses_what_float16_cannot_hold(value):
    weight = torch.zeros(3, 4)
    weight[1, 2] = value
    with pytest.raises(ValueError, match=re.escape(f"size {abs(value):g} is beyond float16's")):
        Half(weight)


def test_half_says_what_torch_lacks(monkeypatch):
    monkeypatch.setattr("tinytf.decoding.matvec._has_fbgemm", lambda: False)
    with pytest.raises(RuntimeError, match="need a torch with FBGEMM; this one has none"):
        Half(torch.zeros(3, 4))
