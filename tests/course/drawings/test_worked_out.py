"""What drawings work out before they draw it: places, counts, numbers and angles."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from drawing_cases.tokens import merged
from matplotlib.colors import to_hex, to_rgba

from tinytf.apps.writer import STORYTELLER, Writer
from tinytf.decoding.sampling import Sampling
from tinytf.gpt import GPT, GPTConfig
from tinytf.metrics.bleu import clipped_matches
from tinytf.text.merges import apply_merges
from tinytf.viz.spoken import spoken
from tinytf.viz.style import GOLD, legible
from tinytf_course import drawings as viz
from tinytf_course.clinic.checks import CHECKS
from tinytf_course.clinic.patients import PATIENTS
from tinytf_course.drawings import bleu, clinic, clock, counting, decoder_only, multihead, saving
from tinytf_course.drawings.checks import loudest
from tinytf_course.drawings.cost import size_text
from tinytf_course.drawings.decoding import search_steps
from tinytf_course.drawings.encoder import draw_encoder_stack
from tinytf_course.drawings.feedforward import target_in_context
from tinytf_course.drawings.norms import GROUP
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.studies.checks import found_by, ward_table


def words(ax):
    return [text.get_text() for text in ax.texts]


# ---- words and vectors


def test_token_rows_breaks_long_lines():
    ax = viz.token_rows({"many": ["word"] * 100})
    right = max(patch.get_x() + patch.get_width() for patch in ax.patches)
    assert right <= ax.get_xlim()[1]
    rows = {round(patch.get_y(), 3) for patch in ax.patches}
    assert len(rows) > 3
    assert max(rows) + 0.9 <= ax.get_ylim()[0]


def test_plane_keeps_the_two_widest_directions():
    points = torch.randn(50, 2) * torch.tensor([9.0, 3.0])
    turn, _ = torch.linalg.qr(torch.randn(6, 6))
    flat = torch.tensor(viz.plane(torch.cat([points, torch.zeros(50, 4)], dim=1) @ turn + 5))
    torch.testing.assert_close(torch.cdist(flat.float(), flat.float()), torch.cdist(points, points),
                               atol=1e-3, rtol=1e-4)  # fmt: skip


def test_figures_are_drawn_into_axes_that_are_given():
    ax = plt.subplots()[1]
    points = torch.randn(2, 3, 2, requires_grad=True)
    assert viz.word_paths({"it": points}, ax, title="a") is ax
    assert ax.get_legend() is None


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


# ---- attention, norms, layers


@pytest.mark.parametrize("place", range(3))
def test_looks_go_from_the_chosen_word_to_what_each_head_looks_at(place):
    weights = torch.zeros(2, 3, 4)
    weights[0, :, 0], weights[0, :, 3] = 0.96, 0.04  # a line too thin to draw
    weights[1, torch.arange(3), 1 + torch.arange(3)] = 1.0
    ax = multihead.draw_looks(weights, list("abcd"), list("xyz"), place)
    lines = [line for line in ax.lines if line.get_xdata()[1] > 9]  # without those of the legend
    assert [line.get_linewidth() for line in lines] == pytest.approx([6 * 0.96, 6])
    height = {text.get_text(): text.get_position()[1] for text in ax.texts}
    for line, source in zip(lines, ("a", "bcd"[place]), strict=True):
        assert line.get_ydata() == pytest.approx([height[source], height["xyz"[place]]], abs=0.2)
    said = f"While {'xyz'[place]} is written, head 0 looks most at a (0.96), head 1 looks most at "
    assert said + "bcd"[place] in spoken(ax.figure)


def test_the_cells_of_a_norm_are_filled_where_the_group_is():
    group = torch.rand(2, 3, 5) < 0.4
    ax = viz.norm_groups(torch.randn(2, 3, 5), {"one\nand two": group}, [["a"] * 3] * 2)
    ax.figure.canvas.draw()
    colours = ax.collections[0].get_facecolors().reshape(2, 3, 5, 4)
    assert ((np.abs(colours - to_rgba(GROUP)) < 1e-6).all(-1) == group.numpy()).all()
    title = next(text for text in ax.texts if text.get_text() == "one\nand two")
    top = title.get_window_extent().transformed(ax.transData.inverted()).y1
    assert top < ax.get_ylim()[1]


def test_a_stack_stands_on_its_page():
    ax = draw_encoder_stack(4)
    assert max(patch.get_extents().x1 for patch in ax.patches) <= ax.get_window_extent().x1


def test_a_target_is_between_asterisks():
    pair = Phrasebook().translate("the cat sat on the mat")
    assert target_in_context(pair, 0) == "*猫 māo*   (the cat sat on the mat)"
    assert "*<eos>*" in target_in_context(pair, len(pair.target))


# ---- writing


@pytest.mark.parametrize(("likeliest", "shown"), [(True, 3), (True, 1), (False, 1)])
def test_a_step_leads_from_a_text_to_the_token_drawn(likeliest, shown):
    """It is shown even if another is likelier."""
    writer, text = Writer.load(STORYTELLER), "One morning, a clever girl named"
    told = {seed: writer.write(text, 1, Sampling(), seed=seed) for seed in range(20)}
    best = writer.write(text, 1)
    seed = next(seed for seed, one in told.items() if (one == best) == likeliest)
    ax = decoder_only.draw_step(writer, text, seed=seed, shown=shown)
    assert len(ax.containers) == shown + (not likeliest)
    tokens = [writer.tokenizer.decode([id]).strip() for id in writer.tokenizer.encode(text)]
    found, drawn = "\n".join(words(ax)).splitlines(), told[seed].removeprefix(text)
    assert found.count(drawn.strip()) == 2  # beside the probabilities, and as the next column
    assert {*tokens, "<end>", text, "1,024 scores"} <= {*found}
    assert sum(line.startswith("layer ") for line in found) == 3
    assert f"{drawn!r}, and appended" in spoken(ax.figure)


def test_names_of_weights_are_the_packages():
    layer = GPT(GPTConfig(5, 4, 1, 1, max_len=3)).decoder.layers[0]
    ours = {name.rpartition(".")[0] for name, _ in layer.named_parameters()}
    lines = "\n".join(words(decoder_only.draw_name_table([]))).splitlines()
    assert {line.split()[0] for line in lines if "_" in line} >= ours


def test_a_search_by_dictionaries_becomes_the_steps_of_a_tree():
    alive = {("the",): -0.9, ("a",): -0.5}
    grown = {("the", "cat"): -1.0, ("a", "<eos>"): -1.4, ("a", "dog"): -1.6, ("a", "hat"): -4.6}
    kept = {prefix: grown[prefix] for prefix in (("the", "cat"), ("a", "dog"))}
    ended = {("a", "<eos>"): grown["a", "<eos>"]}
    steps = search_steps([(alive, alive, {}), (grown, kept, ended)])
    assert {(prefix, fate) for prefix, _, fate in steps[0]} == {(p, "kept") for p in alive}
    fates = {"cat": "kept", "<eos>": "ended", "dog": "kept", "hat": "dropped"}
    assert {prefix[-1]: fate for prefix, _, fate in steps[1]} == fates
    viz.beam_tree(steps, best=("the", "cat"))
    many = {(str(i),): -float(i) for i in range(30)}
    (step,) = search_steps([(many, {("0",): 0.0, ("1",): -1.0, ("2",): -2.0}, {})])
    assert len(step) == 6  # of the dropped as many are shown as were looked at


@pytest.mark.parametrize("word", ["newest", "lowest", "猫", "xyz"])
def test_merges_end_where_encoding_ends(word, monkeypatch):
    given = []
    monkeypatch.setattr("tinytf_course.drawings.tokens.draw_merges", lambda *a: given.extend(a))
    merged(word)
    monkeypatch.undo()
    _, merges, tokens = given
    ids = apply_merges(word.encode(), merges)
    *rows, last = words(viz.tokens.draw_merges(*given))
    cut = last.removeprefix("result:\n").split(" | ")
    assert len(cut) == len(ids)
    assert not word.isascii() or cut == [tokens[i].decode() for i in ids]
    assert len(rows) >= 2 * len(word.encode()) - len(ids) - 1


@pytest.mark.parametrize(
    ("translation", "reference"),
    [("the the cat sat the", "the cat sat on the mat"), ("a b", "c d"), ("a a", "a a a")],
)
def test_a_word_that_counts_is_joined_to_an_equal_one(translation, reference):
    translation, reference = translation.split(), reference.split()
    links = bleu._links(translation, reference)
    assert len({*links.values()}) == clipped_matches(translation, [reference], 1)[0]
    assert all(translation[i] == reference[j] for i, j in links.items())


# ---- costs


def widths(ax, colour):
    return [p.get_width() for p in ax.patches if to_hex(p.get_facecolor()) == colour]


def test_at_six_widths_a_token_meets_as_many_keys_and_values_as_weights():
    ax = counting.draw_token_meets((8, 48), width=8)
    weights, pairs = widths(ax, counting.WEIGHTS), widths(ax, counting.PAIRS)
    assert weights[0] == pytest.approx(weights[1])
    assert pairs[:2] == pytest.approx([weights[0] / 6, weights[0]])
    ax = counting.draw_square((3, 6), width=4)
    assert max(patch.get_x() + patch.get_width() for patch in ax.patches) < ax.get_xlim()[1]


@pytest.mark.parametrize(
    ("number", "text"),
    [(24.92e9, "24.9 GB"), (999.9e6, "1 GB"), (4e12, "4 TB"), (0, "0 B"), (512, "512 B")],
)
def test_sizes_are_written_in_their_unit(number, text):
    assert size_text(number) == text


def test_shares_are_written_inside_their_bars():
    axes = plt.subplots(1, 3, figsize=(13, 4.6))[1]
    ax = viz.stacked_bars({f"bar {n}": {"a": 97, "b": 3} for n in range(7)}, axes[0], total="")
    legible(ax.figure).canvas.draw()
    for bar, text in zip(ax.patches[::2], (t for t in ax.texts if t.get_text()), strict=True):
        text, bar = text.get_window_extent(), bar.get_window_extent()
        assert bar.x0 < text.x0 < text.x1 < bar.x1


@pytest.mark.parametrize(
    ("bits", "kind"),
    [((5, 10), torch.float16), ((8, 7), torch.bfloat16), ((5, 2), torch.float8_e5m2)],
)
def test_numbers_are_rounded_as_torch_rounds_them(bits, kind):
    near = torch.logspace(-9, 6, 2000)
    ties = torch.arange(1, 2000).float() / 256
    numbers = torch.cat([near, -near, ties, torch.zeros(1)])
    rounded = torch.tensor(saving.rounded(numbers, *bits))
    assert torch.equal(rounded, numbers.to(kind).double())


@pytest.mark.parametrize("exponent", [2, 4, 8])
@pytest.mark.parametrize("fraction", [0, 3, 10])
def test_a_format_shows_its_numbers_and_its_error(exponent, fraction):
    above, below = saving.draw_format(exponent, fraction)
    values = [segment[0][0] for segment in above.collections[0].get_segments()]
    assert len([value for value in values if 1 <= value < 2]) == 2**fraction
    worst = 1 / (2 ** (fraction + 1) + 1) if exponent == 8 else 1
    assert below.lines[-1].get_ydata().max() == pytest.approx(worst, rel=0.05)
    said = spoken(above.figure)
    assert f"{exponent} of exponent and {fraction} of fraction" in said
    assert f"it has {len(values)} values" in said


# ---- the clinic


@pytest.mark.parametrize("patient", PATIENTS)
def test_a_patient_has_a_complaint_and_its_alarms(patient):
    table = ward_table()
    limits = {title: check.limit for title, check in CHECKS.items()}
    ax = loudest(table[patient], limits, PATIENTS[patient].looks)
    rows = zip(ax.get_yticklabels(), ax.lines[1::2], strict=False)
    alarms = [title.get_text() for title, line in rows if line.get_color() == GOLD]
    assert sorted(alarms) == sorted(found_by(table)[patient])
    assert ax.get_title() == PATIENTS[patient].looks
    assert f"raise an alarm: {', '.join(alarms)}." in spoken(ax.figure)


def test_each_verdict_has_its_own_colour_and_marker():
    for looks in zip(*clinic.LOOKS.values(), strict=True):
        assert len({*looks}) == len(clinic.LOOKS)
