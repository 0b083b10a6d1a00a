"""A trained model with its vocabularies: from an English sentence to a Chinese one."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from tinytf.decoding.search import Hypothesis, beam_search, scored_greedy
from tinytf.inspect import record
from tinytf.related.recurrent_seq2seq import RecurrentConfig, RecurrentSeq2Seq
from tinytf.support.device import choose_device
from tinytf.support.handed_in import handed_in
from tinytf.support.modes import evaluation_mode
from tinytf.support.protocols import Seq2Seq
from tinytf.text.words import BOS, EOS, SPECIALS, WordTokenizer, pad_batch
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
    """A translation, word by word, how sure the model was, and, on request, where it looked.

    `mean_log_prob` is the mean log-probability, in nats, of the target's tokens, <eos> included,
    each given those before it: 0 is certain, -log V chance among V words. It warns, but does not
    vouch. The shipped translator writes sentences of the phrasebook at about -0.11 (with label
    smoothing it never learnt to be certain); 2 in 2,000 held out are below -0.15. Of 75 sentences
    outside the grammar 33 came out wrong, and 19 of those are below, but so are 10 of the 42 right
    ones; a dropped second adjective stays at -0.11. So ask `in_grammar` first, or print what
    `judged` gives.
    """

    source: tuple[str, ...]  # the words read, with the final <eos>
    target: tuple[str, ...]  # the words written, with the final <eos> unless cut at max_len
    mean_log_prob: float = field(compare=False)
    attention: dict[str, Tensor] = field(default_factory=dict, compare=False, repr=False)
    vocabularies: tuple[tuple[str, ...], ...] = field(default=(), compare=False, repr=False)

    @property
    def words(self) -> tuple[str, ...]:
        """The target without <eos>."""
        return tuple(w for w in self.target if w != "<eos>")

    @property
    def text(self) -> str:
        """The target as one string, words apart."""
        return " ".join(self.words)

    @cached_property
    def in_grammar(self) -> bool | None:
        """Whether the phrasebook's grammar has the sentence, and so a Chinese side to trust.

        None for a translator that has other words than the phrasebook's, and where the course,
        which brings the phrasebook, is not installed.
        """
        book = _phrasebook_of(self.vocabularies)
        if book is None:
            return None
        words = [w for w in self.source if w != "<eos>"]
        return bool(book.Phrasebook().readings(words))

    def __str__(self) -> str:
        return self.text

    def judged(self) -> str:
        """Return the text, with a note where the grammar does not have the sentence."""
        if self.in_grammar is not False:
            return self.text
        return (
            f"{self.text or 'nothing'} (not a sentence of the phrasebook; "
            f"mean log-probability {self.mean_log_prob:.2f} per token)"
        )


class Translator:
    """Translate English sentences of the phrasebook's words; `Translator.load()` gives ours.

    >>> Translator.load()("the cat sat on the mat").text
    '猫 坐 在 垫子 上'

    It knows the sentences of the phrasebook's grammar. Others of the same words it translates too,
    fluently and often wrongly: `in_grammar` and `mean_log_prob` of a `Translation` say so.
    """

    translation_class = Translation

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
        if {"kind", "model", "source_words", "target_words"} - header.keys():
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

        Raises UnknownWordError naming a word it does not know, ValueError for an empty sentence, a
        count in digits and a beam below 1, TypeError for what is not one sentence.
        """
        return self.batch([_one_sentence(sentence)], beam)[0]

    def batch(
        self, sentences: Iterable[str | Sequence[str]], beam: int | None = None
    ) -> list[Translation]:
        """Translate many sentences at once, each a string or a list of its words.

        Errors as for one, with the number of the sentence, counted from 0, in front; TypeError for
        a single string.
        """
        if isinstance(sentences, str) or not isinstance(sentences, Iterable):
            got = f"the string {sentences!r}" if isinstance(sentences, str) else repr(sentences)
            raise TypeError(f"batch takes a list of sentences, got {got}")
        rows = self._encode(list(sentences))
        src = pad_batch(rows, self.model.device)
        if beam is None:
            found = scored_greedy(self.model, src, self._limit(src))
        else:
            found = [b[0] for b in beam_search(self.model, src, beam, max_len=self._limit(src))]
        return [self._translation(row, best) for row, best in zip(rows, found, strict=True)]

    def explain(self, sentence: str) -> Translation:
        """Translate one sentence and keep every layer's attention, (H, T, S), by layer name.

        Row t of a decoder layer is where the model looked while writing target word t.
        """
        rows = self._encode([_one_sentence(sentence)])
        src = pad_batch(rows, self.model.device)
        [found] = scored_greedy(self.model, src, self._limit(src))
        tgt = pad_batch([[BOS, *found.ids[:-1]]], self.model.device)
        with torch.no_grad(), evaluation_mode(self.model), record(self.model) as seen:
            self.model(src, tgt)
        weights = {name: w[0].float().cpu() for name, w in seen.items()}
        return self._translation(rows[0], found, weights)

    def _encode(self, sentences: list[str | Sequence[str]]) -> list[list[int]]:
        """Turn sentences into ids, each with <eos>; an error says which sentence it is about."""
        rows = []
        for number, sentence in enumerate(sentences):
            try:
                ids = self.source.encode(sentence)
                self._refuse_counts_in_digits([self.source.tokens[i] for i in ids])
            except (TypeError, ValueError) as error:
                if len(sentences) > 1:
                    error.args = (f"sentence {number}: {error}",)
                raise
            rows.append([*ids, EOS])
        return rows

    def _refuse_counts_in_digits(self, words: list[str]) -> None:
        """Raise ValueError for digits outside dates and hours: the model would drop them."""
        book = any(word.isdigit() for word in words) and _phrasebook_of(self._vocabularies)
        for place in book.digits_that_count(words)[:1] if book else ():
            several = "'two' to 'twelve', or 'twenty'"
            word = repr(book.FIGURES[words[place]]) if words[place] in book.FIGURES else several
            raise ValueError(
                f"the digits {words[place]!r} at position {place} are no date or hour, and a count "
                f"is written out: write {word}"
            )

    @cached_property
    def _vocabularies(self) -> tuple[tuple[str, ...], ...]:
        return tuple(side.tokens[len(SPECIALS) :] for side in (self.source, self.target))

    def _limit(self, src: Tensor) -> int:
        return min(self.model.config.max_len, 2 * src.size(1) + 10)

    def _translation(
        self,
        row: list[int],
        found: Hypothesis,
        attention: dict[str, Tensor] | None = None,
    ) -> Translation:
        source = tuple(self.source.tokens[i] for i in row)
        target = tuple(self.target.tokens[i] for i in found.ids)
        mean = found.log_prob / len(found.ids)
        made = self.translation_class(source, target, mean, attention or {}, self._vocabularies)
        if not made.text and made.in_grammar is False:
            english = " ".join(source[:-1])
            warnings.warn(
                f"nothing was written for {english!r}, which is not a sentence of the phrasebook",
                stacklevel=4,
            )
        return made


def _phrasebook_of(vocabularies: tuple[tuple[str, ...], ...]):
    """Return the phrasebook's module where these are its words; None if not, or without one."""
    module = handed_in("phrasebook")
    if module is None:
        return None
    book = module.Phrasebook()
    return module if vocabularies == (book.source_words, book.target_words) else None


def _one_sentence(sentence: str) -> str:
    if not isinstance(sentence, str):
        raise TypeError(
            f"give one sentence as a string, and a list of them to `batch`; got {sentence!r}"
        )
    return sentence
