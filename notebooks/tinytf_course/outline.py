"""The course's chapters: the one place for their titles, questions, minutes and order.

The core is what one needs to build, train and understand the Transformer; beside it stand what
`electives` names and `elective` chapters. README, heads, syllabi and the map follow from here.
"""

import textwrap
from pathlib import Path
from typing import NamedTuple

from tinytf_course.tables import Link, table


class Chapter(NamedTuple):
    """A chapter; `minutes` is what it takes without its `electives`, exercises included.

    Electives are named by the id of the cell whose heading begins them ("gates 8": 8 minutes), an
    exercise by its own ("02.1 8"). An `elective` chapter has no part in the core.
    """

    number: str
    title: str
    question: str
    minutes: int | None = None
    needs: str | None = None
    electives: str = ""
    elective: bool = False

    @property
    def pieces(self):
        """{id: minutes} of its electives."""
        pairs = (piece.split() for piece in filter(None, self.electives.split(", ")))
        return {name: int(minutes) for name, minutes in pairs}

    @property
    def core(self):
        """The minutes of its part of the core."""
        return 0 if self.elective else self.minutes or 0

    @property
    def beside(self):
        """The minutes of all of it that is not core."""
        return (self.minutes or 0) - self.core + sum(self.pieces.values())

    @property
    def time(self):
        """The head's last sentences: how long it takes, and what one has to know."""
        more = sum(self.pieces.values())
        electives = f", and {more} more for its electives" if more else ""
        whole = " The whole chapter is elective." if self.elective else ""
        needs = f" You need: {self.needs}." if self.needs else ""
        text = f"About {self.minutes} minutes{electives}.{whole}{needs}"
        return textwrap.fill(text, 100, break_on_hyphens=False)


CHAPTERS = (  # in the order of reading
    Chapter(
        "00", "Start here",
        "What does a Transformer look at when it translates, and can you train one yourself?", 55,
        electives="00.2 5, graded-not-admired 16, further-links 4",
    ),
    Chapter(
        "01", "Recurrent networks",
        "How does a network read a sentence one word at a time, and how far back does it remember?",
        40, "Python and a little PyTorch",
        electives="01.2 6, further 3, open-the-gates 6, gates-one-by-one 3, gru 6",
    ),
    Chapter(
        "02", "From recurrence to attention",
        "Why was attention added to recurrent networks, and why was the recurrence then dropped?",
        55, "recurrent networks and `unroll` (chapter 1)",
        electives="02.1 8, 02.3 8, 02.4 8, the-price 4, shared-out 4, is-q-k-v-same-thing 6, "
        "dot-and-square-text 6, how-much-data 6, both-readers 8",
    ),
    Chapter(
        "03", "Tokens", "How does text become numbers, and into which pieces is it cut first?", 55,
        "Python and a little PyTorch",
        electives="pattern-text 2, possible-ids 11, faulty-tokenizers 9, oracle-hugging-face 3, "
        "typed-special 2",
    ),
    Chapter(
        "04", "Embeddings", "How does a number become a vector that means something?", 50,
        "tokens and their ids (chapter 3), Python and a little PyTorch",
        electives="04.1 10, sum-mean-and-softmax 4, analogies-honestly-text 6, "
        "two-languages-one-space 8, narrow-table 4, frozen-text 4, tied-output-text 6",
    ),
    Chapter(
        "05", "Scaled dot-product attention",
        "How does a word find what it needs in the other words of its sentence?", 80,
        "words as vectors (chapter 4)",
        electives="05.1 8, 05.3 15, further 1, further-rounded 2, further-kept 2, "
        "further-values 2, scale-as-tensor-text 2",
    ),
    Chapter(
        "06", "Multi-head attention",
        "Why does attention need several heads, and how are they computed at once?", 40,
        "attention and its masks (chapter 5)",
        electives="further 4, silencing 7, translator-heads-text 3, what-do-heads-cost 4, "
        "mask-meets-heads 24, several-heads-lower-variance 3",
    ),
    Chapter(
        "07", "Cross-attention",
        "How does a token attend to another sentence, and what does the mask have to hide there?",
        50, "masks (chapter 5), heads (chapter 6)",
        electives="fused-kernel 9",
    ),
    Chapter(
        "08", "Positional encoding", "How does attention know the order of the words?", 65,
        "attention and its masks (chapter 5), heads (6)",
        electives="08.3 10, learned-rows-text 4, step-is-rotation 2, design-text 12, "
        "multiplied-text 2, position-probe-text 3, two-slips-text 3",
    ),
    Chapter(
        "09", "RoPE and ALiBi",
        "How can attention depend on the distance between two words, and not on where they are?",
        45, "positions (chapter 8), the attention layer of chapter 7",
        electives="li-bi-slope 22, past-training-length 9, paired-otherwise-text 1, "
        "half-split-text 3, ro-pe-turn-queries-and-keys-caption-3 1, how-far-can-it-reach 4, "
        "cost-text 4",
    ),
    Chapter(
        "10", "Residuals and normalisation", "What makes a deep stack of layers trainable?", 80,
        "chapters 3 to 9, and what a gradient is",
        electives="10.2 10, 10.3 8, alike-text 2, norms-cost-text 3, which-numbers-share-mean 6, "
        "batch-norm-in-use 20, used-by-text 3, jacobian 4, left-of-words-text 3, "
        "move-it-stack-as-training-starts 5, w2-gradients-text 2, longer-runs-text 4, "
        "plug-it-in 4, plug-it-in-text 5, rows-shown 3",
    ),
    Chapter(
        "11", "The feed-forward network",
        "What can a feed-forward network do that attention can't, and what do its weights hold?",
        60, "attention (chapters 5 to 7), residuals and norms (chapter 10)",
        electives="11.2 8, 11.4 7, how-few-units-text 3, counted-over-text 1, "
        "as-many-weights-text 7, study-title 5, translator-text 8, votes-text 4, mirror-text 12, "
        "both-ends-of-a-unit 3, not-only-cat 3, not-only-cat-text 4, who-says-it 3, "
        "what-key-answers-to 4, collapse-text 6",
    ),
    Chapter(
        "12", "The encoder", "What does each layer add to a word?", 65,
        "attention (chapters 5 to 7), positions (8), residuals and norms (10), the feed-forward "
        "network (11)",
        electives="12.3 10, oracle-text 9, one-class-for-both 25, moved-is-not-understood 7, "
        "five-seeds 2, equal-starts 9, nine-words 5, which-layer 5, rows-of-a-batch 2, "
        "move-the-blank 3, move-the-blank-text 4",
    ),
    Chapter(
        "13", "The decoder", "How does a decoder learn to write without seeing the future?", 50,
        "the causal mask (chapter 5), cross-attention (7), the encoder (12)",
        electives="13.1 8, six-mistakes 11, what-makers-see 4, by-gradient 22, silent-and-gone 4, "
        "newest-only 6, relied-or-needed 10, relied-text 15",
    ),
    Chapter(
        "14", "The Transformer",
        "How do the parts fit together into one model, and what is that model trained to do?", 65,
        "residuals and norms (chapter 10), the layers of encoder and decoder (chapters 12 and 13)",
        electives="label-smoothing 21, count-it-text 5, rows-shown 7",
    ),
    Chapter(
        "15", "Training the Transformer", "Do the parts, put together, translate?", 60,
        "the Transformer and its loss (chapter 14), and what a gradient is",
        electives="same-steps 14, further 4, earlier-memory 6",
    ),
    Chapter(
        "16", "Searching for a sentence",
        "How does a model that scores single words write a whole sentence?", 40,
        "the Transformer (chapter 14) and its training (15)",
        electives="all-at-once 20, next-scores-text 5, version-2-text 4, long-and-short 24, "
        "when-a-beam-pays 7, every-sentence-heading 8, two-kinds-of-error 6, "
        "two-kinds-of-error-text 7, stopping-early 6, trees 3, why-log-softmax 2, "
        "search-to-repair 15",
    ),
    Chapter(
        "17", "The cache and BLEU", "How fast can a model write, and how good is what it writes?",
        65, "the attention layer (chapter 7), the decoder (13), greedy decoding (16)",
        electives="17.1 6, grow-and-reorder-text 2, layer-with-cache 10, read-or-written 4, "
        "check-cached-text 4, several-new 16, corpus-bleu-heading 18, bleu-scale 5, "
        "which-strings 5, one-point 4",
    ),
    Chapter(
        "18", "GPT", "How does a GPT write a story token by token, and what is it made of?", 65,
        "the causal mask (chapter 5), positional encodings (8), Pre-LN (10), the encoder layer "
        "(12), the Transformer (14), the KV cache (17)",
        electives="manual-writer-text 4, replaced-mask-heading 14, file-heading 24, "
        "left-padding 8, the-papers-text 4, more-efficient 4, to-discuss 5",
    ),
    Chapter(
        "19", "Pretraining",
        "How does a GPT learn from plain text, and when does it begin to make sense?", 70,
        "GPT (chapter 18), the training loop (15), byte-pair encoding (3)",
        electives="19.3 10, further 14, three-seeds-text 2, counters-speak 3, your-own-text 3, "
        "how-long 5, scaling-law-text 6, papers 2, decay-is-not-l2 3, second-corpus 8, "
        "each-on-and-off 6, again-and-again 6, where-are-the-bits 5, how-far-back 4, "
        "by-place-text 5, what-it-expects 3, after-cut-text 3",
    ),
    Chapter(
        "20", "Sampling",
        "A language model gives every token a probability. Which token should it write?", 70,
        "a GPT that continues a text (chapters 18, 19), and the KV cache (chapter 17)",
        electives="20.5 8, further 3, 20.4 12, ten-thousand-text 4, loop-text 9, repeats-text 2, "
        "loops-text 6, tail-text 4, sampling-text 6, ctrl-text 7, 20.2 8, price-text 5, "
        "judge-text 7, forbid-text 7, settings-page-text 4, oracle-text 2, generate-3-text 9, "
        "20.3 8, rows-shown 3",
    ),
    Chapter(
        "21", "BERT",
        "What does an encoder learn from text without labels, and what is that worth for a task?",
        45,
        "residuals and norms (chapter 10), the encoder and its masked words (chapter 12), a "
        "training loop (chapter 15)",
        electives="who-moves-whom 4, sentence-score 12, oracle 5, classifier 4, how-large 1, "
        "entailment 8, answers 19, states-of-2-text 5, counting 6, did-it-follow 25, "
        "next-sentence-saves-text 2, predict-a-text 4, keeping 5, distillation 8, relatives 4",
    ),
    Chapter(
        "22", "Three families",
        "Encoder-only, decoder-only or encoder-decoder: what does each learn from a text, and "
        "which task does it suit?",
        55,
        "the Transformer (chapter 14) and its training (chapter 15), GPT (chapter 18), masked "
        "words (chapter 21)",
        electives="which-spans-intro 23, short-texts 16, bart 27, examples-text 9, "
        "longer-intro 3, longer-text 3",
    ),
    Chapter(
        "23", "The block today",
        "Which parts of the block have been replaced since 2019, and what did each swap buy?", 80,
        "RoPE (chapter 9), RMSNorm (10), SwiGLU (11), the KV cache (17), GPT (18)",
        electives="23.1 18, hugging-face 25, conversation 8, experts-spread-text 6, longer-text 7, "
        "bias-of-keys-text 3, alone 5, groups-afterwards 11, sixth-text 3, save-time 2, sliding 3, "
        "save-time-2 4, one-key-for-all 5, shares-text 2, sixteen-bits 2, latent 7, after-llama 2",
    ),
    Chapter(
        "24", "A public translator",
        "Can our Transformer run a translator that other people have trained?", 70,
        "positional encodings (chapter 8), Pre-LN (10), the Transformer (14), greedy decoding (16)",
        electives="full-size 4, where-it-looks 5, public-text 10", elective=True,
    ),
    Chapter(
        "25", "Images", "How can the encoder of a Transformer read an image?", 80,
        "learned positions (chapter 8), the encoder (12), the training loop (15)",
        electives="time-series 6, further-mlp 6, further-geometry 5", elective=True,
    ),
    Chapter(
        "26", "Counting the cost",
        "How many operations and how much memory does a Transformer need, and how do both grow "
        "with the text?", 55,
        "the fused kernel (chapter 5), the encoder layer (12), Adam (15), GPT (18)",
        electives="26.2 12, new-table-text 2, prefill 21, paper 4, two-texts 4",
    ),
    Chapter(
        "27", "Less, and in parallel",
        "How can a Transformer be computed with less memory, less time and fewer bits?", 45,
        "what a Transformer costs (chapter 26), attention and masks (5), what a gradient is",
        electives="skipped-tiles 9, way-back-text 8, travels-text 1, less-than-square 26, "
        "sum-text 1, widths-text 6, loss-scaling 1, int8 4, padding-text 20, in-parallel 16, "
        "ddp-text 4, ring-heading 7, dividing 5, many-gpus 8, ladder-text 5",
    ),
    Chapter(
        "28", "Looking inside", "Which head does what, and how do we know?", 50,
        "heads (chapter 6), cross-attention (7), RoPE (9), the Transformer (14), GPT (18)",
        electives="hook-text 4, 28.1 10, instrument-text 12, by-the-mean-text 2, 28.3 10, "
        "apart-text 5, see-them 5, dependence-text 2, 28.2 10, circuit-text 25, five-seeds-text 4, "
        "one-learns-text 3, learned-text 5, by-place-text 12, weights-and-values 4, oracle-text 2, "
        "first-text 3, five-text 5, how-many-text 3, points-text 7",
    ),
    Chapter(
        "29", "Following an answer", "Where in a model is an answer decided?", 45,
        "the residual stream and its norms (chapter 10), the encoder and its probes (12), the "
        "decoder (13), and `record` and `replace` (28)",
        electives="fit-probe-text 4, noun-swap-text 3, control-heading 3, 29.3 10, "
        "writer-lens-text 8, decided-heading 3, 29.1 8, no-norm-text 3, tuned-text 16, adding 15, "
        "attention-text 5, units-heading 3, superposition-text 9, five-text 5, counts-text 19",
    ),
    Chapter(
        "30", "The bug clinic",
        "How do you find a mistake in a program that runs and trains without an error?", 50,
        "masks (chapter 5), the decoder (13), the Transformer and its training (14, 15), the KV "
        "cache (17)",
        electives="30.3 10, 30.1 12, entrances 9, rate-text 12, false-alarms 3, margins-text 2, "
        "severity 14, four-text 4, ward 4, score-card 15",
    ),
)  # fmt: skip


def in_hours(chapters=CHAPTERS):
    """How long the core of these chapters takes, and their electives, in whole hours."""
    minutes = [(chapter.core, chapter.beside) for chapter in chapters]
    return [round(sum(column) / 60) for column in zip((0, 0), *minutes)]


def outline(folder="."):
    """A table of the chapters; those whose notebook lies in `folder` are links to it."""
    rows = []
    for chapter in CHAPTERS:
        found = sorted(path.name for path in Path(folder).glob(f"{chapter.number}_*.ipynb"))
        name = Link(chapter.title, found[0]) if found else chapter.title
        times = (str(n or "") for n in (chapter.core, chapter.beside)) if found else ("to come", "")
        rows.append((chapter.number, name, chapter.question, *times))
    return table(("", "chapter", "question", "core, minutes", "electives"), rows)
