"""Two results are compared, and the difference is named."""


# graduation


def here(n: int, eps: float = 1e-5) -> float:
    """Another docstring."""
    if n < 1:
        raise ValueError(f"n={n}")
    assert eps > 0
    check_nothing(n)
    scale: float = 2.0
    return scale * n + eps


def check_nothing(n):
    return n
