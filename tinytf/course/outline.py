"""The course's chapters: the one place for their titles, questions, minutes and order.

README's table, the heads of the notebooks and the course map follow from it (`python -m
tinytf.course build` and `readme` write them), or are tested against it.
"""

import re
import textwrap
from pathlib import Path
from typing import NamedTuple

from tinytf.course.tables import Link, table


class Chapter(NamedTuple):
    """A chapter; `minutes` and `needs` are None while it is not written."""

    number: str
    title: str
    question: str
    minutes: int | None = None
    needs: str | None = None

    @property
    def time(self):
        """The head's last sentences: how long it takes, and what one has to know."""
        needs = f" You need: {self.needs}." if self.needs else ""
        return textwrap.fill(f"About {self.minutes} minutes.{needs}", 100, break_on_hyphens=False)


CHAPTERS = (  # in the order of reading; some numbers have parts
    Chapter(
        "00", "Start here", "What does a Transformer look at when it translates?", 60,
    ),
    Chapter(
        "01", "Recurrent networks",
        "What does a network remember that reads one word after another?", 45,
        "Python and a little PyTorch",
    ),
    Chapter(
        "01b", "From recurrence to attention",
        "Why did models stop reading one word after another?", 85,
        "the GRU cell and `unroll` (01)",
    ),
    Chapter(
        "02", "Tokens", "How does text become numbers?", 70, "Python and a little PyTorch",
    ),
    Chapter(
        "02b", "Embeddings", "How does a number become a vector that means something?", 50,
        "tokens and their ids (02), Python and a little PyTorch",
    ),
    Chapter(
        "03", "Scaled dot-product attention",
        "How does one word look up what it needs in the others?", 90,
        "a word is a vector (chapter 02)",
    ),
    Chapter(
        "04", "Multi-head attention", "Why look several times at once?", 65,
        "attention and its masks (chapter 03)",
    ),
    Chapter(
        "04b", "Cross-attention", "How does one sentence look into another?", 55,
        "masks (chapter 03), heads (chapter 04)",
    ),
    Chapter(
        "05", "Positional encoding", "How does attention know the order of the words?", 80,
        "attention and its masks (chapter 03), heads (chapter 04)",
    ),
    Chapter(
        "05b", "RoPE and ALiBi", "How can a score depend on the distance of two words alone?", 60,
        "positions (chapter 05), the layer of chapter 04b",
    ),
    Chapter(
        "06", "Residuals and normalisation", "What keeps a deep stack trainable?", 100,
        "chapters 02 to 05, and what a gradient is",
    ),
    Chapter(
        "07", "The feed-forward network",
        "Where are most of the weights, and what do they hold?", 100,
        "attention (chapters 03, 04), residuals and norms (06)",
    ),
    Chapter(
        "08", "The encoder", "What does each layer add to a word?", 110,
        "attention (03, 04), positions (05), residuals and norms (06), the feed-forward network "
        "(07)",
    ),
    Chapter(
        "09", "The decoder", "How does it learn to write without seeing the future?", 110,
        "the causal mask (chapter 03), cross-attention (04b), residuals (06), the encoder (08)",
    ),
    Chapter(
        "10", "The Transformer",
        "How do the parts become one model, and what is it asked for?", 80,
        "residuals and norms (06), the layers of encoder and decoder (08, 09)",
    ),
    Chapter(
        "10b", "Training the Transformer", "Do the parts, put together, translate?", 75,
        "the Transformer and its loss (10), what a gradient is",
    ),
    Chapter(
        "11", "Searching for a sentence",
        "How does a model that scores words write a sentence?", 110,
        "the Transformer (chapter 10) and its training (10b)",
    ),
    Chapter(
        "11b", "The cache and BLEU", "How fast does it write, and how good is it?", 105,
        "multi-head attention (chapter 04), greedy decoding (11)",
    ),
    Chapter(
        "12", "GPT", "What is left of the Transformer when there is only text?", 95,
        "the causal mask (chapter 03), positions (05), Pre-LN (06), the layer (08), the "
        "Transformer (10), its cache (11b)",
    ),
    Chapter(
        "12b", "Pretraining", "How does a model learn from nothing but text?", 105,
        "GPT (chapter 12), the training loop (10b), byte-pair encoding (02)",
    ),
    Chapter(
        "13", "Sampling", "Which of the likely tokens do we write down?", 105,
        "a GPT that continues a text (chapter 12), and the cache (11)",
    ),
    Chapter(
        "14", "BERT", "What can an encoder learn from plain text, and what is it good for?", 105,
        "residuals and norms (06), the encoder and its masked words (08), a training loop (10b)",
    ),
    Chapter(
        "14a", "Three families", "Encoder, decoder or both: which for which task?", 105,
        "the Transformer (chapter 10) and its training (10b), GPT (12), masked words (14)",
    ),
    Chapter(
        "14b", "The block today",
        "What has changed in the block since 2017, and what does it buy?", 110,
        "RoPE (chapter 05b), RMSNorm (06), SwiGLU (07), the cache (11b), GPT (12)",
    ),
    Chapter(
        "14c", "A public translator",
        "Does our code run a translator that somebody else trained?", 65,
        "positions (chapter 05), Pre-LN (06), the whole Transformer (10), greedy decoding (11)",
    ),
    Chapter(
        "14d", "Images", "How does an encoder read what is no text?", 80,
        "learned positions (chapter 05), the encoder (08), the training loop (10b)",
    ),
    Chapter(
        "15", "Counting the cost", "What does a longer text cost, in time and memory?", 85,
        "the fused kernel (chapter 03), the layer (08), the cache (11b), GPT (12)",
    ),
    Chapter(
        "15b", "Less, and in parallel", "How does one pay less, and share the work?", 95,
        "chapter 15, attention and masks (chapter 03), what a gradient is",
    ),
    Chapter("16", "Looking inside", "Which head does what, and how do we know?"),
    Chapter("17", "The bug clinic", "Which models train and are wrong?"),
)  # fmt: skip


def head(text, chapter):
    """A notebook's first cell with the chapter's title, question and minutes, the rest as it is.

    The cell begins with the title as a heading and the question in bold; the paragraph that begins
    with "About" and minutes ends with what the reader needs. Raises ValueError if one is missing.
    """
    for form, fact in (
        (r"\A# .*$", f"# {chapter.number} {chapter.title}"),
        (r"(?<=\n\n)\*\*[^*]+\*\*(?=\n\n|\Z)", f"**{chapter.question}**"),
        (r"(?:(?<=^)|(?<=\. ))About \d+ minutes(?:.|\n(?!\n))*", chapter.time),
    ):
        text, count = re.subn(form, lambda _, fact=fact: fact, text, count=1, flags=re.M)
        if not count:
            raise ValueError(f"the first cell of chapter {chapter.number} does not say {fact!r}")
    return text


def chapter_table(folder):
    """The README's table of the chapters that lie in `folder`, in Markdown."""
    lines = ["| | question | time |", "|---|---|---|"]
    for chapter in CHAPTERS:
        for path in sorted(Path(folder).glob(f"{chapter.number}_*.ipynb")):
            link = f"[{chapter.number} {chapter.title}]({Path(folder).name}/{path.name})"
            lines.append(f"| {link} | {chapter.question} | {chapter.minutes} minutes |")
    return "\n".join(lines)


def outline(folder="."):
    """A table of the chapters; those whose notebook lies in `folder` are links to it."""
    rows = []
    for number, title, question, *_ in CHAPTERS:
        found = sorted(path.name for path in Path(folder).glob(f"{number}_*.ipynb"))
        name = Link(title, found[0]) if found else title
        rows.append((number, name, question, "" if found else "to come"))
    return table(("", "chapter", "question", ""), rows)
