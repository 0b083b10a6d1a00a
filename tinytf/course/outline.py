"""The course's chapters and the question that each one answers."""

from pathlib import Path

from tinytf.course.tables import Link, table

CHAPTERS = (
    ("Start here", "What does a Transformer look at when it translates?"),
    ("From recurrence to attention", "Why did people stop reading one word after another?"),
    ("Tokens and embeddings", "How does a word become numbers?"),
    ("Scaled dot-product attention", "How does one word look up what it needs in the others?"),
    ("Multi-head and cross-attention", "Why look several times at once, and from where?"),
    ("Positional encoding", "How does a model that sees a set find out the order?"),
    ("Residuals and normalisation", "What keeps a deep stack trainable?"),
    ("The feed-forward network", "Where are most of the weights, and what do they hold?"),
    ("The encoder", "What does each layer add to a word?"),
    ("The decoder", "How does it learn to write without seeing the future?"),
    ("The Transformer", "Do the parts, put together, translate?"),
    ("Decoding", "How does a model that scores words write a sentence?"),
    ("GPT", "What can a decoder alone learn from plain text?"),
    ("Sampling", "Why not always take the likeliest word?"),
    ("Three families", "Which of encoder, decoder or both for which task?"),
    ("Cost", "What does a longer text cost, in time and memory?"),
    ("Looking inside", "Which head does what, and how do we know?"),
    ("The bug clinic", "Which models train and are wrong?"),
)


def outline(folder="."):
    """A table of the chapters; those whose notebook lies in `folder` are links to it."""
    rows = []
    for number, (title, question) in enumerate(CHAPTERS):
        found = sorted(path.name for path in Path(folder).glob(f"{number:02d}_*.ipynb"))
        rows.append(
            (f"{number:02d}", Link(title, found[0]) if found else title, question,
             "" if found else "to come")
        )  # fmt: skip
    return table(("", "chapter", "question", ""), rows)
