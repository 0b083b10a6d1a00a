"""Drawings of images, of looking inside a model, and of the bug clinic."""

import math

import numpy as np
import torch
from matplotlib.colors import to_rgba

from drawing_cases import case, refused
from tinytf.related.vit import split_patches
from tinytf_course import drawings as viz
from tinytf_course.drawings import checks, clinic, following, images, inside

# ---- images

IMAGE = torch.arange(64.0).view(8, 8)
PATCHES = split_patches(IMAGE[None, None], 2)[0]
case("patch row", lambda: viz.patch_row(IMAGE, PATCHES, title="a digit"),
    texts=[str(n) for n in range(16)], images=[IMAGE.tolist(), *PATCHES.view(-1, 2, 2).tolist()],
    image_scales=[(0, 63)] * 17)  # fmt: skip
refused(lambda: viz.patch_row(IMAGE, PATCHES[:15]), "60 pixels in the patches, 64 in the image")
INK, LOOKS = -torch.ones(8, 8), torch.zeros(16)
INK[3, 6], LOOKS[7] = 1.0, 0.4  # patch 7: second row, last column
TINT = np.kron(LOOKS.view(4, 4), np.ones((2, 2)))
case(
    "digit attention",
    lambda: viz.digit_attention(INK, LOOKS, title="seven"),
    holds=lambda ax: (
        np.array_equal(ax.images[0].get_array() > 0, TINT > 0)
        and ax.collections[0].get_offsets().tolist() == [[6, 3]]
    ),
)
case("digit attention to 1", lambda: viz.digit_attention(INK, LOOKS, top=1), image_scales=[(0, 1)])
refused(lambda: viz.digit_attention(INK, LOOKS[:9]),
    r"9 patches do not tile an image of shape \(8, 8\)")  # fmt: skip
ALIKE = torch.eye(9)
ALIKE[0, 1] = ALIKE[1, 0] = -0.5
case("similarity grid", lambda: viz.similarity_grid(ALIKE, title="positions"),
    images=ALIKE.view(9, 3, 3).tolist(), image_scales=[(-1, 1)] * 9,
    holds=lambda *axes: axes[4].patches[0].get_xy() == (0.5, 0.5))  # fmt: skip
refused(lambda: viz.similarity_grid(torch.eye(8)), r"\(8, 8\) is not that of a square grid")
case(
    "patches",
    lambda: images.draw_patches(torch.arange(16.0).view(4, 4), 2),
    holds=lambda ax: (
        [int(t.get_text()) for t in ax.texts if t.get_text().isdigit()][:20]
        == [*range(16), 0, 1, 4, 5]
    ),
    said="4 squares",
)
refused(lambda: images.draw_patches(torch.zeros(4, 4), 3),
    "patches of 3 × 3 do not tile an image of 4 × 4")  # fmt: skip
case("vit", images.draw_vit, has=["(B, 17, C)"], unsaid=["Not there yet"])
case("vit without parts", lambda: images.draw_vit(placeholders=("class token", "positions")),
    has=["mean state"], said="Not there yet: class token and positions.")  # fmt: skip

# ---- looking inside, and following an answer

case("hook", inside.draw_hook, has=["hook(module, inputs, out)"])
case("probe", inside.draw_probe, has=["layer.attention = ours"])
case("ablations", inside.draw_ablations, has=["by another's pattern"])
case("induction", inside.draw_induction, has=["A, after B"])
PHASES = [
    {"step": 0, "loss": 4.0, "previous": [[0.1, 0.2], [0, 0]], "induction": [[0, 0], [0, 0.1]]},
    {"step": 9, "loss": 1.0, "previous": [[0.6, 0.3], [0, 0]], "induction": [[0, 0], [0.9, 0]]},
]
case("phase change", lambda: inside.phase_change(PHASES), ys=[[4.0, 1.0], [0.2, 0.6], [0.1, 0.9]])
ROLES = torch.tensor([[0.25, float("nan")], [-0.5, 1.0], [0.0, 0.5]])
case(
    "role map",
    lambda: inside.role_map(ROLES, ["previous", "noun"], ["a", "b", "c"]),
    xticks=["a", "b", "c"],
    holds=lambda ax: [p.get_xy() for p in ax.patches if p.get_hatch()] == [(-0.5, 0.5)],
)
case("noun bars", lambda: inside.noun_bars({"as it is": (0.5, 0.25), "zero": (0.0, 0.125)}),
    widths=[0.5, 0.0, 0.25, 0.125, 0.25, 0.875],
    holds=lambda ax: [bar.get_x() for bar in ax.patches[4:]] == [0.75, 0.125])  # fmt: skip
case("lens", lambda: following.draw_lens(4),
    count={f"layer {i}": int(i < 4) for i in range(5)} | {"the prediction": 1})  # fmt: skip
case("sum", following.draw_sum, count={"− mean, ÷ std, × gain": 4})
case("patch", lambda: following.draw_patch("tired", "wide"),
    has=["… too tired", "… too wide", "score ?", "put in"])  # fmt: skip
case("route", following.draw_route, has=["it", "tired", "cross-attention 0", "cross-attention 1"])
case("stories", following.draw_stories, count={"decoder predicts 猫": 3})
SURE = torch.tensor([[0.1, 0.9], [0.5, 0.2]])
case(
    "lens table",
    lambda: following.lens_table(
        ["embedding", "layer 0"], ["a", "b"], [["x", "y"], ["z", "w"]], SURE
    ),
    texts=["x", "y", "z", "w"],
    yticks=["embedding", "layer 0"],
)
refused(lambda: following.lens_table(["one"], ["a", "b"], [["x", "y"]], SURE),
    "do not fit 1 rows and 2 tokens")  # fmt: skip
case("part bars", lambda: following.part_bars({"embedding": 0.25, "layers.0.feed_forward": -1.0}),
    widths=[0.25, -1.0], texts=["0.25", "-1.00"])  # fmt: skip
PLAYED = {"previous": [0.5, math.nan, 0.1], "alignment": [math.nan, 0.9, 0.2]}
WORTH = {"test": torch.tensor([[1.0, 3.0], [0.0, 0.5], [-1.0, 2.0]])}
case(
    "head table",
    lambda: viz.head_table(["a", "b", "c"], PLAYED, WORTH, xlabel="points"),
    yticks=["a", "b", "c", ...],
    patches=2,  # hatched: the two roles that can't be played
    holds=lambda left, right: (
        {(1, 0), (3, 0), (0, 1), (0.5, 1), (-1, 2), (2, 2)}
        <= {tuple(xy) for line in right.lines for xy in line.get_xydata()}
    ),
)
refused(lambda: viz.head_table(["a", "b"], PLAYED, WORTH), "3 scores for 2 rows")
refused(lambda: viz.head_table(["a", "b", "c"], PLAYED, {"test": [[1.0]]}),
    "1 costs of 'test' for 3 rows")  # fmt: skip

# ---- the clinic

case("two ways", checks.draw_two_ways, count={"the program": 2}, said="twice")
case("where checks stand",
    lambda: checks.draw_where_checks_stand({"data": ["a"], "model": ["b", "c"]}),
    has=["data", "model", "a", "b", "c"], said="model: b, c")  # fmt: skip
FOUND = {"well": {"a": 0.0, "b": 1e-9}, "ill_one": {"a": 0.5, "b": None},
         "loud": {"a": math.inf, "b": 12.0}}  # fmt: skip
SILENT, ALARM, NOT_FOR_IT = (checks.CELLS[kind] for kind in ("silent", "alarm", "not for it"))
case(
    "alarm map",
    lambda: checks.alarm_map(
        FOUND, {"a": 0.1, "b": 0.1}, order={"well": 1, "ill_one": 1, "loud": 2}
    ),
    inks=[to_rgba(SILENT)] * 2 + [to_rgba(ALARM), to_rgba(NOT_FOR_IT)] + [to_rgba(ALARM)] * 2,
    said="ill one: a; loud: a, b",
    yticks=["well", "ill one", "loud"],
    lines=1,
)
refused(lambda: checks.alarm_map({}, {"a": 1}), "there are no programs")
case("margins",
    lambda: checks.margins({"a": [0.0, 0.01]}, {"a": [1.0, math.inf]}, {"a": 0.1, "b": 0.5}),
    xs=[[1e-6, 0.1], [...], [10, 1e6], ...])  # fmt: skip
DEPTHS = {"a": [0.1, 0.2], "b": [3.0, 5.0], "c": [-0.1, -0.2]}
case(
    "severity",
    lambda: clinic.draw_severity(
        DEPTHS, {"a": "mild", "b": "deadly", "c": "helps"}, {"b": "the mask"}
    ),
    yticks=["c", "a", "the mask"],
    holds=lambda ax: [
        (list(line.get_xdata()), line.get_color())
        for line in ax.lines
        if line.get_linestyle() == "None" and len(line.get_xdata())
    ] == [([-0.1, -0.2], clinic.LOOKS["helps"][0]), ([0.1, 0.2], clinic.LOOKS["mild"][0]),
          ([3.0, 5.0], clinic.LOOKS["deadly"][0])],
    said=["3 silent bugs", "1 deadly, 1 mild, 1 helps. The worst is the mask (4.00)"],
)  # fmt: skip
refused(lambda: clinic.draw_severity({}, {}, {}), "no bug")
refused(lambda: clinic.draw_severity({"a": [1.0]}, {"a": "odd"}, {}), r"no colour for \['odd'\]")
