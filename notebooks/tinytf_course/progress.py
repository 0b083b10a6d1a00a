"""A tqdm bar that is tidy in a live notebook, in a saved one and in a terminal."""

import html
import io
import sys

from tqdm import tqdm

from tinytf_course.display import _shell, live

__all__ = ["progress"]


class progress(tqdm):
    """tqdm's own bar, shown in one notebook output that ends as one short line of text.

    Takes tqdm's arguments and has its methods (`update`, `set_postfix_str`, `close`). A live
    notebook redraws the output in place; an unattended run, such as a test's, keeps only the last
    line; a terminal shows tqdm as usual.
    """

    def __init__(self, iterable=None, desc=None, total=None, **options):
        self._in_notebook = _shell() is not None
        self._handle = None
        if self._in_notebook:
            options = {"file": io.StringIO(), "mininterval": 0.25, **options}
        elif not sys.stderr.isatty():
            options = {"file": sys.stderr, "mininterval": 30.0, **options}
        super().__init__(iterable, desc=desc, total=total, **options)

    def display(self, msg=None, pos=None):
        """Draw the bar where this session can see it."""
        if not self._in_notebook:
            return super().display(msg, pos)
        if not live():
            return True
        d = self.format_dict
        size = f'value="{d["n"]}" max="{d["total"]}"' if d["total"] else ""
        text = self.format_meter(**{**d, "ncols": 0, "bar_format": "{desc}: {n_fmt}/{total_fmt} "
                                    "[{elapsed}<{remaining}, {rate_fmt}{postfix}]"})  # fmt: skip
        self._put(
            {"text/plain": text, "text/html": f"<progress {size}></progress> {html.escape(text)}"}
        )
        return True

    def close(self):
        """End the bar, leaving one line that does not depend on the machine's speed."""
        if self.disable:
            return
        super().close()
        if self._in_notebook:
            self._put({"text/plain": self.summary()})

    def summary(self):
        """Say what was done, such as `training: 400 of 400, loss 0.12`."""
        count = f"{self.n:,}" + (f" of {self.total:,}" if self.total is not None else "")
        words = f", {self.postfix}" if self.postfix else ""
        return f"{self.desc}: {count}{words}" if self.desc else f"{count}{words}"

    def _put(self, bundle):
        from IPython.display import display

        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)
