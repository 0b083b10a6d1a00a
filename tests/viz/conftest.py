"""The fixtures of figures."""

from figure_fixtures import closed, no_cjk, shown  # noqa: F401
