"""The command that writes says what is wrong."""

import pytest
from gpt_support import TEXT

from tinytf.apps.writer import SHIPPED, STORYTELLER, Writer
from tinytf.cli import write
from tinytf.data.corpus import END_OF_TEXT
from tinytf.gpt import GPT, GPTConfig
from tinytf.text.bpe import train_bpe


@pytest.fixture
def model(tmp_path):
    tokenizer = train_bpe(TEXT, vocab_size=270, special_tokens=[END_OF_TEXT])
    Writer(GPT(GPTConfig(len(tokenizer), 12, 3, 1, max_len=16)), tokenizer).save(tmp_path / "run")
    return tmp_path / "run"


def test_it_tells_a_story_unless_another_model_is_asked_for(model, monkeypatch, capsys):
    loaded = []
    load = Writer.load

    def noted(path, device):
        loaded.append(path)
        return load(model, device)

    monkeypatch.setattr(Writer, "load", noted)
    for options in ([], ["--model", "manual"], ["--model", str(model)]):
        assert write.main(["the", "--tokens", "2", *options]) == 0
        assert capsys.readouterr().out.startswith("the")
    assert loaded == [STORYTELLER, SHIPPED, model]


def test_it_says_what_is_wrong(model, tmp_path, capsys):
    for options, message in (
        (["--temperature", "0"], "temperature must be positive"),
        (["--top-p", "1.5"], "top_p"),
        (["--tokens", "-1"], "max_new_tokens must be at least 0"),
        (["--model", str(tmp_path / "none")], "there is no checkpoint"),
    ):
        assert write.main(["a", "--model", str(model), *options]) == 2
        assert message in capsys.readouterr().err
