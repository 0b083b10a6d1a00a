"""Marian's tokens: SentencePiece cuts a text into pieces, and vocab.json numbers them.

The piece of a word's beginning starts with ▁, which stands for the space before it. SentencePiece
is an optional library: pip install sentencepiece. Source: Kudo and Richardson 2018.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tinytf.related.marian import MarianConfig
from tinytf.support.files import CheckpointError, read_json
from tinytf.text.words import EOS, PAD, SPECIALS

__all__ = ["PieceTokenizer", "join_pieces", "load_tokenizers"]

SPACE = "▁"
UNKNOWN = "<unk>"
LANGUAGE = re.compile(r">>.*?<<", re.DOTALL)  # in front of a text: the language that is asked for


class PieceTokenizer:
    """Cut texts of one language into pieces; ids are ours (`MarianConfig`).

    `ids` gives their id of every piece, as vocab.json does; `model` is a file of SentencePiece. No
    piece is refused: one outside the vocabulary becomes <unk>. What Hugging Face's does besides
    where sacremoses is installed, making quotation marks and dashes plain, is not done here.
    """

    def __init__(self, model: str | Path, ids: Mapping[str, int], config: MarianConfig) -> None:
        self.pieces = _read_pieces(Path(model))
        names = {i: piece for piece, i in ids.items()}
        size = config.src_vocab_size - 1
        if sorted(names) != list(range(size)) or UNKNOWN not in ids:
            raise CheckpointError(
                f"vocab.json must number {size} pieces from 0, {UNKNOWN} among them: it has "
                f"{len(ids)}"
            )
        order = config.order.tolist()
        self.tokens = SPECIALS + tuple(names[i] for i in order[len(SPECIALS) :])
        self._ids = {piece: i for i, piece in enumerate(self.tokens)}
        self._ids |= {names[order[special]]: special for special in (PAD, EOS)}

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str | Sequence[str]) -> list[int]:
        """Turn a text (or words, to be put between spaces) into ids, with no specials added.

        A language in front, such as ">>cmn_Hans<<", is one piece. Raises ValueError for an empty
        text.
        """
        text = text if isinstance(text, str) else " ".join(text)
        if not text.strip():
            raise ValueError("the sentence is empty: give at least one word")
        language = LANGUAGE.match(text)
        front = [language[0]] if language else []
        pieces = front + self.pieces.encode(text[len("".join(front)) :], out_type=str)
        return [self._ids.get(piece, self._ids[UNKNOWN]) for piece in pieces]

    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids back into text, up to the first <eos>. Raises ValueError for an unknown id."""
        pieces = []
        for i in map(int, ids):
            if i == EOS:
                break
            if not 0 <= i < len(self):
                raise ValueError(f"id {i} is outside the vocabulary of {len(self)}")
            if i >= len(SPECIALS):
                pieces.append(self.tokens[i])
        return join_pieces(pieces)


def join_pieces(pieces: Iterable[str]) -> str:
    """Put pieces together to a text: each ▁ is a space."""
    return "".join(pieces).replace(SPACE, " ").strip()


def load_tokenizers(
    folder: str | Path, config: MarianConfig
) -> tuple[PieceTokenizer, PieceTokenizer]:
    """Read source.spm, target.spm and vocab.json: the tokenizers of both languages.

    Raises CheckpointError for a file that is missing or broken, ImportError without SentencePiece.
    """
    folder = Path(folder)
    ids = read_json(folder / "vocab.json")
    if not isinstance(ids, dict) or not all(type(i) is int for i in ids.values()):
        raise CheckpointError("vocab.json must give every piece a whole number")
    source, target = (
        PieceTokenizer(folder / f"{s}.spm", ids, config) for s in ("source", "target")
    )
    return source, target


def _read_pieces(path: Path):
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError as error:
        raise ImportError(
            "Marian's tokenizer needs SentencePiece: pip install sentencepiece"
        ) from error
    if not path.is_file():
        raise CheckpointError(f"there is no file {path}")
    try:
        return SentencePieceProcessor(model_proto=path.read_bytes())
    except (RuntimeError, OSError) as error:
        raise CheckpointError(
            f"{path.name} ({path.stat().st_size} bytes) is truncated or no SentencePiece model"
        ) from error
