"""What an exercise is made of."""

from dataclasses import replace

from test_exercises import EXERCISES

from tinytf_course.grading import Exercise, answers, exercises, hint


def split(x, num_heads):
    """One line.

    And more.
    """
    raise NotImplementedError


MADE = Exercise("99.1", "splitting", 2, 5, "Write it.", "Think.", split, ())


def test_a_stub_is_what_stands_in_the_file():
    assert MADE.name == "split"
    assert MADE.stub == (
        'def split(x, num_heads):\n    """One line.\n\n    And more.\n    """\n'
        "    raise NotImplementedError\n"
    )
    assert MADE.stars == "★★☆"


def test_an_exercise_without_answers_has_none():
    assert MADE.answers is None
    assert MADE.reference is None
    assert (MADE.wrong, MADE.solution) == ((), "")
    assert "Solution" not in MADE.markdown()


def test_each_exercise_has_its_answers():
    assert exercises().keys() == answers().keys()
    assert "Solution" in EXERCISES[0].markdown()


def test_a_test_carries_its_hint():
    @hint("Look.")
    def test(answer):
        """it holds"""

    assert test.hint == "Look."
    assert replace(MADE, tests=(test,)).tests[0].hint == "Look."
