"""What the configs of all models check when they are made."""

__all__ = ["check_dropout", "check_heads", "check_sizes"]


def check_sizes(config: object, *names: str) -> None:
    """Raise ValueError naming the first of these attributes that is below 1."""
    for name in names:
        if getattr(config, name) < 1:
            raise ValueError(f"{name} must be at least 1, got {getattr(config, name)}")


def check_heads(d_model: int, num_heads: int) -> None:
    """Raise ValueError if the heads can't share d_model equally."""
    if d_model % num_heads != 0:
        raise ValueError(f"d_model={d_model} is not divisible by num_heads={num_heads}")


def check_dropout(dropout: float) -> None:
    """Raise ValueError if dropout is no probability below 1."""
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must lie in [0, 1), got {dropout}")
