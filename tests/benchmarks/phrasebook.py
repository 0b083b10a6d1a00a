"""Pairs a second, drawn from the training split: python tests/benchmarks/phrasebook.py"""

from time import perf_counter

from tinytf.data.phrasebook import Phrasebook


def pairs_per_second(n: int = 100_000) -> float:
    """How many training pairs one thread draws in a second."""
    book = Phrasebook()
    start = perf_counter()
    book.sample(n)
    return n / (perf_counter() - start)


if __name__ == "__main__":
    print(f"{pairs_per_second():,.0f} pairs/s")
