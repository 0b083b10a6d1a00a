"""Help on the command line says what an option is when it is left out."""

import argparse

__all__ = ["ShowDefaults"]


class ShowDefaults(argparse.ArgumentDefaultsHelpFormatter):
    """Add `(default: …)` to an option's help, where it has one that the help does not give yet."""

    def _get_help_string(self, action: argparse.Action) -> str:
        words, default = action.help or "", action.default
        if default is None or default is False or default in ("", [], ()) or "default" in words:
            return words
        return super()._get_help_string(action) or ""
