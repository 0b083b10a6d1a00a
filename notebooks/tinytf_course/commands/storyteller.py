"""`storyteller`: train the GPT that writes the storybook's stories, and say how good it is."""

import json
from pathlib import Path

CHECKPOINTS = (250, 500, 1000, 2000, 4000, 8000)
TEMPERATURES = (0.5, 0.8, 1.0)


def add(commands):
    """Describe the command to the parser."""
    parser = commands.add_parser("storyteller", description=__doc__)  # fmt: skip
    parser.add_argument("--out", type=Path, required=True, help="a folder for what it makes")
    parser.add_argument("--steps", type=int, default=12_000, help="of training")
    parser.add_argument("--stories", type=int, default=40_000, help="to train on")
    parser.add_argument("--seed", type=int, default=0, help="of weights and batches")
    parser.add_argument("--sampled", type=int, default=200, help="stories to grade it by")
    return parser


def run(options):
    """Train, save the storyteller and small checkpoints of it, and a table of how good they are."""
    from tqdm import tqdm

    from tinytf_course.stories import storyteller, tell

    trainer, writer = storyteller.begin(options.stories, options.steps, options.seed)
    stories = storyteller.held_out()
    known = {tell(f"train/{i}").text for i in range(options.stories)}
    options.out.mkdir(parents=True, exist_ok=True)
    rows = []
    marks = [step for step in CHECKPOINTS if step < options.steps] + [options.steps]
    with tqdm(total=options.steps, desc="training", unit="step") as bar:
        for step in marks:
            trainer.run(step, bar=bar)
            name = "storyteller" if step == options.steps else f"storyteller-{step}"
            writer.save(options.out / f"{name}.safetensors")
            grades = {"step": step, "seconds": round(trainer.seconds)}
            grades["loss"] = round(storyteller.loss(writer, stories), 4)
            for temperature in TEMPERATURES:
                texts = storyteller.sample(writer, options.sampled, temperature)
                found = storyteller.sense(texts)
                found["copied"] = sum(text in known for text in texts)
                grades[str(temperature)] = found
            rows.append(grades)
            table = {"seed": options.seed, "floor": storyteller.floor(writer.tokenizer, stories)}
            table["weights"] = sum(p.numel() for p in writer.model.parameters())
            (options.out / "table.json").write_text(json.dumps(table | {"rows": rows}, indent=1))
            tqdm.write(json.dumps(grades))
    return 0
