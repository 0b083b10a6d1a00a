"""Checks of the clinic: healthy programs pass them all, and each patient fails one."""

import math

import pytest
import torch

from tinytf_course.clinic.checks import CHECKS, Check, apart, examine, healthy_at
from tinytf_course.clinic.patients import PATIENTS, PROGRAMS, healthy, load, source
from tinytf_course.clinic.ward import mystery
from tinytf_course.studies.checks import QUICK, found_by

# Found by a check that trains for long, and by no quick one.
LONG = {"beam_keeps_cache"}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_healthy_program_raises_no_alarm(program):
    assert healthy_at(examine(load(healthy(program)), QUICK), QUICK)


@pytest.mark.parametrize("name", sorted(set(PATIENTS) - LONG))
def test_a_patient_raises_an_alarm(name):
    found = {name: examine(load(source(PATIENTS[name])), QUICK)}
    full = {name: dict.fromkeys(CHECKS) | found[name]}
    assert found_by(full)[name]


def test_an_error_is_an_alarm_and_none_is_not():
    def broken(m):
        raise RuntimeError("shapes")

    checks = {"broken": Check(broken, 1.0), "absent": Check(lambda m: None, 1.0)}
    found = examine("program", checks)
    assert found == {"broken": math.inf, "absent": None}
    assert not healthy_at(found, checks)


def test_apart_is_a_share_of_the_spread():
    x = torch.tensor([0.0, 0.1])
    assert apart(x, x + 0.01) == pytest.approx(0.01 / x.std().item())
    assert apart(x, x * math.nan) == math.inf


def test_checks_leave_the_generator_alone():
    before = torch.get_rng_state()
    examine(load(healthy("writer")), {"a": CHECKS["later tokens changed"]})
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("seed", "name"),
    [(12, "PyTorch's attention"), (31, "silenced block"), (69, "PyTorch's attention")],
)
def test_a_check_knows_a_layer_whatever_its_name(seed, name):
    found = CHECKS[name].run(load(mystery(seed).text))
    assert found > CHECKS[name].limit
