"""A prediction, committed before the run and answered by it."""

import html

from tinytf_course.display import GOOD, QUIET, block, inline, live, show, sign, tag

_QUESTION = "#3a78c2"
_options = {}
_choices = {}


def predict(id, question, options):
    """Ask `question`. With a front end the options are buttons; elsewhere they are text.

    Never waits. The choice lives as long as the kernel; `predict.answer` shows it beside what
    was measured.
    """
    options = [str(option) for option in options]
    if len(options) < 2 or len(set(options)) < len(options):
        raise ValueError(f"{id}: options must be two or more different answers, got {options}")
    _options[id] = options
    if _choices.get(id) not in options:
        _choices.pop(id, None)
    text = "\n".join([f"? {id}  {question}", *(f"    - {option}" for option in options)])
    items = "".join(f"<li>{inline(option)}</li>" for option in options)
    markup = block(
        _QUESTION,
        f"{sign(_QUESTION, '?')} {tag(id)} <b>{inline(question)}</b>"
        f'<ul style="margin: 2px 0">{items}</ul>',
    )
    if live():
        _show_buttons(id, question, options, text, markup)
    else:
        show(text, markup)


def answer(id, answer, because=""):
    """Show what the reader chose for `id` beside the measured `answer`, one of the options."""
    if id not in _options:
        raise ValueError(f"{id}: no such prediction here; run the cell that asks it first")
    answer = str(answer)
    if answer not in _options[id]:
        raise ValueError(f"{id}: {answer!r} is not one of the options {_options[id]}")
    choice = _choices.get(id)
    right = choice == answer
    colour = GOOD if right else QUIET
    symbol = "✓" if right else "→"
    said = f"you said: {choice}; " if choice else ""
    tail = f". {because[0].upper()}{because[1:]}" if because else ""
    show(
        f"{symbol} {id}  {said}measured: {answer}{tail}",
        block(
            colour,
            f"{sign(colour, symbol)} {tag(id)} {inline(said)}measured: "
            f"<b>{inline(answer)}</b>{inline(tail)}",
        ),
    )


def choice(id):
    """What the reader chose for `id`, or None."""
    return _choices.get(id)


predict.answer = answer
predict.choice = choice


def _show_buttons(id, question, options, text, markup):
    """One output with three forms: buttons, and what remains where no kernel runs."""
    import ipywidgets as widgets
    from IPython.display import display

    buttons = [
        widgets.Button(description=option, tooltip=option, layout=widgets.Layout(width="auto"))
        for option in options
    ]

    def mark():
        for button in buttons:
            chosen = button.description == _choices.get(id)
            button.button_style = "primary" if chosen else ""
            button.icon = "check" if chosen else ""

    def choose(button):
        _choices[id] = button.description
        mark()

    for button in buttons:
        button.on_click(choose)
    mark()
    asked = widgets.HTML(f"<b>? {html.escape(id)} &nbsp; {inline(question)}</b>")
    row = widgets.HBox(buttons, layout=widgets.Layout(flex_flow="row wrap"))
    box = widgets.VBox([asked, row])
    bundle = box._repr_mimebundle_()
    bundle = bundle[0] if isinstance(bundle, tuple) else bundle
    display({**bundle, "text/plain": text, "text/html": markup}, raw=True)
