"""Remake a study's table: `python -m tinytf.studies {translator_seeds,translator_ablations}`."""

import argparse
from pathlib import Path

from tinytf import studies
from tinytf.studies import translator

STUDIES = {
    "translator_seeds": translator.seeds,
    "translator_ablations": translator.ablations,
}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tinytf.studies", description=__doc__)
    parser.add_argument("name", choices=sorted(STUDIES))
    parser.add_argument("--folder", type=Path, default=studies.FOLDER, help="where to write it")
    options = parser.parse_args()
    studies.save(options.name, STUDIES[options.name](), options.folder)


if __name__ == "__main__":
    main()
