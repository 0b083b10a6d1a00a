"""The course map marks its chapter and no other."""

import matplotlib
import matplotlib.pyplot as plt
import pytest

from tinytf_course import drawings as viz
from tinytf_course.outline import CHAPTERS

matplotlib.use("Agg")
COUNT = len(CHAPTERS)


@pytest.mark.parametrize("chapter", range(COUNT))
def test_course_map_marks_the_chapter_and_no_other(chapter):
    def marked(number):
        boxes = viz.course_map(number).patches
        plt.close("all")
        return {i for i, box in enumerate(boxes) if box.get_linewidth() > 2}

    assert marked(chapter)
    other = (chapter + 2) % COUNT  # neighbours may share a box
    assert marked(chapter) != marked(other)


def test_course_map_refuses_a_chapter_that_is_not_there():
    with pytest.raises(ValueError, match=f"no chapter {COUNT}"):
        viz.course_map(COUNT)
