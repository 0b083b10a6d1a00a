"""Fixtures for the tests of tokenizers: the manual, one trained on it, and Hugging Face's twin."""

import pytest
from tokenizer_support import huggingface

from tinytf.data.manual import manual_text
from tinytf.text.bpe import train_bpe


@pytest.fixture(scope="session")
def manual():
    return manual_text()


@pytest.fixture(scope="session")
def bpe(manual):
    return train_bpe(manual, 600, special_tokens=["<|end|>"])


@pytest.fixture(scope="session")
def theirs(bpe):
    return huggingface(bpe)
