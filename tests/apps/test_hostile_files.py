"""Files of writers and translators with anything in their headers: refused, or a model."""

import random

import pytest
import torch

from tinytf.apps.translator import Translator
from tinytf.apps.writer import Writer
from tinytf.data.corpus import END_OF_TEXT
from tinytf.gpt import GPT, GPTConfig
from tinytf.related.recurrent_seq2seq import RecurrentConfig, RecurrentSeq2Seq
from tinytf.support.files import CheckpointError
from tinytf.text.bpe import ByteBPE
from tinytf.text.words import WordTokenizer
from tinytf.training import checkpointing
from tinytf.transformer import Transformer, TransformerConfig

VALUES = [
    None, True, False, 0, 1, -1, 2, 7, 2**31, 10**7, 10**12, 10**40, 0.5, 1e300, "", "x", "\ud800",
    "GPT", [], [1], [[1]], [[97, 97], [256, 256]], ["a", "a"], [["a"]], {}, {"d_model": 8},
    [[97, 97], *([256 + i, 256 + i] for i in range(40))],
]  # fmt: skip


def writer():
    tokenizer = ByteBPE([(97, 98), (256, 99)], [END_OF_TEXT])
    return Writer(GPT(GPTConfig(len(tokenizer), 12, 3, 2, 20, 16)), tokenizer)


def translator():
    words = WordTokenizer(["a", "b", "c"])
    return Translator(Transformer(TransformerConfig(6, 6, 12, 3, 2, 20, max_len=24)), words, words)


def recurrent():
    words = WordTokenizer(["a", "b", "c"])
    return Translator(RecurrentSeq2Seq(RecurrentConfig(6, 6, 12, 8)), words, words)


@pytest.fixture(params=[writer, translator, recurrent], ids=lambda make: make.__name__)
def app(request):
    torch.manual_seed(0)
    return request.param()


def test_a_header_may_say_anything(app, tmp_path):
    path, draw, faults = tmp_path / "some.file", random.Random(0), []
    tensors, whole = checkpointing.model_tensors(app.model), app.header() | {"kind": "app"}
    changes = [{name: value} for name in whole for value in VALUES]
    changes += [{"model": whole["model"] | {name: value}}
                for name in [*whole["model"], "colour"] for value in VALUES]  # fmt: skip
    for change in draw.sample(changes, 200):
        header = whole | change
        for name in draw.sample(list(whole), draw.randint(0, 1) * draw.randint(0, 1)):
            del header[name]
        checkpointing.write(path, tensors, header)
        try:
            type(app).load(path, "cpu")
        except CheckpointError as error:
            faults.append(str(error))
    assert len(faults) > 130
    assert all("some.file" in fault for fault in faults)


def test_a_later_versions_setting_is_named(app, tmp_path):
    header = app.header() | {"kind": "app"}
    header["model"] = dict(header["model"]) | {"mixture": 8}
    checkpointing.write(tmp_path / "later", checkpointing.model_tensors(app.model), header)
    with pytest.raises(CheckpointError, match=r"later: .*mixture=8, which this version's \w+ does"):
        type(app).load(tmp_path / "later", "cpu")


def test_tensors_are_compared_before_a_model_is_made(app, tmp_path, monkeypatch):
    header, tensors = app.header() | {"kind": "app"}, checkpointing.model_tensors(app.model)
    name = max(tensors, key=lambda name: tensors[name].numel())
    made = []
    kind = type(app.model)
    start = kind.__init__
    monkeypatch.setattr(
        kind, "__init__",
        lambda self, config: (made.append(torch.empty(()).device.type), start(self, config))[0],
    )  # fmt: skip
    for bad, message in (
        ({n: t for n, t in tensors.items() if n != name}, f"missing {name}"),
        (tensors | {"more": torch.ones(2)}, "unexpected more"),
        (tensors | {name: torch.ones(2)}, rf"{name} has shape \(2,\), the model expects"),
        (tensors | {name: tensors[name].long()}, f"{name} holds torch.int64|{name} .*int64"),
    ):
        checkpointing.write(tmp_path / "bad", bad, header)
        with pytest.raises(CheckpointError, match=message):
            type(app).load(tmp_path / "bad", "cpu")
    assert set(made) == {"meta"}
