"""Predictions are asked, remembered and answered."""

import pytest

from tinytf_course import predict

# predictions


def test_a_prediction_is_asked_and_answered(capsys):
    predict("t-1", "Which?", ["one", "two"])
    assert capsys.readouterr().out == "? t-1  Which?\n    - one\n    - two\n"
    predict.answer("t-1", "two", because="it is larger.")
    assert capsys.readouterr().out == "→ t-1  measured: two. It is larger.\n"


def test_a_prediction_is_remembered(capsys, monkeypatch):
    from tinytf_course.predict import _choices

    predict("t-2", "Which?", ["one", "two"])
    monkeypatch.setitem(_choices, "t-2", "one")
    predict("t-2", "Which?", ["one", "two"])
    assert predict.choice("t-2") == "one"
    predict.answer("t-2", "two")
    predict.answer("t-2", "one")
    out = capsys.readouterr().out
    assert "→ t-2  you said: one; measured: two" in out
    assert "✓ t-2  you said: one; measured: one" in out
    predict("t-2", "Which?", ["two", "three"])
    assert predict.choice("t-2") is None


def test_a_prediction_is_answered_by_an_option():
    with pytest.raises(ValueError, match="run the cell"):
        predict.answer("t-never", "a")
    predict("t-3", "Which?", [1, 2])
    with pytest.raises(ValueError, match="not one of the options"):
        predict.answer("t-3", 3)
    with pytest.raises(ValueError, match="two or more"):
        predict("t-4", "Which?", ["a", "a"])


def test_buttons_record_the_choice(monkeypatch):
    import importlib

    shown = []
    module = importlib.import_module("tinytf_course.predict")
    monkeypatch.setattr(module, "live", lambda: True)
    monkeypatch.setattr("IPython.display.display", lambda bundle, **_: shown.append(bundle))
    predict("t-5", "Which?", ["one", "two"])
    (bundle,) = shown
    assert {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"} <= set(bundle)
    from ipywidgets.widgets.widget import _instances

    view = bundle["application/vnd.jupyter.widget-view+json"]
    row = _instances[view["model_id"]].children[1]
    row.children[1].click()
    assert predict.choice("t-5") == "two"
    assert [button.button_style for button in row.children] == ["", "primary"]
