"""The course map marks its chapter and no other."""

import matplotlib
import matplotlib.pyplot as plt
import pytest

from tinytf import viz

matplotlib.use("Agg")


pytestmark = pytest.mark.usefixtures("house_style")


@pytest.mark.parametrize("chapter", range(18))
def test_course_map_marks_the_chapter_and_no_other(chapter):
    def marked(number):
        boxes = viz.course_map(number).patches
        plt.close("all")
        return {i for i, box in enumerate(boxes) if box.get_linewidth() > 2}

    assert marked(chapter)
    assert marked(chapter) != marked((chapter + 1) % 18) or {chapter, chapter + 1} == {3, 4}


def test_course_map_refuses_a_chapter_that_is_not_there():
    with pytest.raises(ValueError, match="18"):
        viz.course_map(18)
