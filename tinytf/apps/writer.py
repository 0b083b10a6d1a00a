"""A trained GPT with its tokenizer: from the beginning of a text to more of it."""

from dataclasses import asdict
from pathlib import Path

import torch

from tinytf.decoding.generate import generate
from tinytf.decoding.likelihood import bits_per_byte
from tinytf.decoding.sampling import Sampling
from tinytf.gpt import GPT, GPTConfig
from tinytf.support.device import choose_device
from tinytf.support.files import CheckpointError
from tinytf.text.bpe import ByteBPE
from tinytf.training import checkpointing
from tinytf.training.model_files import build

__all__ = ["SHIPPED", "STORYTELLER", "Writer"]

_WEIGHTS = Path(__file__).parents[1] / "weights"
SHIPPED, STORYTELLER = _WEIGHTS / "writer.safetensors", _WEIGHTS / "storyteller.safetensors"


class Writer:
    """Continue a text; `Writer.load()` gives the one that has read the Python manual.

    `Writer.load(STORYTELLER)` gives the one that has read the course's storybook.

    >>> Writer.load().write('The "with" statement', max_new_tokens=40)  # doctest: +SKIP

    `begins` says that in training each row began a document, so a prompt has to begin one, too.
    Raises ValueError if the model's vocabulary is not the tokenizer's, or if the tokenizer has not
    exactly one special token, which stands between two documents.
    """

    def __init__(self, model: GPT, tokenizer: ByteBPE, begins: bool = False) -> None:
        if model.config.vocab_size != len(tokenizer):
            raise ValueError(
                f"the model's vocabulary has {model.config.vocab_size} entries, "
                f"the tokenizer {len(tokenizer)}"
            )
        if len(tokenizer.special_tokens) != 1:
            raise ValueError(
                "the tokenizer needs one special token, the end of a text; it has "
                f"{tokenizer.special_tokens}"
            )
        self.model, self.tokenizer, self.begins = model, tokenizer, begins

    @property
    def end_id(self) -> int:
        """The id of the token between two documents."""
        return self.tokenizer.special_id(self.tokenizer.special_tokens[0])

    @classmethod
    def load(
        cls, path: str | Path | None = None, device: str | torch.device | None = None
    ) -> "Writer":
        """Load a writer from a file (default: the one that ships), onto a device.

        Reads training checkpoints too, where they were saved with `header()`. Raises
        CheckpointError for a file that is missing, truncated or not a writer's, which is found
        before a model is made (`model_files.build`).
        """
        path = SHIPPED if path is None else Path(path)
        tensors, header = checkpointing.read(path)
        if missing := {"kind", "model", "merges", "special_tokens"} - header.keys():
            raise CheckpointError(
                f"{path.name} is not a writer: it lacks {', '.join(sorted(missing))} "
                "(`Writer.save` writes them, and so does `Trainer.run` with header=writer.header())"
            )
        tensors = checkpointing.weights_alone(tensors, header)
        model = build(GPT, GPTConfig, header["model"], tensors, path.name)
        try:
            tokenizer = ByteBPE([tuple(p) for p in header["merges"]], header["special_tokens"])
            writer = cls(model, tokenizer, header.get("begins") is True)
        except (TypeError, ValueError) as error:
            raise CheckpointError(f"{path.name} is not a writer: {error}") from error
        model.to(device or choose_device())
        return writer

    def save(self, path: str | Path, dtype: torch.dtype = torch.float16) -> None:
        """Write weights (in `dtype`), configuration and tokenizer to one file.

        Raises CheckpointError if it could not be written; an earlier file is then untouched.
        """
        tensors = {n: p.to(dtype) for n, p in checkpointing.model_tensors(self.model).items()}
        checkpointing.write(path, tensors, self.header() | {"kind": "writer"})

    def header(self) -> dict:
        """Return what a checkpoint needs, beside weights, to become a writer again."""
        if self.tokenizer.byte_order != bytes(range(256)):
            raise ValueError("a writer's tokenizer numbers bytes by their value; this one does not")
        return {
            "model": asdict(self.model.config),
            "merges": self.tokenizer.merges,
            "special_tokens": self.tokenizer.special_tokens,
        } | ({"begins": True} if self.begins else {})

    def write(
        self,
        prompt: str = "",
        max_new_tokens: int = 100,
        sampling: Sampling | None = None,
        seed: int = 0,
    ) -> str:
        """Continue a prompt and return all of it, up to the end of the text or max_new_tokens.

        Without `sampling` each token is the likeliest; with it, tokens are drawn by a generator
        seeded with `seed`, the same on every device as far as the model's logits agree. An empty
        prompt begins a document. Whenever prompt and continuation are longer than max_len, the
        model goes on from the last max_len // 2 tokens.
        """
        read = self.tokenizer.encode(prompt)
        ids = torch.tensor([[self.end_id, *read] if self.begins or not read else read])
        out = generate(
            self.model,
            ids.to(self.model.device),
            max_new_tokens,
            sampling,
            generator=torch.Generator().manual_seed(seed),
            end_id=self.end_id,
            keep=max(1, self.model.config.max_len // 2),
        )[0].tolist()
        new = [i for i in out[ids.size(1) :] if i != self.end_id]
        return prompt + self.tokenizer.decode(new)

    def bits_per_byte(self, text: str, context: int | None = None) -> float:
        """Give the bits the model needs for each byte of a text that begins a document.

        Errors as `likelihood.bits_per_byte`.
        """
        ids = torch.tensor([self.end_id, *self.tokenizer.encode(text)])
        return bits_per_byte(self.model, ids, len(text.encode()), context)
