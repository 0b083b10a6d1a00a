"""The course's chapters and the question that each one answers."""

from pathlib import Path

from tinytf.course.tables import Link, table

CHAPTERS = (  # number, title, question; 14 has three parts
    ("00", "Start here", "What does a Transformer look at when it translates?"),
    ("01", "From recurrence to attention", "Why did people stop reading one word after another?"),
    ("02", "Tokens and embeddings", "How does a word become numbers?"),
    (
        "03",
        "Scaled dot-product attention",
        "How does one word look up what it needs in the others?",
    ),
    ("04", "Multi-head and cross-attention", "Why look several times at once, and from where?"),
    ("05", "Positional encoding", "How does a model that sees a set find out the order?"),
    ("06", "Residuals and normalisation", "What keeps a deep stack trainable?"),
    ("07", "The feed-forward network", "Where are most of the weights, and what do they hold?"),
    ("08", "The encoder", "What does each layer add to a word?"),
    ("09", "The decoder", "How does it learn to write without seeing the future?"),
    ("10", "The Transformer", "Do the parts, put together, translate?"),
    ("11", "Decoding", "How does a model that scores words write a sentence?"),
    ("12", "GPT", "What can a decoder alone learn from plain text?"),
    ("13", "Sampling", "Why not always take the likeliest word?"),
    ("14", "Three families", "Which of encoder, decoder or both for which task?"),
    ("14b", "The block today", "What has changed in the block since 2017, and what for?"),
    ("14c", "The same parts elsewhere", "Does our code run a public translator, and read images?"),
    ("15", "Cost", "What does a longer text cost, in time and memory?"),
    ("16", "Looking inside", "Which head does what, and how do we know?"),
    ("17", "The bug clinic", "Which models train and are wrong?"),
)


def outline(folder="."):
    """A table of the chapters; those whose notebook lies in `folder` are links to it."""
    rows = []
    for number, title, question in CHAPTERS:
        found = sorted(path.name for path in Path(folder).glob(f"{number}_*.ipynb"))
        rows.append(
            (number, Link(title, found[0]) if found else title, question,
             "" if found else "to come")
        )  # fmt: skip
    return table(("", "chapter", "question", ""), rows)
