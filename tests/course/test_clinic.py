"""The clinic: every patient is planted once and silent, variants are healthy, the ward repeats."""

import ast

import pytest
import torch
from support import warnings_as_errors

from tinytf_course.clinic.disguise import disguised, names_of
from tinytf_course.clinic.patients import PATIENTS, PROGRAMS, healthy, load, source
from tinytf_course.clinic.variants import variants
from tinytf_course.clinic.ward import HARMLESS_BUGS, examination, key, mystery, write_examination
from tinytf_course.exercise_source import edited

# These may leave the first steps of training as they are.
MAY_BE_ALIKE = {
    "bleu_of_pieces", "eval_forgotten", "cache_off_by_one", "beam_keeps_cache", "top_p_drops_all",
    "memory_pads", "pads_as_keys", "accumulation_not_divided",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def first_losses():
    return {name: load(healthy(name)).train(0, 3)[1] for name in PROGRAMS}


def test_there_are_enough_and_all_is_said():
    assert len(PATIENTS) >= 20
    for name, patient in PATIENTS.items():
        assert name == patient.name
        assert patient.program in PROGRAMS
        assert len(patient.hints) == 3
        assert all((patient.title, patient.looks, patient.measure, patient.check, patient.story))
    with pytest.raises(ValueError, match="2 times, not once"):
        edited("x = x", [("x", "y")])


@pytest.mark.parametrize("name", PATIENTS)
def test_a_patient_is_silent_and_another_program(name, first_losses):
    patient = PATIENTS[name]
    text = source(patient)  # raises if a snippet is not there exactly once
    assert text != healthy(patient)
    with warnings_as_errors():
        program = load(text)
        losses = program.train(0, 3)[1]
    assert all(0 < loss < 20 for loss in losses)
    assert losses != first_losses[patient.program] or name in MAY_BE_ALIKE


@pytest.mark.parametrize("program", PROGRAMS)
def test_variants_are_different_programs_that_train_alike(program, first_losses):
    found = variants(program)
    assert len(found) >= 20
    assert len({text for _, text in found}) == len(found)
    assert len({what for what, _ in found}) == len(found)
    for what, text in (found[0], found[10], found[17]):
        losses = load(text).train(0, 3)[1]
        if what.startswith("other names"):
            assert losses == first_losses[program]
        assert all(0 < loss < 20 for loss in losses)


def test_a_disguise_says_nothing_and_hides_names():
    text = disguised(healthy("writer"), 1)
    assert '"""' not in text
    assert "#" not in text
    kept = set(names_of(healthy("writer"))) & set(names_of(text))
    assert not kept
    assert text == disguised(healthy("writer"), 1) != disguised(healthy("writer"), 2)
    known = {"SelfAttention", "future", "scores"}
    assert not known & {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def test_the_ward_repeats_itself_and_its_key_repairs():
    for seed in range(8):
        one = mystery(seed, sick=True)
        assert one == mystery(seed, sick=True)
        lines = one.text.splitlines()
        for number, sick, sound in reversed(one.lines):
            start = number - 1
            assert "\n".join(lines[start : start + len(sick.splitlines())]) == sick
            lines[start : start + len(sick.splitlines())] = sound.splitlines()
        assert 1 <= len(one.lines) <= 3
        assert one.patient.title in key(one)
        repaired = "\n".join(lines)
        assert repaired != one.text.rstrip("\n")
        compile(repaired, "repaired", "exec")
        load(one.text)
    well = mystery(3, sick=False)
    assert well.patient is None
    assert not well.lines
    assert key(well).endswith("healthy\n")


def test_an_examination_has_ten_and_a_key(tmp_path):
    exam = examination(4)
    names = [one.patient.name if one.patient else one.program for one in exam]
    assert len(set(names)) == 10
    assert sum(one.patient is None for one in exam) == 2
    assert set(PATIENTS) > HARMLESS_BUGS
    for seed in range(2):
        asked = {one.patient.name for one in examination(seed, 20) if one.patient}
        assert asked.isdisjoint(HARMLESS_BUGS)
    with pytest.raises(ValueError, match="not 99"):
        examination(4, 99)
    *patients, answers = write_examination(tmp_path / "exam", 4, 3)
    assert [path.name for path in patients] == [f"patient_{i:02}.py" for i in (1, 2, 3)]
    assert answers.read_text().count("patient_0") == 3
    assert sorted((tmp_path / "exam" / "handout").iterdir()) == patients
    assert [path.name for path in (tmp_path / "exam" / "teacher").iterdir()] == ["key.txt"]
    with pytest.raises(FileExistsError):
        write_examination(tmp_path / "exam", 4, 3)
