"""Train a small model on made-up domains for about a minute, then teach it a domain it has never seen.

Run it with `make demo`.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from rich.console import Console
from rich.text import Text
from toy_domains import DEV, TRAINING

import spanshot
from spanshot.data.episode_files import write_episodes
from spanshot.data.sampling import MinimumIncludingSampler
from spanshot.experiment.memory import keep_memory
from spanshot.experiment.run import run_training
from spanshot.experiment.settings import RunSettings
from spanshot.formats.inline import parse_inline
from spanshot.interfaces.display import TrainingDisplay

FOLDER = Path("runs/demo")
COLOURS = ("cyan", "magenta", "green", "yellow", "blue")

# A domain that is not among the made-up ones: five sentences are all that the model is shown of it.
EXAMPLES = [
    "[NASA](agency) launched [Voyager 2](spacecraft) in [1977](year).",
    "In [1989](year) [Voyager 2](spacecraft) flew past [Neptune](planet).",
    "[Venera 7](spacecraft) was the first to land on [Venus](planet).",
    "The [European Space Agency](agency) studies [Mars](planet) from orbit.",
    "[Cassini](spacecraft) was built by [NASA](agency) and reached [Saturn](planet) in [2004](year).",
]
TEXTS = [
    "In 2011 NASA launched Juno, which reached Jupiter in 2016.",
    "Mariner 10 flew past Mercury in 1974.",
    "The Indian Space Research Organisation built Mangalyaan to study Mars.",
]


def write_data(folder: Path) -> None:
    """Episodes of all labels of a domain: one or two examples of each to learn from, six sentences to tag."""
    rng = random.Random(1)
    for split, domains, count in (("train", TRAINING, 100), ("dev", DEV, 10)):
        episodes = []
        for name, domain in domains.items():
            sentences = domain.sentences(300, rng)
            samplers = [MinimumIncludingSampler(sentences, shots, 6, name) for shots in (1, 2)]
            episodes += [rng.choice(samplers).sample(rng) for _ in range(count)]
        write_episodes(folder / f"{split}.jsonl", episodes)


def train(folder: Path, out: Console) -> None:
    """Train as `spanshot train` does."""
    settings = RunSettings.of(
        {
            "method": {"name": "esd", "o_spans": 60},
            "data": {"kind": "episodes", "train": str(folder / "train.jsonl"), "dev": str(folder / "dev.jsonl")},
            "encoder": {"name": "minilm", "freeze_embeddings": True},
            "train": {"steps": 160, "batch": 2, "encoder_rate": 1e-4, "evaluate_every": 80},
        }
    )
    shown = TrainingDisplay(out)
    ended = shown.follow(run_training(settings, folder / "run"))
    if ended:
        out.print(f"Trained for {ended.seconds:.0f} s.\n")


def highlighted(text: str, entities: list[spanshot.Entity], labels: tuple[str, ...]) -> Text:
    """The text with its entities in colour, each followed by its label and score."""
    shown, at = Text(), 0
    for entity in entities:
        shown.append(text[at : entity.start])
        shown.append(f"[{entity.text}]", style=f"bold {COLOURS[labels.index(entity.label) % len(COLOURS)]}")
        shown.append(f"({entity.label} {entity.score:.2f})", style="dim")
        at = entity.end
    return shown.append(text[at:])


def main() -> None:
    """Make data, train, learn five sentences, tag three."""
    out = Console(highlight=False)
    keep_memory()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    write_data(FOLDER)
    out.print(f"Training on {', '.join(TRAINING)}; choosing the best step on {', '.join(DEV)}.", soft_wrap=True)
    train(FOLDER, out)

    predictor = spanshot.load_model(FOLDER / "run").learn(map(parse_inline, EXAMPLES))
    out.print("Learned from five sentences about space, which the model was never trained on:")
    for example in EXAMPLES:
        out.print(f"  {example}", markup=False, style="dim", soft_wrap=True)
    out.print("New sentences, tagged:")
    for text in TEXTS:
        out.print(Text("  ").append_text(highlighted(text, predictor(text), predictor.support.labels)), soft_wrap=True)


if __name__ == "__main__":
    main()
