"""What the tests of tokenizers share: strange texts, any texts, and Hugging Face's twin."""

import unicodedata

from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from tinytf.text.gpt2_files import to_gpt2

STRANGE = [
    "它太累了，所以没有过马路。 动物动物",
    "naïve café, Ελληνικά, кириллица, العربية, हिन्दी",
    "👩‍👩‍👧‍👦 🇨🇳 👍🏽 ok😀ok",
    "\x00\x01\x1b[0m\x1c\x1d\x1e\x1f\x7f\x85\xa0\u200b\u2028\ufeff end",
    "don't we'll they've I'm he'd it's you're 'tis DON'T ''s 'x",
    "    indented\n\n\tdef f(x):\r\n        return x**2  # 3.14159 \n ",
    "   ",
    " \n \n ",
    "½ ² ٣ Ⅳ 一二三 100000",
    "e\u0301 = é",
    "a" * 30,
]


# of Unicode 3.2, which Python keeps: about younger characters libraries differ by their age
OLD = unicodedata.ucd_3_2_0
CHARACTERS = [c for c in map(chr, range(0x110000)) if OLD.category(c) not in ("Cn", "Cs", "Co")]

text_of_all_kinds = st.one_of(
    st.text(CHARACTERS, max_size=40),
    st.text("ab 's\nl19.é猫😀\t", max_size=40),  # where the pattern's rules meet
)


def huggingface(bpe):
    """Their byte-level BPE with our merges and the same pre-tokeniser."""
    vocab, merges = to_gpt2(bpe)
    theirs = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    theirs.decoder = decoders.ByteLevel()
    return theirs
