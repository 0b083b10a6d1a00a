r"""03.3 texts that find a fault (★★☆, 8 minutes)

A tokenizer has to give back every text unchanged, and these six don't. Write `my_texts()`, which
returns a dict with one text of at most 40 characters for each fault: the text must be changed by
the tokenizer with that fault and given back by the five others, so that a text that fails tells you
which fault it is.

* `ends` drops the white space at both ends, including tabs and line ends.
* `spaces` turns several spaces in a row into one, but leaves tabs alone.
* `lines` turns the line end `\r\n` into `\n`.
* `capitals` converts all letters to lower case.
* `bytes` decodes one byte at a time, so that a character of several bytes becomes several �s.
* `special` mistakes the characters `<|endoftext|>` for a special token, which decoding leaves out.

Hint: The text for `spaces` must not begin or end with a space. Which characters take more than one
byte and are not capital letters?
"""

import re

from tinytf_course.expect import expect, record


def my_texts():
    """A dict {fault: text}: for each fault a short text that only its tokenizer changes.

    The faults: "ends", "spaces", "lines", "capitals", "bytes", "special".
    """
    return {
        "ends": " a",
        "spaces": "a  b",
        "lines": "a\r\nb",
        "capitals": "A",
        "bytes": "é",
        "special": "a<|endoftext|>b",
    }


FAULTS = {
    "ends": str.strip,
    "spaces": lambda text: re.sub(" +", " ", text),
    "lines": lambda text: text.replace("\r\n", "\n"),
    "capitals": str.lower,
    "bytes": lambda text: "".join(chr(byte) if byte < 128 else "�" for byte in text.encode()),
    "special": lambda text: text.replace("<|endoftext|>", ""),
}


def _texts(answer):
    """What the answer returned; expect a text for each fault."""
    texts = answer()
    expect(isinstance(texts, dict), f"you return {texts!r}, expected a dict {{fault: text}}")
    missing = [fault for fault in FAULTS if fault not in texts]
    expect(not missing, f"there is no text for {', '.join(map(repr, missing))}")
    extra = [fault for fault in texts if fault not in FAULTS]
    expect(not extra, f"{', '.join(map(repr, extra))} is not one of the faults")
    return texts


def test_are_texts(answer):
    """there is a text for each of the six faults, of at most 40 characters"""
    for fault, text in _texts(answer).items():
        kind = f"the text for {fault!r} is {text!r}"
        expect(isinstance(text, str), f"{kind}, expected a string")
        expect(len(text) <= 40, f"the text for {fault!r} has {len(text)} characters, at most 40")
        try:
            text.encode()
        except UnicodeEncodeError:
            expect(False, f"{kind}: half a surrogate pair, which UTF-8 cannot represent")


def _finds(answer, fault):
    """Expect the text to find its own fault, and no other tokenizer to change it."""
    text = _texts(answer)[fault]
    expect(isinstance(text, str), f"the text for {fault!r} is {text!r}, expected a string")
    changed = [other for other, returns in FAULTS.items() if returns(text) != text]
    record([fault, *(other in changed for other in FAULTS)])
    where = f"for the tokenizer with the fault {fault!r} and your text {text!r}"
    expect(fault in changed, f"{where}, the text comes back unchanged: the fault is not found")
    for other in changed:
        message = f"your text {text!r} is also changed by the tokenizer with the fault {other!r}"
        expect(other == fault, f"{message}, so it would not tell you that the fault is {fault!r}")


def test_ends(answer):
    """the text for 'ends' finds this fault and no other"""
    _finds(answer, "ends")


def test_spaces(answer):
    """the text for 'spaces' finds this fault and no other"""
    _finds(answer, "spaces")


def test_lines(answer):
    """the text for 'lines' finds this fault and no other"""
    _finds(answer, "lines")


def test_capitals(answer):
    """the text for 'capitals' finds this fault and no other"""
    _finds(answer, "capitals")


def test_bytes(answer):
    """the text for 'bytes' finds this fault and no other"""
    _finds(answer, "bytes")


def test_special(answer):
    """the text for 'special' finds this fault and no other"""
    _finds(answer, "special")


MISTAKES = r"""
one text for all
    … =>
        return dict.fromkeys(FAULTS, "  É<|endoftext|>\r\n")
    says: it would not tell you
    It finds every fault but can't tell them apart. Give each text a single property.
spaces at the ends
    "a  b" => "  a"
    says: changed by the tokenizer with the fault 'ends'
    Two spaces at the beginning are changed by two tokenizers. Put them between letters.
the end of a text is a space inside
    " a" => "a b"
    says: for the tokenizer with the fault 'ends' and your text 'a b'
    Both ends of `a b` are letters: nothing is dropped.
a plain line end
    "a\r\nb" => "a\nb"
    says: for the tokenizer with the fault 'lines' and your text
    `\n` alone stays as it is; the fault needs `\r\n`, Windows' line end.
the line end at the end
    "a\r\nb" => "a\r\n"
    says: changed by the tokenizer with the fault 'ends'
    A line end is white space, too, and at the end of the text it is dropped by `ends`.
a capital with an accent
    "A" => "É"
    says: changed by the tokenizer with the fault 'bytes'
    É is a capital, and it is two bytes. Take a capital of ASCII.
ASCII for bytes
    "é" => "a"
    says: for the tokenizer with the fault 'bytes' and your text 'a'
    A character of ASCII is a single byte: decoded alone, it is right.
another special token
    "a<|endoftext|>b" => "<eos>"
    says: for the tokenizer with the fault 'special' and your text '<eos>'
    Those are five harmless characters for this tokenizer. Its special token is spelled
    `<|endoftext|>`.
too long
    "A" => "A" * 41
    says: has 41 characters
    A text that fails should be read at a glance: 40 characters are plenty.
"""
