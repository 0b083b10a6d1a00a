"""Drawings of GPT, BERT, the three families, the block of today, and a public translator."""

import pytest
import torch
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from drawing_cases import case, refused
from tinytf.relative import half_split_order
from tinytf.viz.style import ATTENTION, CYCLE
from tinytf_course import drawings as viz
from tinytf_course.drawings import bert, decoder_only, families, llama, marian

# ---- GPT

case("what remains", decoder_only.draw_what_remains,
    mentions={"cross-attention": 1, "memory": 1, "causal": 2})  # fmt: skip
case("gpt",
    lambda: decoder_only.draw_gpt(placeholders=("positions", "stack"), shapes={"ids": [2, 5]}),
    within=["(2, 5)", "(B, T, V)"], said="Still placeholders: positions and stack.")  # fmt: skip
case("finished gpt", decoder_only.draw_gpt, unsaid=["placeholders"])
case(
    "writing",  # c is on top of the first step, and at the bottom of the second
    lambda: decoder_only.draw_writing(["a", "b"], ["c", "d"], layers=3),
    count={"k v": 3 * (2 + 3), "c": 2, "d": 1},
    said="2 steps of writing",
)
refused(lambda: decoder_only.draw_writing(["a", "b"], []), "2 tokens of a prompt and 0 written")
case("name table", lambda: decoder_only.draw_name_table(["attn.c_attn", "mlp.c_fc"]),
    mentions={"transposed": 2, "split": 1},
    said="Stored the other way round: attn.c_attn, mlp.c_fc.")  # fmt: skip
case("who hears",
    lambda: decoder_only.who_hears({"a": torch.eye(3), "b": 2 * torch.eye(3)}, ["x", "y", "z"]),
    titles=["a", "b"], scales=[(0, 2), (0, 2)])  # fmt: skip
case("gaps", lambda: decoder_only.gaps({"right": 1e-6, "wrong": 0.5}), texts=["1e-06", "0.5"],
    dots=[[1e-6], [0.5]])  # fmt: skip
case("ranking",
    lambda: viz.ranking([("table", 2.0), ("model", 1.0), ("model", 0.5)], colors={"model": 3}),
    yticks=["table", "model", "model"], widths=[2.0, 1.0, 0.5], filled={CYCLE[3]: 2})  # fmt: skip
refused(lambda: viz.ranking({}), "at least one")
case(
    "text bits",
    lambda: viz.text_bits(["ab", " c\n", "d"], [0.0, 5.0, 40.0]),
    holds=lambda ax: "".join(text.get_text() for text in ax.texts) == "ab c↵d",
    inks=[ATTENTION(0.0), ATTENTION(0.5), ATTENTION(1.0)],
    corners=[(0, 0), (2, 0), (0, 1)],
)
case("text bits in two rows",
    lambda: viz.text_bits(["x" * 60, "y" * 44, "$", "z" * 103], [1.0] * 4),
    corners=[(0, 0), (60, 0), (0, 1), (1, 1)], has=[r"\$"])  # fmt: skip
refused(lambda: viz.text_bits(["a", "b"], [1.0]), "2 tokens for 1 numbers")
case("next tokens", lambda: viz.next_tokens([0.1, 0.6, 0.3], ["a", " b", "\n"], "x", most=2),
    yticks=["' b'", r"'\n'"], widths=[0.6, 0.3],
    said=r"after 'x', with their probabilities: ' b' 0.60, '\n' 0.30.")  # fmt: skip
refused(lambda: viz.next_tokens([0.1, 0.6, 0.3], ["a", "b"], "x"), "3 probabilities for 2 tokens")

# ---- BERT, and the three families

case("input card", lambda: viz.input_card(["[CLS]", "猫", "[SEP]"], [0, 0, 1]),
    count={"[CLS]": 1, "[SEP]": 1, "0": 3, "1": 2, "2": 1},
    holds=lambda ax: len({patch.get_facecolor() for patch in ax.patches}) == 2)  # fmt: skip
refused(lambda: viz.input_card(["a", "b"], [0]), "2 tokens do not match 1 segments")
refused(lambda: viz.input_card([], []), "no tokens")
case("tag bars",
    lambda: viz.tag_bars(["in", "may"], torch.tensor([[0.1, 0.7, 0.2], [0.5, 0.0, 0.5]])),
    heights=[0.7, 0.0, 0.2, 0.5], bottoms=[0, 0, 0.7, 0.0])  # fmt: skip
refused(lambda: viz.tag_bars(["a", "b", "c"], torch.ones(2, 3)),
    r"3 words need probabilities \(3, 3\), got \(2, 3\)")  # fmt: skip
SEEDS = {"one": {"a": [0.2, 0.4], "b": [0.9]}, "two": {"b": [0.5, 0.7]}}
case(
    "group dots",
    lambda: viz.group_dots(SEEDS, reference={"chance": 0.5}, colors={"a": 3}),
    dot_heights=[[0.2, 0.4], [0.9], [0.5, 0.7]],
    holds=lambda ax: (
        [line.get_ydata()[0] for line in ax.lines if line.get_marker() != "o"]
        == pytest.approx([0.5, 0.3, 0.9, 0.6])
        and CYCLE[3] in [line.get_color() for line in ax.lines if line.get_marker() == "o"]
    ),
    legend=["chance", "a", "b"],
)
refused(lambda: viz.group_dots({"one": {}}), "every group needs a series")
case("bert", bert.draw_bert, has=["word rows", "position rows", "segment rows"],
    said="three rows are added")  # fmt: skip
case("words that BERT is asked for",
    lambda: bert.draw_masked_words(["a", "cat", "ran"], {1: "<mask>", 2: "ran"}),
    count={"head": 2, "ran": 2, "cat": 1}, said="cat as <mask>, ran as ran")  # fmt: skip
refused(lambda: bert.draw_masked_words(["a", "cat", "ran"], {3: "<mask>"}),
    "place 3 is not one of 3 words")  # fmt: skip
case("heads of bert", bert.draw_heads,
    has=["a class for the text", "a tag for each word", "first and last word"],
    said="classifier gets the state of [CLS] alone")  # fmt: skip
case("two steps of bert", bert.draw_two_steps, count={"BERT's body": 2},
    has=["copy", "a head for words", "a new head for tags"],
    said="copies the body to the right half")  # fmt: skip
case(
    "spoiled rows",
    lambda: viz.spoiled_rows(
        {"text": [("a", 0), ("b", 1)], "noised": [("<mask>", None), ("b", 1)]}
    ),
    texts=["a", "b", "<mask>", "b"],
    inks=[ATTENTION(0.08), ATTENTION(0.58), to_rgba(viz.style.GOLD), ATTENTION(0.58)],
)
refused(lambda: viz.spoiled_rows({"empty": []}), "at least one word in each text")
case(
    "three questions",  # <0> where the encoder reads it, and before the span
    lambda: families.draw_three_questions(list("abcdef"), hidden=[1, 4], span=(2, 3)),
    count={"<mask>": 2, "<0>": 2},
    end=["<0>", "c", "d", "<1>"],
    said="the encoder reads a b <0> e f, and the decoder's target is <0> c d <1>",
)
case(
    "dropped spans",
    lambda: families.draw_dropped_spans(
        list("abcde"), [False, True, True, False, True], ["<0>", "<1>", "<2>"]
    ),
    said="The encoder reads a <0> d <1>. The decoder writes <0> b c <1> e <2>.",
)
case(
    "rescoring",
    lambda: families.draw_rescoring(
        "it ate", ["grass", "meat"], "quickly", [(0.5, 0.02, 0.8), (0.25, 0.01, 0.2)]
    ),
    has=["it ate ___ quickly", "0.500", "2e-02", "80%", "0.250", "1e-02", "20%"],
)

case("prompts",
    lambda: families.draw_prompts({"one": (["a =", "b ="], "c"), "two": (["d ="], "e")}),
    has=["one", "a =", "b =", "c", "two", "d =", "e"], count={"continues": 2},
    said="one: the prompt is a = / b =, and the model continues: c.")  # fmt: skip

# ---- the block today, and a public translator

for heads, keys in ((8, 2), (4, 4), (6, 1)):
    group = heads // keys
    case(
        f"{keys} groups of heads",
        lambda heads=heads, keys=keys: viz.head_groups(heads, keys),
        count={},
        holds=lambda ax, heads=heads, keys=keys, group=group: (
            sum(isinstance(patch, Rectangle) for patch in ax.patches) == heads + 2 * keys
            and [line.get_xdata()[1] for line in ax.lines]
            == pytest.approx(
                [line.get_xdata()[0] // group * group + group / 2 for line in ax.lines]
            )
            and len(ax.lines) == heads
        ),
    )
refused(lambda: viz.head_groups(6, 4), "num_heads=6 is not divisible by num_kv_heads=4")
case(
    "seed dots",
    lambda: viz.seed_dots(
        {"a": torch.tensor([1.0, 2.0, 6.0]), "b": [4.0]}, band="a", xlabel="bits"
    ),
    xs=[[1.0, 2.0, 6.0], [3.0, 3.0], ...],
    yticks=["a", "b"],
    widths=[5.0],
    corners=[(1.0, 0)],
)
refused(lambda: viz.seed_dots({}), "at least one name")
refused(lambda: viz.seed_dots({"a": []}), "at least one name")
refused(lambda: viz.seed_dots({"a": [1.0]}, band="b"), r"band='b' is not among \['a'\]")
case(
    "swaps",
    lambda: llama.draw_swaps(done=(1, 3)),
    has=["swap 1", "swap 2", "swap 3", "swap 4", "swap 5"],
    count={"swap 6": 0, "+": 5},  # GPT adds positions, and each block two sublayers
    said="Done so far: 1, 3.",
)
case("no swap", llama.draw_swaps, said="Done so far: none.")
case("sharing", lambda: llama.draw_sharing(6, (6, 3, 1)),
    titles=["multi-head: one each", "grouped: 3 groups", "multi-query: one for all"],
    patches=6 + 12 + 6 + 6 + 6 + 2)  # fmt: skip
case(
    "row order",
    lambda: llama.draw_row_order(6),
    holds=lambda ax: (
        [
            t.get_text()
            for t in sorted(ax.texts, key=lambda t: t.get_position()[0])
            if t.get_text().startswith("row ") and t.get_position()[1] < 2
        ]
        == [f"row {n}" for n in half_split_order(6).tolist()]
    ),
)
refused(lambda: llama.draw_row_order(7), "a width of 7 is odd")
case(
    "experts",  # softmax of 3 and 2
    lambda: llama.draw_experts((0.0, 3.0, 1.0, 2.0)),
    count={f"expert {e}": int(e < 4) for e in range(5)} | {"· 0.73": 1, "· 0.27": 1},
    said="0.73 times expert 1 and 0.27 times expert 3",
)
refused(lambda: llama.draw_experts((1.0,)), "a token needs two experts, got 1 scores")
case("choices", marian.draw_choices,
    has=[word for _, _, ours, theirs, _ in marian.CHOICES for word in (ours, theirs)],
    said="6 + 6 layers: ours ReLU, theirs swish")  # fmt: skip
WRITER, READER = torch.tensor([[1.0], [2], [7]]), torch.tensor([[3.0, 4, 5]])
case(
    "reorder",
    lambda: marian.draw_reorder(WRITER, WRITER[:, 0], READER, [2, 0, 1]),
    count={"46": 2},  # 1·3 + 2·4 + 7·5, before and after
    said="in the order 2, 0, 1",
)
case("start", marian.draw_start, count={"<pad>": 2}, has=["<start>"], said="two jobs")
