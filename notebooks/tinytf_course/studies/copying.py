"""When a small GPT learns to copy names and things: depth, initialisation and seeds."""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from tinytf.data.blocks import TextBlocks
from tinytf.data.corpus import END_OF_TEXT, encode_documents
from tinytf.gpt import GPT, GPTConfig
from tinytf.initialisation import normal
from tinytf.support.randomness import seeded
from tinytf.text.bpe import ByteBPE, train_bpe
from tinytf.text.words import pad_batch
from tinytf.training.config import TrainingConfig
from tinytf.training.losses import next_token_loss
from tinytf.training.trainer import Trainer
from tinytf_course.stories import tell
from tinytf_course.stories.words import KINDS, THINGS
from tinytf_course.studies.threads import one_thread

__all__ = ["RUNS", "Grades", "copying", "story_gpt", "texts", "train"]

SEEDS = range(3)
STORIES, HELD_OUT, VOCABULARY = 3000, 50, 1024
WIDTH, LENGTH, SIZE = 128, 256, 4  # 4 rows of 256 tokens a step
STEPS, EVERY = 800, 25
RECIPE = {"lr": 3e-3, "min_lr": 3e-4, "warmup": 30, "label_smoothing": 0.0, "weight_decay": 0.1,
          "betas": (0.9, 0.95), "eps": 1e-8}  # fmt: skip
# layers, and the standard deviation of all linear weights
RUNS = {
    "2 layers": (2, WIDTH**-0.5),
    "4 layers": (4, WIDTH**-0.5),
    "2 layers, GPT-2's 0.02": (2, 0.02),
}


def texts() -> tuple[ByteBPE, Tensor]:
    """Give the tokenizer of the training stories, and all of them in one row of ids (N,)."""
    stories = [tell(f"train/{i}").text for i in range(STORIES)]
    tokenizer = train_bpe(stories[:1000], vocab_size=VOCABULARY, special_tokens=[END_OF_TEXT])
    return tokenizer, encode_documents(tokenizer, stories)


def story_gpt(
    num_layers: int = 2, std: float | None = None, seed: int = 0, width: int = WIDTH
) -> GPT:
    """Make an untrained GPT whose linear weights, the tied table among them, are N(0, std²).

    std: 1 / √width if it is not given.
    """
    sizes = {"d_model": width, "num_heads": 4, "num_layers": num_layers, "max_len": LENGTH}
    with seeded(seed):
        model = GPT(GPTConfig(vocab_size=VOCABULARY, **sizes))
        normal(model, width**-0.5 if std is None else std)
    return model


class Grades:
    """The loss on held-out stories, apart for names and things by whether they came before."""

    def __init__(self, tokenizer: ByteBPE, count: int = HELD_OUT) -> None:
        end = tokenizer.special_id(END_OF_TEXT)
        stories = (tokenizer.encode(tell(f"held out/{i}").text) for i in range(count))
        rows = [[end, *ids, end][: LENGTH + 1] for ids in stories]
        lengths = torch.tensor([len(row) for row in rows])
        self.rows = pad_batch(rows)
        targets = self.rows[:, 1:]
        real = torch.arange(1, self.rows.size(1)) < lengths[:, None]
        before = (self.rows[:, :, None] == self.rows[:, None, :]).tril(-1).any(-1)[:, 1:]
        names, things = (
            torch.isin(targets, torch.tensor([i for w in words for i in tokenizer.encode(f" {w}")]))
            for words in (KINDS, THINGS)
        )
        self.kinds = {
            "all": real,
            "names": real & names & before,
            "things": real & things & before,
            "new things": real & things & ~before,
            "other": real & ~names & ~things,
        }

    @torch.no_grad()
    def __call__(self, model: nn.Module) -> dict[str, float]:
        """Return the mean loss of each kind of token, in nats."""
        logits = model(self.rows[:, :-1].to(model.device)).cpu().transpose(1, 2)
        losses = F.cross_entropy(logits, self.rows[:, 1:], reduction="none")
        return {kind: losses[at].mean().item() for kind, at in self.kinds.items()}


def train(model: GPT, ids: Tensor, grades: Grades, steps: int = STEPS, seed: int = 0) -> dict:
    """Train with the chapter's recipe; return the grades on the way."""
    config = TrainingConfig(**RECIPE, steps=steps)
    trainer = Trainer(model, TextBlocks(ids, LENGTH, SIZE, seed), config, next_token_loss)
    found: dict = {"step": []}
    for step in range(EVERY, steps + 1, EVERY):
        trainer.run(until=step)
        found["step"].append(step)
        for kind, nats in grades(model).items():
            found.setdefault(kind, []).append(round(nats, 4))
    return found


@one_thread()
def copying(seeds: Iterable[int] = SEEDS) -> list[dict]:
    """Train models that differ in depth or in their initialisation, over seeds."""
    tokenizer, ids = texts()
    grades, rows = Grades(tokenizer), []
    for seed, name in tqdm([(s, name) for s in seeds for name in RUNS]):
        model = story_gpt(*RUNS[name], seed=seed)
        rows.append({"run": name, "seed": seed} | train(model, ids, grades, seed=seed))
    return rows


STUDIES = {"copying": copying}
