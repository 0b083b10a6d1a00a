"""What pretraining reads: a text of one's own, whole or encoded to a file."""

import pytest
from gpt_support import TEXT, TINY

from tinytf.apps.writer import Writer
from tinytf.cli import pretrain, reading
from tinytf.data.corpus import END_OF_TEXT
from tinytf.data.token_file import open_tokens


@pytest.fixture
def text(tmp_path):
    return tmp_path / "text"


@pytest.fixture
def run(tmp_path, text):
    """Run the command on the text."""

    def command(*options):
        return pretrain.main([*TINY, "--text", str(text), "--out", str(tmp_path / "run"), *options])

    return command


def test_a_text_of_ones_own_is_divided_once(tmp_path):
    (tmp_path / "text").write_text("".join(map(chr, range(300, 400))), encoding="utf-8")
    train, validation = reading.own_text(tmp_path / "text")
    assert (len(train[0]), len(validation[0])) == (90, 10)
    assert train[0] + validation[0] == (tmp_path / "text").read_text(encoding="utf-8")


def test_a_large_text_is_encoded_to_a_file_once(run, text, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reading, "LARGE", 1000)
    monkeypatch.setattr(reading, "_HELD_OUT", 400)
    lines = "".join(f"{i} {TEXT[i % 30 :][:40]}\n" for i in range(400))
    text.write_text(lines)
    assert run("--steps", "4") == 0
    assert "bits per byte" in capsys.readouterr().out
    born = (tmp_path / "run.tokens").stat().st_mtime_ns
    assert run("--steps", "4", "--resume") == 0
    assert (tmp_path / "run.tokens").stat().st_mtime_ns == born
    tokenizer = Writer.load(tmp_path / "run").tokenizer
    read = tokenizer.decode(open_tokens(tmp_path / "run.tokens", len(tokenizer)).ids.tolist())
    cut = lines.index("\n", len(lines) - 400)
    assert read == END_OF_TEXT + lines[:cut] + END_OF_TEXT
    text.write_text(lines + "one more line\n")
    assert run("--steps", "4", "--resume") == 2
    assert "on another text" in capsys.readouterr().err


def test_a_large_text_without_lines_is_refused(run, text, monkeypatch, capsys):
    monkeypatch.setattr(reading, "LARGE", 1000)
    text.write_text("a word " * 1000)
    assert run() == 2
    assert "text has no line in its last 1,048,576 bytes" in capsys.readouterr().err
