"""The storybook: short stories from a grammar, with the world that they tell of, so that a program
can check whether a text makes sense.
"""

from tinytf_course.stories.checking import Verdict, check
from tinytf_course.stories.plots import PLOTS, Story, tell
from tinytf_course.stories.questions import answers, is_right

__all__ = ["PLOTS", "Story", "Verdict", "answers", "check", "is_right", "tell"]
