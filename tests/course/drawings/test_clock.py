"""Drawings of positions."""

import pytest
import torch

from tinytf.viz.spoken import spoken
from tinytf_course.drawings import clock


def words_of(ax):
    return [text.get_text() for text in ax.texts]


def test_counting_shows_every_digit():
    place = torch.arange(4)
    digits = torch.stack([place % 2, place // 2], dim=1)
    left, right = clock.draw_counting(digits, digits.float().sin())
    assert words_of(left) == list("00100111")
    assert "from 0 to 3" in spoken(right.figure)
    with pytest.raises(ValueError, match=r"digits \(4, 2\) and waves \(4, 1\)"):
        clock.draw_counting(digits, digits[:, :1])


def test_a_clock_shows_the_tips_of_its_hands():
    ax = clock.draw_clocks(torch.arange(3)[:, None] * torch.tensor([torch.pi / 2, 0.1]))
    found = words_of(ax)
    assert {"position 0", "position 2", "+1.00  −0.00", "+0.10  +1.00"} <= set(found)
    assert "Hand 1 turns by 0.10 radians" in spoken(ax.figure)


def test_turned_pairs_say_the_angle_between():
    axes = clock.draw_turned({"places 1 and 0": ([0.0, 2.0], [1.0, 0.0])})
    assert axes[0].get_title() == "places 1 and 0: score 0.00"
    assert "90 degrees ahead" in spoken(axes[0].figure)


def test_the_ways_are_three():
    found = " ".join(words_of(clock.draw_ways()))
    assert all(name in found for name in ("1. add", "2. rotate Q and K", "3. subtract"))


def test_a_bias_lowers_what_is_far():
    bias = -0.5 * (torch.arange(2)[:, None] - torch.arange(2)).abs()
    found = words_of(clock.draw_bias(torch.zeros(2, 2), bias, ["a", "b"]))
    assert found.count("−0.50") == 4  # in the bias, and in the sum
    assert {"0.62", "0.38"} <= set(found)


@pytest.mark.parametrize("speed", [0.5, 0.02])
@pytest.mark.parametrize("distance", [-20, -3, 0, 7, 20])
def test_a_distance_has_the_score_of_the_arrows_that_are_drawn(distance, speed):
    query, key = torch.tensor([1.0, 0.2]), torch.tensor([0.6, 0.7])
    left, right = clock.draw_distance(query, key, speed, distance)
    arrows = [text.xy for text in left.texts if text.get_text() == ""]
    turned = torch.complex(*query) * torch.exp(torch.tensor(1j * speed * distance))
    assert arrows[0] == pytest.approx((turned.real.item(), turned.imag.item()), abs=1e-5)
    score = sum(a * b for a, b in zip(*arrows, strict=True))
    ((x, y),) = right.lines[-1].get_xydata()
    assert (x, y) == pytest.approx((distance, score))
    curve = dict(right.lines[-2].get_xydata())
    assert len(curve) == 41
    assert curve[distance] == pytest.approx(score)
    assert f"distance {distance}, score {score:.2f}" in spoken(left.figure)


def test_a_distance_stays_on_the_axis():
    with pytest.raises(ValueError, match="distance 21 is beyond 20"):
        clock.draw_distance([1, 0], [0, 1], 0.5, 21)
