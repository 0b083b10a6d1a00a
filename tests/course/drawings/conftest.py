"""The fixtures of figures."""

from figure_fixtures import figures, no_cjk, shown  # noqa: F401
