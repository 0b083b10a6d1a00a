"""The plain tokenizer and the quick one are one."""

from hypothesis import given
from hypothesis import strategies as st
from support import bounded

from tinytf.text.bpe import ByteBPE, train_bpe
from tinytf.text.plain_bpe import PlainBPE

QUICK = train_bpe("the cats' 12 newest low cats, 猫猫 caf\u00e9s; the newest lows " * 3, 40)
PLAIN = PlainBPE(QUICK.merges)


@bounded
@given(st.text(max_size=40))
def test_it_encodes_and_decodes_as_the_quick_one(text):
    ids = PLAIN.encode(text)
    assert ids == QUICK.encode(text)
    assert PLAIN.decode(ids) == text


def test_its_tokens_are_those_of_the_quick_one():
    assert PLAIN.tokens == [QUICK.token_bytes(i) for i in range(len(QUICK))]
    assert len(PLAIN.merges) == len(QUICK.merges)


def test_half_a_character_is_shown_as_such():
    assert PlainBPE([]).decode("猫".encode()[:2]) == ByteBPE([]).decode("猫".encode()[:2]) == "�"
