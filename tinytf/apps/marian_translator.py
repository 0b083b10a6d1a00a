"""A public translator from a folder: Marian's weights and pieces, behind `Translator`'s methods."""

from pathlib import Path

import torch

from tinytf.apps.translator import Translation, Translator
from tinytf.pretrained import marian
from tinytf.pretrained.marian_tokenizer import join_pieces, load_tokenizers
from tinytf.support.device import choose_device
from tinytf.support.files import CheckpointError

__all__ = ["MarianTranslator", "PieceTranslation"]


class PieceTranslation(Translation):
    """A translation in pieces of words, which `text` puts together."""

    in_grammar = None  # no grammar holds all the sentences it reads

    @property
    def text(self) -> str:
        """The target as one string."""
        return join_pieces(self.words)


class MarianTranslator(Translator):
    """Translate any sentence with a model of Marian's kind; `load` reads one from a folder.

    Called, batched and explained as a `Translator` is, greedily or with a beam. Some public models
    want the language asked for in front, as ">>cmn_Hans<< How are you?".
    """

    translation_class = PieceTranslation

    @classmethod
    def load(
        cls, folder: str | Path, device: str | torch.device | None = None
    ) -> "MarianTranslator":
        """Read config.json, model.safetensors, source.spm, target.spm and vocab.json.

        Raises CheckpointError that says what is missing or does not fit, and ImportError where
        SentencePiece is not installed.
        """
        model = marian.load(folder)
        tokenizers = load_tokenizers(folder, model.config)
        return cls(model.to(device or choose_device()), *tokenizers)

    def save(self, path: str | Path, dtype: torch.dtype = torch.float16) -> None:
        """Refuse: one file can't hold this translator; `pretrained.marian.save` writes a folder."""
        raise CheckpointError("a Marian is kept in a folder: use tinytf.pretrained.marian.save")
