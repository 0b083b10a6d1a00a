"""The link for nbgitpuller has the documented form."""

from urllib.parse import parse_qs, urlsplit

import pytest

from tinytf_course.release.links import pull_link

HUB, REPOSITORY = "https://hub.example.org/", "https://git.example.org/me/tinytf-class"


def test_a_link_has_the_documented_form():
    link = pull_link(HUB, REPOSITORY, "notebooks/05_a b.ipynb")
    assert link == (
        "https://hub.example.org/hub/user-redirect/git-pull"
        "?repo=https%3A%2F%2Fgit.example.org%2Fme%2Ftinytf-class"
        "&urlpath=lab%2Ftree%2Ftinytf-class%2Fnotebooks%2F05_a%20b.ipynb&branch=main"
    )
    asked = parse_qs(urlsplit(link).query)
    assert asked["repo"] == [REPOSITORY]
    assert asked["urlpath"] == ["lab/tree/tinytf-class/notebooks/05_a b.ipynb"]


def test_the_folder_is_what_nbgitpuller_calls_it():
    link = pull_link(HUB, REPOSITORY + ".git", branch="week 2")
    assert link.endswith("&urlpath=lab%2Ftree%2Ftinytf-class.git&branch=week%202")


@pytest.mark.parametrize(
    "wrong",
    [("hub", REPOSITORY), (HUB, "me/x"), (HUB, REPOSITORY, "../x"), (HUB, REPOSITORY, "/x")],
)
def test_what_makes_no_link_is_refused(wrong):
    with pytest.raises(ValueError, match="is no"):
        pull_link(*wrong)
