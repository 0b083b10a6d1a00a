"""The files that are broken: one of each kind that the package writes or reads, all small."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

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
FAMILIES = {
    "gpt2": (gpt2, lambda: GPT(GPTConfig(31, 8, 2, 1, 8, 12, 0.1))),
    "llama": (llama, lambda: Llama(LlamaConfig(31, 8, 2, 1, 1, 8, 12))),
    "bert": (bert, lambda: BertForPretraining(BertConfig(31, 8, 2, 1, 8, 12))),
    "marian": (marian, lambda: Marian(MarianConfig(31, 31, 8, 2, 1, 8, 0.1, 12))),
}


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


def make(folder: Path) -> None:
    """Write every specimen, each into a folder of its own."""
    for specimen in specimens():
        (folder / specimen.name).mkdir()
    for name, build in (("train", build_translator), ("pretrain", build_writer)):
        trainer, whole = build()
        trainer.run(until=5, save_to=folder / name / "run", log_every=2, header=whole.header())
        whole.save(folder / ("translator" if name == "train" else "writer") / "file")
    for name, (family, build) in FAMILIES.items():
        with seeded(1):
            family.save(build(), folder / name)
    train_bpe(TEXT, 290, special_tokens=[END_OF_TEXT]).save(folder / "bpe" / "bpe.json")
    vocab, merges = to_gpt2(train_bpe(TEXT, vocab_size=290, byte_order=GPT2_BYTE_ORDER))
    (folder / "gpt2_tokenizer" / "vocab.json").write_text(json.dumps(vocab))
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
    (folder / "gpt2_tokenizer" / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def specimens() -> list[Specimen]:
    """All of them; what is needed to load them is made here."""
    weights = ("config.json", "model.safetensors")
    return [
        Specimen("train", "run", ("run",), run_loader(build_translator()[0])),
        Specimen("pretrain", "run", ("run",), run_loader(build_writer()[0])),
        Specimen("translator", "model", ("file",), load_translator),
        Specimen("writer", "model", ("file",), load_writer),
        Specimen("bpe", "tokenizer", ("bpe.json",), lambda f: digest(ByteBPE.load(f / "bpe.json"))),
        Specimen(
            "gpt2_tokenizer", "tokenizer", ("vocab.json", "merges.txt"),
            lambda f: digest(from_gpt2(f / "vocab.json", f / "merges.txt")),
        ),
        *(
            Specimen(name, "folder", weights, lambda f, load=family.load: digest(load(f)))
            for name, (family, _) in FAMILIES.items()
        ),
    ]  # fmt: skip


def run_loader(trainer: Trainer) -> Callable[[Path], str]:
    """Load a run's file into a trainer; what is refused must change nothing."""

    def state() -> str:
        moments = [list(state.values()) for state in trainer.optimizer.state.values()]
        counts = (trainer.step, trainer.history, tuple(trainer.unlogged), trainer.config)
        return digest(trainer.model, *counts, moments, list(trainer.random.values()))

    def load(folder: Path) -> str:
        if trainer.step == 0:  # so that there are moments to be changed
            trainer.run(until=1)
        before = state()
        try:
            trainer.load(folder / "run")
        except Exception:
            if state() != before:
                raise AssertionError("a file that was refused has changed the run") from None
            raise
        loaded = state()
        if trainer.step < trainer.config.steps:  # where wrong moments would tear the memory apart
            trainer.run(until=trainer.step + 1)
        return loaded

    return load


def load_translator(folder: Path) -> str:
    """Load, and read a sentence of no words it knows but the marks."""
    translator = Translator.load(folder / "file", "cpu")
    with torch.no_grad():
        translator.model(torch.ones(1, 2, dtype=torch.long), torch.ones(1, 2, dtype=torch.long))
    words = translator.source.words, translator.target.words
    return digest(translator.model, translator.model.config, *words)


def load_writer(folder: Path) -> str:
    """Load, and write a little."""
    writer = Writer.load(folder / "file", "cpu")
    writer.write("the", 2)
    return digest(writer.model, writer.model.config, writer.tokenizer)


def digest(*parts: Any) -> str:
    """Tell what was loaded from anything else: models, tokenizers, tensors, plain values."""
    hashed = hashlib.sha256()
    for part in parts:
        if isinstance(part, torch.nn.Module):
            part = list(part.state_dict().values())
        if isinstance(part, ByteBPE):
            part.decode(part.encode("the cat"))
            part = (part.merges, part.special_tokens, part.byte_order)
        if isinstance(part, list) and part and isinstance(part[0], list | torch.Tensor):
            hashed.update(digest(*part).encode())
        elif isinstance(part, torch.Tensor):
            hashed.update(part.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
        else:
            hashed.update(repr(part).encode("utf-8", "backslashreplace"))
    return hashed.hexdigest()
