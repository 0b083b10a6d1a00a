"""The files that are broken: one of each kind that the package writes or reads, all small."""

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from tinytf.apps.translator import Translator
from tinytf.apps.writer import Writer
from tinytf.bert import BertConfig
from tinytf.cli import pretrain, train
from tinytf.data.corpus import END_OF_TEXT, Corpus
from tinytf.gpt import GPT, GPTConfig
from tinytf.llama import Llama, LlamaConfig
from tinytf.pretrained import bert, gpt2, llama, marian
from tinytf.related.bert_heads import BertForPretraining
from tinytf.related.marian import Marian, MarianConfig
from tinytf.support.randomness import seeded
from tinytf.text.bpe import ByteBPE, train_bpe
from tinytf.text.gpt2_files import GPT2_BYTE_ORDER, from_gpt2, to_gpt2
from tinytf.training.trainer import Trainer, TrainingConfig

TEXT = "the cat sat on the mat, and the dog sat on the cat. " * 12
SIZES = {"d_model": 8, "num_heads": 2, "num_layers": 1, "d_ff": 8}
RUN = TrainingConfig(steps=8, warmup=2, label_smoothing=0.0)


class Specimen(NamedTuple):
    """A whole file or folder, how to load it, and what a load gives when it is whole."""

    name: str
    kind: str  # "run", "model", "folder" or "tokenizer"
    files: tuple[str, ...]
    load: Callable[[Path], str]  # a digest of what was loaded


def build_translator() -> tuple[Trainer, Translator]:
    """A run of `train`, smaller than the command makes it."""
    return train.build(RUN, batch_size=2, device="cpu", pool=2, **SIZES)


def build_writer() -> tuple[Trainer, Writer]:
    """A run of `pretrain`, as small."""
    texts = Corpus([TEXT], [TEXT])
    return pretrain.build(RUN, texts, 2, 262, "cpu", **SIZES, max_len=8, dropout=0.1)


FAMILIES = {
    "gpt2": (gpt2, lambda: GPT(GPTConfig(31, 8, 2, 1, 8, 12, 0.1))),
    "llama": (llama, lambda: Llama(LlamaConfig(31, 8, 2, 1, 1, 8, 12))),
    "bert": (bert, lambda: BertForPretraining(BertConfig(31, 8, 2, 1, 8, 12))),
    "marian": (marian, lambda: Marian(MarianConfig(31, 31, 8, 2, 1, 8, 0.1, 12))),
}


def make(folder: Path) -> None:
    """Write every specimen, each into a folder of its own."""
    for name, build in (("train", build_translator), ("pretrain", build_writer)):
        trainer, whole = build()
        (folder / name).mkdir()
        trainer.run(until=5, save_to=folder / name / "run", log_every=2, header=whole.header())
        export = "translator" if name == "train" else "writer"
        (folder / export).mkdir()
        whole.save(folder / export / "file")
    for name, (family, build) in FAMILIES.items():
        with seeded(1):
            family.save(build(), folder / name)
    tokenizer = train_bpe(TEXT, vocab_size=290, special_tokens=[END_OF_TEXT])
    (folder / "bpe").mkdir()
    tokenizer.save(folder / "bpe" / "bpe.json")
    vocab, merges = to_gpt2(train_bpe(TEXT, vocab_size=290, byte_order=GPT2_BYTE_ORDER))
    (folder / "gpt2_tokenizer").mkdir()
    (folder / "gpt2_tokenizer" / "vocab.json").write_text(json.dumps(vocab))
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
    (folder / "gpt2_tokenizer" / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def specimens() -> list[Specimen]:
    """All of them; what is needed to load them is made here."""
    found = [
        Specimen("train", "run", ("run",), RunLoader(build_translator)),
        Specimen("pretrain", "run", ("run",), RunLoader(build_writer)),
        Specimen("translator", "model", ("file",), load_translator),
        Specimen("writer", "model", ("file",), load_writer),
        Specimen("bpe", "tokenizer", ("bpe.json",), load_bpe),
        Specimen("gpt2_tokenizer", "tokenizer", ("vocab.json", "merges.txt"), load_gpt2_tokenizer),
    ]
    for name, (family, _) in FAMILIES.items():
        files = ("config.json", "model.safetensors")
        found.append(Specimen(name, "folder", files, partial(load_folder, family)))
    return found


class RunLoader:
    """Load a run's file into a trainer of its own; what is refused must change nothing."""

    def __init__(self, build: Callable[[], tuple[Trainer, Any]]) -> None:
        self.trainer = build()[0]

    def __call__(self, folder: Path) -> str:
        trainer = self.trainer
        if trainer.step == 0:  # so that there are moments to be changed
            trainer.run(until=1)
        before = run_digest(trainer)
        try:
            trainer.load(folder / "run")
        except Exception:
            if run_digest(trainer) != before:
                raise AssertionError("a file that was refused has changed the run") from None
            raise
        loaded = run_digest(trainer)
        if trainer.step < trainer.config.steps:  # where wrong moments would tear the memory apart
            trainer.run(until=trainer.step + 1)
        return loaded


def run_digest(trainer: Trainer) -> str:
    """Everything that a run is."""
    parts = [*trainer.model.parameters(), *trainer.random.values()]
    for state in trainer.optimizer.state.values():
        parts += state.values()
    return digest(parts, trainer.step, trainer.history, tuple(trainer.unlogged), trainer.config)


def digest(tensors: list[torch.Tensor], *rest: Any) -> str:
    """Tell what was loaded from anything else."""
    hashed = hashlib.sha256(repr(rest).encode("utf-8", "backslashreplace"))
    for tensor in tensors:
        hashed.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return hashed.hexdigest()


def model_digest(model: nn.Module, *rest: Any) -> str:
    """Weights and sizes."""
    return digest(list(model.state_dict().values()), model.config, *rest)


def load_translator(folder: Path) -> str:
    """Load, and read a sentence of no words it knows but the marks."""
    translator = Translator.load(folder / "file", "cpu")
    with torch.no_grad():
        translator.model(torch.ones(1, 2, dtype=torch.long), torch.ones(1, 2, dtype=torch.long))
    return model_digest(translator.model, translator.source.words, translator.target.words)


def load_writer(folder: Path) -> str:
    """Load, and write a little."""
    writer = Writer.load(folder / "file", "cpu")
    writer.write("the", 2)
    return model_digest(writer.model, writer.tokenizer.merges, writer.tokenizer.special_tokens)


def load_bpe(folder: Path) -> str:
    """Load, and encode."""
    bpe = ByteBPE.load(folder / "bpe.json")
    bpe.decode(bpe.encode("the cat"))
    return digest([], bpe.merges, bpe.special_tokens)


def load_gpt2_tokenizer(folder: Path) -> str:
    """Load, and encode."""
    bpe = from_gpt2(folder / "vocab.json", folder / "merges.txt")
    bpe.decode(bpe.encode("the cat"))
    return digest([], bpe.merges, bpe.special_tokens, bpe.byte_order)


def load_folder(family: Any, folder: Path) -> str:
    """Load weights published in Hugging Face's format."""
    model = family.load(folder)
    return digest(list(model.state_dict().values()))
