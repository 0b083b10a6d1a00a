"""What each bug costs: two live cases, verdicts by hand, and the stored table."""

import pytest

from tinytf_course.clinic.patients import PATIENTS, healthy, load, source
from tinytf_course.studies.clinic import case, run_of, verdict
from tinytf_course.studies.threads import one_thread


def test_verdicts():
    assert verdict([0.3, 9.0]) == "deadly"
    assert verdict([0.29, 9.0]) == "mild"
    assert verdict([-0.1, -0.2]) == "helps"
    assert verdict([0.1, -0.01]) == "harmless"
    assert verdict([0.001, 0.002]) == "harmless"
    assert verdict([-0.1, -0.2], flatters=True) == "flatters"


@one_thread()
def test_a_mask_that_meets_the_heads_is_deadly_live():
    patient = PATIENTS["mask_meets_heads"]
    twin = run_of(load(healthy(patient)), 0, 120)
    well = load(healthy(patient)).score(twin["model"], 0)
    row = case(patient, 0, 120, twin)
    assert well < 0.3
    assert row["value"] > well + 1
    assert row["losses"][1] < twin["losses"][1]  # and its loss is the better one


@one_thread()
def test_bugs_of_use_are_wrong_with_healthy_weights():
    twin = run_of(load(healthy("speaker")), 0, 150)
    program = load(healthy("speaker"))
    well = program.score(twin["model"], 0)
    assert well > 0.9
    for name in ("cache_off_by_one", "top_p_drops_all", "beam_keeps_cache"):
        row = case(PATIENTS[name], 0, 150, twin)
        assert row["value"] < well - 0.2
        assert row["losses"] == twin["losses"]


def test_a_study_can_be_remade():
    assert source(PATIENTS["data_leak"]) != healthy("pipeline")
    with pytest.raises(ValueError, match="no program 'none'"):
        healthy("none")
