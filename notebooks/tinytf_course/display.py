"""One line on the screen: HTML in a notebook, plain text everywhere else."""

import html
import re

# Both colours keep a contrast above 4:1 on white and on JupyterLab's dark background.
GOOD, BAD, QUIET = "#22874a", "#c9463d", "#7a7a7a"


class Line:
    """Text with an HTML form. Shown once by `show`."""

    def __init__(self, text, markup):
        self.text, self.markup = text, markup

    def __repr__(self):
        return self.text

    def _repr_html_(self):
        return self.markup


def show(text, markup, metadata=None):
    """Display `markup` in a notebook and `text` elsewhere; `metadata` goes to the saved output."""
    shell = _shell()
    if shell is None:
        print(text)
    else:
        from IPython.display import display

        display(Line(text, markup), metadata=metadata)


def live():
    """Whether a person can answer: a kernel whose front end accepts input.

    Unattended runs (nbclient, nbconvert, nbval) tell the kernel that they do not.
    """
    return bool(getattr(getattr(_shell(), "kernel", None), "_allow_stdin", False))


def inline(text):
    """Escape HTML; `backticks` become code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def block(colour, markup):
    """A line with a coloured rule on its left. Takes its text colour from the theme."""
    return (
        f'<div style="border-left: 3px solid {colour}; padding: 1px 0 1px 10px; '
        f'margin: 3px 0; line-height: 1.5">{markup}</div>'
    )


def sign(colour, symbol):
    """A coloured mark."""
    return f'<b style="color: {colour}">{symbol}</b>'


def tag(text):
    """An id, set back."""
    return f"<code>{html.escape(text)}</code>"


def _shell():
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    return get_ipython()
