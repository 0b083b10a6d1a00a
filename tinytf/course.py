"""Where the course went: it is `tinytf_course`, beside its chapters.

Commands by the old name still work. A notebook that was copied before stops with what to do.
"""

import sys

__all__ = ["Moved"]


class Moved(ImportError):
    """An import by the name that the course had before."""

    def _render_traceback_(self):  # so a notebook shows the sentence alone
        return [str(self)]


def main():
    """Run a command of the course; returns the exit status."""
    try:
        from tinytf_course.__main__ import main as course
    except ModuleNotFoundError as missing:
        if missing.name != "tinytf_course":
            raise
        sys.exit('the course is not installed: run pip install -e ".[course]" in its folder')
    print("`python -m tinytf.course` is `python -m tinytf_course` now", file=sys.stderr)
    return course()


if __name__ == "__main__":
    sys.exit(main())

raise Moved(
    "The course is called tinytf_course now, and this notebook was copied before: run "
    '`pip install -e ".[course]"` and `python -m tinytf_course start --update` in the course\'s '
    "folder, then open it again."
)
