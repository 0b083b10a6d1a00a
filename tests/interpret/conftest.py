"""The fixtures of what heads do."""

from head_fixtures import batch, model, pairs, shipped, twins  # noqa: F401
