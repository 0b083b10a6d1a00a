"""Drawings and figures of checks."""

import math

import matplotlib

matplotlib.use("Agg")

import pytest
from matplotlib.colors import to_hex

from tinytf.viz.spoken import spoken
from tinytf.viz.style import GOLD
from tinytf_course.clinic.checks import CHECKS
from tinytf_course.clinic.patients import PATIENTS
from tinytf_course.drawings.checks import (
    CELLS,
    alarm_map,
    draw_two_ways,
    draw_where_checks_stand,
    loudest,
    margins,
)
from tinytf_course.studies.checks import found_by, ward_table


def test_a_check_runs_a_program_twice():
    ax = draw_two_ways()
    assert [text.get_text() for text in ax.texts].count("the program") == 2
    assert "twice" in spoken(ax.figure)


def test_each_station_has_its_checks():
    ax = draw_where_checks_stand({"data": ["a"], "model": ["b", "c"]})
    assert {"data", "model", "a", "b", "c"} <= {text.get_text() for text in ax.texts}
    assert "model: b, c" in spoken(ax.figure)
    ax.figure.canvas.draw()


def test_an_alarm_is_filled_and_what_does_not_apply_is_blank():
    found = {"well": {"a": 0.0, "b": 1e-9}, "ill_one": {"a": 0.5, "b": None},
             "loud": {"a": math.inf, "b": 12.0}}  # fmt: skip
    ax = alarm_map(found, {"a": 0.1, "b": 0.1}, order={"well": 1, "ill_one": 1, "loud": 2})
    drawn = [to_hex(cell.get_facecolor()) for cell in ax.patches]
    assert drawn == [CELLS[kind] for kind in (
        "silent", "silent", "alarm", "not for it", "alarm", "alarm")]  # fmt: skip
    assert "ill one: a; loud: a, b" in spoken(ax.figure)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["well", "ill one", "loud"]
    assert len(ax.lines) == 1
    with pytest.raises(ValueError, match="there are no programs"):
        alarm_map({}, {"a": 1})


def test_margins_are_shares_of_each_limit():
    ax = margins({"a": [0.0, 0.01]}, {"a": [1.0, math.inf]}, {"a": 0.1, "b": 0.5})
    drawn = {line.get_label(): line.get_xdata().tolist() for line in ax.lines[:3]}
    assert drawn["healthy"] == pytest.approx([1e-6, 0.1])
    assert sorted(ax.lines[2].get_xdata()) == pytest.approx([10, 1e6])
    ax.figure.canvas.draw()


@pytest.mark.parametrize("patient", PATIENTS)
def test_a_patient_has_a_complaint_and_its_alarms(patient):
    table = ward_table()
    limits = {title: check.limit for title, check in CHECKS.items()}
    ax = loudest(table[patient], limits, PATIENTS[patient].looks)
    alarms = [
        title.get_text()
        for title, line in zip(ax.get_yticklabels(), ax.lines[1::2], strict=False)
        if line.get_color() == GOLD
    ]
    assert sorted(alarms) == sorted(found_by(table)[patient])
    assert ax.get_title() == PATIENTS[patient].looks
    assert f"raise an alarm: {', '.join(alarms)}." in spoken(ax.figure)
