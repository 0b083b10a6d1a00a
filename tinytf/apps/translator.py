"""A trained model with its vocabularies: from an English sentence to a Chinese one."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from tinytf.decoding.search import beam_search, greedy
from tinytf.inspect import record
from tinytf.related.recurrent_seq2seq import RecurrentConfig, RecurrentSeq2Seq
from tinytf.support.device import choose_device
from tinytf.support.modes import evaluation_mode
from tinytf.support.protocols import Seq2Seq
from tinytf.text.words import BOS, EOS, WordTokenizer, pad_batch
from tinytf.training import checkpointing
from tinytf.training.model_files import build
from tinytf.transformer import Transformer, TransformerConfig

__all__ = ["SHIPPED", "Translation", "Translator"]

SHIPPED = Path(__file__).parents[1] / "weights" / "translator.safetensors"
ARCHITECTURES = {
    "Transformer": (Transformer, TransformerConfig),
    "RecurrentSeq2Seq": (RecurrentSeq2Seq, RecurrentConfig),
}


@dataclass(frozen=True)
class Translation:
    """A translation, word by word, and, where it was asked for, what the model looked at."""

    source: tuple[str, ...]  # the words read, with the final <eos>
    target: tuple[str, ...]  # the words written, with the final <eos> unless cut at max_len
    attention: dict[str, Tensor] = field(default_factory=dict, repr=False, compare=False)

    @property
    def words(self) -> tuple[str, ...]:
        """The target without <eos>."""
        return tuple(w for w in self.target if w != "<eos>")

    @property
    def text(self) -> str:
        """The target as one string, words apart."""
        return " ".join(self.words)

    def __str__(self) -> str:
        return self.text


class Translator:
    """Translate English sentences of the phrasebook's words; `Translator.load()` gives ours.

    >>> Translator.load()("the cat sat on the mat").text
    '猫 坐 在 垫子 上'
    """

    def __init__(self, model: Seq2Seq, source: WordTokenizer, target: WordTokenizer) -> None:
        for side, size, tokenizer in (
            ("source", model.config.src_vocab_size, source),
            ("target", model.config.tgt_vocab_size, target),
        ):
            if size != len(tokenizer):
                raise ValueError(
                    f"the model's {side} vocabulary has {size} entries, "
                    f"the tokenizer {len(tokenizer)}"
                )
        self.model, self.source, self.target = model, source, target

    @classmethod
    def load(
        cls, path: str | Path | None = None, device: str | torch.device | None = None
    ) -> "Translator":
        """Load a translator from a file (default: the one that ships), onto a device.

        Reads training checkpoints too, where they were saved with `header()`. Raises
        CheckpointError for a file that is missing, truncated or not a translator's.
        """
        path = SHIPPED if path is None else Path(path)
        tensors, header = checkpointing.read(path)
        needed = {"kind", "model", "source_words", "target_words"}
        if not isinstance(header, dict) or needed - header.keys():
            raise checkpointing.CheckpointError(
                f"{path.name} is not a translator: it holds no vocabularies (`Translator.save` "
                "writes them, and so does `Trainer.run` with header=translator.header())"
            )
        architecture = header.get("architecture", "Transformer")
        if not isinstance(architecture, str) or architecture not in ARCHITECTURES:
            raise checkpointing.CheckpointError(
                f"{path.name} holds a {architecture!s:.60}, which is not one of "
                f"{tuple(ARCHITECTURES)}"
            )
        tensors = checkpointing.weights_alone(tensors, header)
        model = build(*ARCHITECTURES[architecture], header["model"], tensors, path.name)
        try:
            words = [WordTokenizer(header[f"{side}_words"]) for side in ("source", "target")]
            translator = cls(model, *words)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise checkpointing.CheckpointError(
                f"{path.name} is not a translator: {error}"
            ) from error
        model.to(device or choose_device())
        return translator

    def save(self, path: str | Path, dtype: torch.dtype = torch.float16) -> None:
        """Write weights (in `dtype`), configuration and vocabularies to one file.

        Raises CheckpointError if it could not be written; an earlier file is then untouched.
        """
        tensors = {n: p.to(dtype) for n, p in checkpointing.model_tensors(self.model).items()}
        checkpointing.write(path, tensors, self.header() | {"kind": "translator"})

    def header(self) -> dict:
        """Return what a checkpoint needs, beside weights, to become a translator again."""
        return {
            "architecture": type(self.model).__name__,
            "model": asdict(self.model.config),
            "source_words": self.source.words,
            "target_words": self.target.words,
        }

    def __call__(self, sentence: str, beam: int | None = None) -> Translation:
        """Translate one sentence, greedily or with a beam.

        Raises UnknownWordError naming a word it does not know, ValueError for an empty sentence.
        """
        return self.batch([sentence], beam)[0]

    def batch(
        self, sentences: Sequence[str | Sequence[str]], beam: int | None = None
    ) -> list[Translation]:
        """Translate many sentences at once; errors as for one, TypeError for a single string."""
        if isinstance(sentences, str):
            raise TypeError(f"batch takes a list of sentences, got the string {sentences!r}")
        rows = [[*self.source.encode(s), EOS] for s in sentences]
        src = pad_batch(rows, self.model.device)
        limit = self._limit(src)
        if beam is None:
            outputs = greedy(self.model, src, limit).tolist()
        else:
            outputs = [best[0].ids for best in beam_search(self.model, src, beam, max_len=limit)]
        return [self._translation(r, o) for r, o in zip(rows, outputs, strict=True)]

    def explain(self, sentence: str) -> Translation:
        """Translate one sentence and keep every layer's attention, (H, T, S), by layer name.

        Row t of a decoder layer is where the model looked while writing target word t.
        """
        row = [*self.source.encode(sentence), EOS]
        src = pad_batch([row], self.model.device)
        out = greedy(self.model, src, self._limit(src))[0].tolist()
        tgt = pad_batch([[BOS, *out[:-1]]], self.model.device)
        with torch.no_grad(), evaluation_mode(self.model), record(self.model) as seen:
            self.model(src, tgt)
        weights = {name: w[0].float().cpu() for name, w in seen.items()}
        return self._translation(row, out, weights)

    def _limit(self, src: Tensor) -> int:
        return min(self.model.config.max_len, 2 * src.size(1) + 10)

    def _translation(
        self, row: list[int], out: list[int], attention: dict[str, Tensor] | None = None
    ) -> Translation:
        if EOS in out:
            out = out[: out.index(EOS) + 1]
        return Translation(
            tuple(self.source.tokens[i] for i in row),
            tuple(self.target.tokens[i] for i in out),
            attention or {},
        )
