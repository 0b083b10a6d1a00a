"""Drawings of the decoder, the whole Transformer, its training and a GPT's."""

import torch
from matplotlib.colors import to_hex

from drawing_cases import case, refused
from tinytf.viz.style import COLOURS, CYCLE
from tinytf_course import drawings as viz
from tinytf_course.drawings import pretraining, transformer

# ---- the decoder

case("decoder layer", viz.draw_decoder_layer,
    within=["masked\nself-attention", "cross-attention", "feed-forward", "keys and values"],
    said="cross-attention, which takes its keys and values from the memory")  # fmt: skip
case("layer cache", lambda: viz.draw_layer_cache(["<bos>", "a"], ["x", "y", "z"]),
    mentions={"k, v of <bos>": 2, "k, v of z": 2},
    within=["0 kept, 1 new; 3 new", "1 kept, 1 new; 3 kept"], said="2 steps")  # fmt: skip
for changed, may in ((0, 4), (2, 2), (3, 1)):
    case(f"leak test at {changed}", lambda changed=changed: viz.draw_leak_test(4, changed),
        mentions={"may move": may, "must not move": 4 - may})  # fmt: skip
refused(lambda: viz.draw_leak_test(4, 4), "input 4 is none of the 4")
case(
    "newest column",
    lambda: viz.draw_newest_column(["<bos>", "a", "b"], num_layers=2),
    count={"layer 2": 3},
    arrows=2 * 2 + 2 + 1,  # from each kept word at each layer, upwards, and out
)
READS, SAYS = ["<bos>", "one", "two"], ["one", "two", "<eos>"]
for place in range(3):
    reached = f"Position {place}, whose label is {SAYS[place]}, is reached by <bos>"
    for masked in (True, False):
        leak = not masked and place < 2  # the last answer is never read
        ends = "the answer." if leak else "hidden." if place < 2 else ""
        case(f"let through at {place}, {'masked' if masked else 'unmasked'}",
            lambda place=place, masked=masked: viz.draw_let_through(READS, SAYS, place, masked),
            arrows=place + 1 if masked else 3, count={"the answer itself": int(leak)},
            said=[reached, ends], unsaid=[*{"the answer.", "hidden."} - {ends}])  # fmt: skip
refused(lambda: viz.draw_let_through(["<bos>", "a"], ["a", "<eos>"], 2),
    "position 2 is not one of 0 to")  # fmt: skip
VERDICTS = {"right": {"a": 0.0, "b": 1e-7}, "wrong": {"a": 2.0, "b": float("nan")}}
case(
    "verdicts",
    lambda: viz.verdicts(
        VERDICTS, {"a": 0, "b": 1e-5}, {"right": {"s": "9 %"}, "wrong": {"s": 0.5}}, title="t"
    ),
    texts=["0", "1e-7", "9 %", "2.00", "nan", "0.50"],
    patches=2,
    titles=["t"],
    yticks=["right", "wrong"],
)
refused(lambda: viz.verdicts({"right": {"a": 0}}, {"a": 0, "b": 0}), "b", KeyError)
refused(lambda: viz.verdicts({}, {"a": 0}), "no models")
COSTS = {"part": {"zero": [1.0, 2, 3], "mean": [0.5, 1]}, "other": {"zero": [0], "mean": [2]}}
case("cost dots", lambda: viz.cost_dots(COSTS, decimals=1, colors={"zero": 2, "mean": 4}),
    dots=[[1, 2, 3], [0.5, 1], [0], [2]], texts=["2.0", "0.8", "0.0", "2.0"],
    holds=lambda ax: ax.lines[0].get_color() == CYCLE[2])  # fmt: skip
refused(lambda: viz.cost_dots({"a": {"zero": [1]}, "b": {"mean": [1]}}), "the same ways")
refused(lambda: viz.cost_dots({"a": {"zero": []}}), "has no runs")

# ---- the whole Transformer, and its training

case(
    "transformer",
    lambda: transformer.draw_transformer(
        placeholders=("encoder", "decoder"), shapes={"src": [2, 5]}
    ),
    within=["(2, 5)", "(B, T, V)"],
    said="Still placeholders: encoder and decoder.",
)
case("finished transformer", transformer.draw_transformer, unsaid=["placeholders"])
case(
    "unfolded",
    lambda: transformer.draw_unfolded(3, {"memory": (2, 5, 64)}),
    mentions={"cross-": 3},
    within=["decoder layer 3\n(B, T, C)", "encoder layer 1\n(2, 5, 64)"],
    holds=lambda ax: (
        [
            to_hex(patch.get_edgecolor())
            for patch in ax.patches
            if hasattr(patch, "get_arrowstyle")
        ].count(COLOURS["memory"])
        == 3
    ),
)
case("score to loss", lambda: transformer.score_to_loss({"a": 0.0, "b": 0.0, "c": -1e3}, "b"),
    heights=[0.0, 0.0, -1e3, 0.5, 0.5, 0.0], within=["−ln 0.5 = 0.693"])  # fmt: skip
case(
    "teacher forcing",
    lambda: transformer.draw_teacher_forcing(
        ["two", "cats", "<eos>"], ["<bos>", "两", "只"], ["两", "只", "猫"]
    ),
    within=["decoder input"],
    said="the decoder's <bos> 两 只. The labels are 两 只 猫",
)
case("training step", transformer.draw_training_step, within=["batch", "loss", "AdamW", "schedule"])
ONE = {"small": 0.001, "large": 10.0}
case(
    "adam",
    lambda: transformer.draw_adam(
        {"small": [0.002, 0.001], "large": [30.0, 10.0]},
        {name: value / 2 for name, value in ONE.items()},
        ONE,
        {"small": 0.98, "large": 1.02},
    ),
    within=["0.002, 0.001", "0.0005", "0.98", "1.02"],
    said="large: gradients 30, 10, step 1.0",
)
SEES = torch.tensor([[True, False], [True, True]])
case(
    "who looks",
    lambda: transformer.who_looks(
        {"a": (SEES, ["p", "q"], ["x", "y"]), "b": (SEES[:, :1], ["p", "q"], ["z"])}
    ),
    titles=["a", "b"],
    xticks=["x", "y", "z"],
)
case(
    "asked for",
    lambda: transformer.asked_for(
        {"plain": torch.eye(2), "smoothed": torch.full((2, 2), 0.5)}, ["x", "y"], ["x", "y"]
    ),
    titles=["plain", "smoothed"],
)
ROWS = [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}]
case(
    "warm-up",
    lambda: transformer.warm_up_curves({("Pre-LN", True): ROWS, ("Post-LN", False): ROWS}),
    colour_of={"Pre-LN, with": COLOURS["Pre-LN"], "Post-LN, without": COLOURS["Post-LN"]},
    holds=lambda ax: (
        {line.get_label() for line in ax.lines if line.get_linestyle() == "--"}
        == {"Post-LN, without"}
    ),
)
case("by length", lambda: transformer.by_length({2: 1.0, 3: 0.5}, trained=2), ys=[[1.0, 0.5]],
    patches=1)  # fmt: skip
case(
    "confidence",
    lambda: transformer.confidence([0.5, 0.7, 0.9], {"falls": [3, 2, 1], "turns": [3, 1, 2]}),
    texts=["least at 0.70"],  # only what is least inside is marked
)
refused(lambda: transformer.confidence([0.5, 0.7], {"falls": [3, 2, 1]}), "3")
case(
    "stages of pretraining",
    lambda: pretraining.draw_questions(["a", "b", "c"]),
    texts=["example 1", "a", "b", "example 2", "a", "b", "c"],
    said="After a b comes c.",
)
case(
    "text blocks",  # two blocks of three, and g to be said
    lambda: pretraining.draw_text_blocks(list("abcdefg"), 3),
    end=[*"abcdefg", *(one for pair in zip("abcdef", "bcdefg", strict=True) for one in pair)],
    said="cut into 2 blocks of 3",
)
case("pretraining step", lambda: pretraining.draw_pretraining_step(batches=4),
    has=["batch 1", "batch 2", "batch 3", "batch 4", "clipped"],
    count={"batch 5": 0, "batch 0": 0})  # fmt: skip
LOSSES = [{"step": i + 1, "loss": loss} for i, loss in enumerate([4.0, 2.0, 0.0])]
case("known levels",
    lambda: pretraining.known_levels(LOSSES, {"guess": 5.0, "table": 3.0}, smooth=1),
    ys=[[3.0, 2.0, 1.0], [5.0, ...], [3.0, ...]], texts=["guess", "table"])  # fmt: skip
RUNS = {"small": torch.tensor([[3.0, 2.0], [1.0, 0.0]]), "whole": torch.ones(2, 2)}
case("read again", lambda: pretraining.read_again({"train": RUNS, "validation": RUNS}, [1, 2]),
    ys=[[2.0, 1.0], ...], titles=["its own text", "held-out text"])  # fmt: skip
case("where bits go",
    lambda: pretraining.where_bits_go({"begin": 3.0, "go on": 1.0}, {"begin": 0.6, "go on": 0.4}),
    widths=[3.0, 1.0, 0.6, 0.4], yticks=["begin", "go on", ...])  # fmt: skip
