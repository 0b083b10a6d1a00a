"""The course's chapters: the one place for their titles, questions, minutes and order.

README's table, the heads of the notebooks and the course map follow from it (`python -m
tinytf_course build` and `readme` write them), or are tested against it.
"""

import re
import textwrap
from pathlib import Path
from typing import NamedTuple

from tinytf_course.online import badges
from tinytf_course.tables import Link, table


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


CHAPTERS = (  # in the order of reading
    Chapter(
        "00", "Start here", "What does a Transformer look at when it translates?", 60,
    ),
    Chapter(
        "01", "Recurrent networks",
        "What does a network remember that reads one word after another?", 55,
        "Python and a little PyTorch",
    ),
    Chapter(
        "02", "From recurrence to attention",
        "Why did models stop reading one word after another?", 90,
        "the GRU cell and `unroll` (01)",
    ),
    Chapter(
        "03", "Tokens", "How does text become numbers?", 75,
        "Python and a little PyTorch",
    ),
    Chapter(
        "04", "Embeddings", "How does a number become a vector that means something?", 60,
        "tokens and their ids (03), Python and a little PyTorch",
    ),
    Chapter(
        "05", "Scaled dot-product attention",
        "How does one word look up what it needs in the others?", 100,
        "a word is a vector (chapter 04)",
    ),
    Chapter(
        "06", "Multi-head attention", "Why look several times at once?", 70,
        "attention and its masks (chapter 05)",
    ),
    Chapter(
        "07", "Cross-attention", "How does one sentence look into another?", 55,
        "masks (chapter 05), heads (chapter 06)",
    ),
    Chapter(
        "08", "Positional encoding", "How does attention know the order of the words?", 90,
        "attention and its masks (chapter 05), heads (chapter 06)",
    ),
    Chapter(
        "09", "RoPE and ALiBi",
        "How can a score depend on the distance of two words alone?", 70,
        "positions (chapter 08), the layer of chapter 07",
    ),
    Chapter(
        "10", "Residuals and normalisation", "What keeps a deep stack trainable?", 95,
        "chapters 03 to 09, and what a gradient is",
    ),
    Chapter(
        "11", "The feed-forward network",
        "Where are most of the weights, and what do they hold?", 90,
        "attention (05 to 07), residuals and norms (10)",
    ),
    Chapter(
        "12", "The encoder", "What does each layer add to a word?", 90,
        "attention (05 to 07), positions (08), residuals and norms (10), the feed-forward network "
        "(11)",
    ),
    Chapter(
        "13", "The decoder", "How does it learn to write without seeing the future?", 85,
        "the causal mask (chapter 05), cross-attention (07), the encoder (12)",
    ),
    Chapter(
        "14", "The Transformer",
        "How do the parts become one model, and what is it asked for?", 85,
        "residuals and norms (10), the layers of encoder and decoder (12, 13)",
    ),
    Chapter(
        "15", "Training the Transformer", "Do the parts, put together, translate?", 75,
        "the Transformer and its loss (14), what a gradient is",
    ),
    Chapter(
        "16", "Searching for a sentence",
        "How does a model that scores words write a sentence?", 90,
        "the Transformer (chapter 14) and its training (15)",
    ),
    Chapter(
        "17", "The cache and BLEU", "How fast does it write, and how good is it?", 100,
        "the attention layer (chapter 07), the decoder (13), greedy decoding (16)",
    ),
    Chapter(
        "18", "GPT", "What is left of the Transformer when there is only text?", 90,
        "the causal mask (chapter 05), positions (08), Pre-LN (10), the layer (12), the "
        "Transformer (14), its cache (17)",
    ),
    Chapter(
        "19", "Pretraining", "How does a model learn from nothing but text?", 90,
        "GPT (chapter 18), the training loop (15), byte-pair encoding (03)",
    ),
    Chapter(
        "20", "Sampling", "Which of the likely tokens do we write down?", 90,
        "a GPT that continues a text (chapters 18, 19), and the cache (17)",
    ),
    Chapter(
        "21", "BERT",
        "What can an encoder learn from plain text, and what is it good for?", 90,
        "residuals and norms (10), the encoder and its masked words (12), a training loop (15)",
    ),
    Chapter(
        "22", "Three families", "Encoder, decoder or both: which for which task?", 90,
        "the Transformer (chapter 14) and its training (15), GPT (18), masked words (21)",
    ),
    Chapter(
        "23", "The block today",
        "What has changed in the block since 2017, and what does it buy?", 90,
        "RoPE (chapter 09), RMSNorm (10), SwiGLU (11), the cache (17), GPT (18)",
    ),
    Chapter(
        "24", "A public translator",
        "Does our code run a translator that somebody else trained?", 68,
        "positions (chapter 08), Pre-LN (10), the whole Transformer (14), greedy decoding (16)",
    ),
    Chapter(
        "25", "Images", "How does an encoder read what is no text?", 80,
        "learned positions (chapter 08), the encoder (12), the training loop (15)",
    ),
    Chapter(
        "26", "Counting the cost", "What does a longer text cost, in time and memory?", 91,
        "the fused kernel (chapter 05), the layer (12), the cache (17), GPT (18)",
    ),
    Chapter(
        "27", "Less, and in parallel", "How does one pay less, and share the work?", 91,
        "chapter 26, attention and masks (05), what a gradient is",
    ),
    Chapter(
        "28", "Looking inside", "Which head does what, and how do we know?", 90,
        "heads (chapter 06), cross-attention (07), RoPE (09), the Transformer (14), GPT (18)",
    ),
    Chapter(
        "29", "Following an answer", "Where in a model is an answer decided?", 90,
        "the residual stream and its norms (chapter 10), the decoder (13), GPT (18), and `record` "
        "and `replace` (28)",
    ),
    Chapter(
        "30", "The bug clinic", "Which models train and are wrong?", 91,
        "masks (chapter 05), the decoder (13), the Transformer and its training (14, 15), the "
        "cache (17)",
    ),
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
    for chapter, path in _written(folder):
        link = f"[{chapter.number} {chapter.title}]({Path(folder).name}/{path.name})"
        elsewhere = badges(path.name)
        elsewhere = f" {elsewhere} |" if elsewhere else ""
        lines.append(f"| {link} | {chapter.question} | {chapter.minutes} minutes |{elsewhere}")
    if badges("x"):
        lines[:2] = ["| | question | time | open in |", "|---|---|---|---|"]
    return "\n".join(lines)


def hours(folder):
    """The README's sentence on how long the chapters that lie in `folder` take, in Markdown."""
    minutes = [chapter.minutes or 0 for chapter, _ in _written(folder)]
    if not minutes:
        return ""
    some = sorted(minutes)[len(minutes) // 2]
    return (
        f"**It takes** about {sum(minutes) / 60:.0f} hours in all, exercises included: "
        f"{len(minutes)} chapters, most of about {some} minutes."
    )


def _written(folder):
    for chapter in CHAPTERS:
        for path in sorted(Path(folder).glob(f"{chapter.number}_*.ipynb")):
            yield chapter, path


def outline(folder="."):
    """A table of the chapters; those whose notebook lies in `folder` are links to it."""
    rows = []
    for number, title, question, *_ in CHAPTERS:
        found = sorted(path.name for path in Path(folder).glob(f"{number}_*.ipynb"))
        name = Link(title, found[0]) if found else title
        rows.append((number, name, question, "" if found else "to come"))
    return table(("", "chapter", "question", ""), rows)
