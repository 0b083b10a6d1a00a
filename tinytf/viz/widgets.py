"""Move a figure by hand: controls where a kernel runs, and always a still in the saved notebook."""

import base64
import html
import io

import matplotlib.pyplot as plt

from tinytf.viz.spoken import spoken
from tinytf.viz.style import legible


class Explored:
    """What `explore` returns: the controls, and `update(**values)`, which they call."""

    def __init__(self, draw, controls, handle=None):
        self.draw, self.controls, self.handle = draw, controls, handle
        self.picture = self.about = None

    def update(self, **values):
        """Draw with the controls' values, `values` taking precedence, and show the new picture."""
        arguments = {name: control.value for name, control in self.controls.items()} | values
        self.picture, self.about = _picture(self.draw, arguments)
        if self.handle is not None:
            self.handle.update(self.picture, raw=True, metadata=self.about)
        return self.picture

    def fade(self):
        """Show the last picture faintly: it is not what the controls say now."""
        if self.handle is not None:
            picture = self.picture["image/png"]
            faint = f'<img src="data:image/png;base64,{picture}" alt="out of date" '
            html = f'{faint}style="opacity: 0.2">'
            self.handle.update({"text/html": html, "text/plain": "out of date"}, raw=True)

    def _ipython_display_(self):
        """Nothing: `explore` has displayed it, and a cell may end with the call."""


def explore(draw, **controls):
    """Call `draw` with a value for each control and show its figure; moving a control draws again.

    controls: what ipywidgets' `interact` takes (a tuple is a slider, a list a choice, a bool a
    box, a number or text its own field) or a widget. `draw` returns a Figure or Axes, or leaves
    the current figure. The first drawing is an ordinary figure in the saved notebook, there with
    no kernel and no widgets; an exception in it is an exception of the cell. Later ones replace it.
    """
    import ipywidgets
    from IPython.display import display

    if not controls:
        raise ValueError("explore needs at least one control, such as head=(0, 3)")
    made = {name: _control(ipywidgets, name, value) for name, value in controls.items()}
    explored = Explored(draw, made)
    first = explored.update()  # before anything is displayed: what fails, fails the cell
    message = ipywidgets.HTML()
    box = ipywidgets.VBox([ipywidgets.HBox(list(made.values()), layout=_wrap(ipywidgets)), message])
    ranges = ", ".join(f"{name} = {control.value}" for name, control in made.items())
    display({**_bundle(box), "text/plain": f"{ranges} (run this cell to move them)"}, raw=True)
    explored.handle = display(first, raw=True, metadata=explored.about, display_id=True)

    def moved(_):
        try:
            explored.update()
            message.value = ""
        except Exception as error:  # shown where the learner looks; a callback's traceback is lost
            text = html.escape(f"{type(error).__name__}: {error}")
            message.value = f'<b style="color:#c2410c">{text}</b>'
            explored.fade()

    for control in made.values():
        control.observe(moved, names="value")
    return explored


def _control(ipywidgets, name, value):
    if isinstance(value, ipywidgets.ValueWidget):
        control = value
    else:
        control = ipywidgets.interactive.widget_from_abbrev(value)
    if control is None:
        raise ValueError(
            f"{name}={value!r} does not make a control; give a tuple, a list or a bool"
        )
    control.description = control.description or name.replace("_", " ")
    control.style.description_width = "initial"
    if hasattr(control, "continuous_update"):
        control.continuous_update = False  # one picture for a move, not one for each pixel of it
    return control


def _wrap(ipywidgets):
    return ipywidgets.Layout(flex_flow="row wrap")


def _bundle(widget):
    bundle = widget._repr_mimebundle_()
    return bundle[0] if isinstance(bundle, tuple) else bundle


def _picture(draw, arguments):
    """The figure `draw` leaves, as PNG, and what is said of it.

    It is closed, so that no front end shows it a second time.
    """
    before = set(plt.get_fignums())
    try:
        figure = _figure(draw(**arguments), before)
        buffer = io.BytesIO()
        legible(figure).savefig(buffer, format="png", bbox_inches="tight")
        said = spoken(figure)
    finally:
        for number in set(plt.get_fignums()) - before:
            plt.close(number)
    text = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    picture = base64.b64encode(buffer.getvalue()).decode()
    return {"image/png": picture, "text/plain": f"figure: {text}"}, {"image/png": {"alt": said}}


def _figure(result, before):
    if hasattr(result, "savefig"):
        return result
    first = next(iter(result.flat)) if hasattr(result, "flat") else result
    first = first[0] if isinstance(first, list | tuple) and first else first
    if getattr(first, "figure", None) is not None:
        return first.figure
    if set(plt.get_fignums()) - before:
        return plt.gcf()
    raise TypeError(f"draw must return a Figure or Axes or leave a figure open, got {result!r}")
