"""27.2 which tiles are needed (★★☆, 10 minutes)

Write `my_tiles_needed(length, tile, window)`: how many tiles of `tile` × `tile` scores have to be
computed for a text of `length` tokens, if each query attends only to itself and to the `window - 1`
positions before it? Try a small drawing first.

<details><summary>The rule in detail</summary>

All three are whole numbers of at least 1. If `length` is not a multiple of `tile`, the last row and
the last column of tiles are smaller.

</details>

Hint: Go through the rows of tiles. What is the oldest key that the first query of a row attends to,
and in which tile is it?
"""

from tinytf_course.expect import agrees


def my_tiles_needed(length, tile, window):
    """Count the tiles of the (length, length) scores that a causal window needs.

    Tiles are tile × tile; those at the lower and right edge may be smaller. A tile is needed if at
    least one of its queries attends to one of its keys: to itself or one of the window - 1
    positions before it.
    """
    count = 0
    for first in range(0, length, tile):  # the first query of a row of tiles
        oldest = max(0, first - window + 1)  # the oldest key that it may see
        count += first // tile - oldest // tile + 1
    return count


def _by_hand(length, tile, window):
    """Every pair that is seen, and the tile it lies in."""
    seen = [(t, s) for t in range(length) for s in range(t + 1) if t - s < window]
    return len({(t // tile, s // tile) for t, s in seen})


def _needs(answer, *sizes, note=""):
    agrees(answer, _by_hand, *sizes, note=note)


def test_one_tile(answer):
    """a single tile is needed"""
    for sizes in ((1, 1, 1), (4, 4, 2), (3, 8, 2)):
        _needs(answer, *sizes, note="There is one tile, on the diagonal.")


def test_diagonal(answer):
    """a window of 1 is the diagonal"""
    for sizes in ((4, 1, 1), (8, 2, 1), (9, 3, 1)):
        _needs(answer, *sizes, note="Each query attends to itself: the tiles on the diagonal.")


def test_neighbours(answer):
    """a window reaches into the tile before"""
    _needs(answer, 4, 2, 2, note="Query 2 attends to key 1, which is in the tile before.")
    _needs(answer, 12, 4, 4, note="Each row of tiles except the first also needs the tile before.")
    _needs(answer, 6, 1, 3, note="Tiles of one score: count the pairs.")
    _needs(answer, 16, 4, 5, note="Query 4 attends to keys 0 to 4: still one tile before.")
    _needs(answer, 16, 4, 6, note="Query 8 attends to key 3, two tiles before.")


def test_wide(answer):
    """a window as long as the text is the causal triangle"""
    for sizes in ((8, 2, 8), (8, 2, 100), (10, 4, 10)):
        _needs(answer, *sizes, note="Every tile on the diagonal or below it.")


def test_ragged(answer):
    """the last tile may be smaller"""
    for sizes in ((5, 2, 2), (7, 3, 4), (10, 4, 1), (11, 4, 6), (1, 5, 3)):
        _needs(answer, *sizes)


def test_any_sizes(answer):
    """it works for any sizes"""
    for length in (1, 2, 6, 13):
        for tile in (1, 2, 3, 5):
            for window in (1, 2, 3, 4, 7, 20):
                _needs(answer, length, tile, window)
    _needs(answer, 300, 16, 33)


MISTAKES = r"""
all tiles
    first // tile - oldest // tile + 1 => -(-length // tile)
    says: the tiles on the diagonal
    This counts every tile, but tiles in which everything is masked are not needed.
the triangle
    first // tile - oldest // tile => first // tile
    says: the tiles on the diagonal
    That is causal attention without a window.
the window in tiles, rounded down
    oldest // tile => max(0, first // tile - window // tile)
    says: the tiles on the diagonal
    A window of one tile's length and one of 1 do not begin at the same place: ask where the
    oldest key lies.
the window one too wide
    first - window + 1 => first - window
    says: the tiles on the diagonal
    A window of 1 is the position itself: it reaches window - 1 back.
the window one too narrow
    first - window + 1 => first - window + 2
    says: Query 2 attends to key 1
    A query attends to window - 1 positions *before* it, and to itself.
no beginning
    max(0, first - window + 1) => first - window + 1
    says: There is one tile
    Before the first token there are no keys, and no tiles.
the last query of a row for the first
    first - window + 1 => min(first + tile, length) - window
    says: Query 2 attends to key 1
    The first query of a row of tiles looks back furthest: take that one.
both sides of the window
    return count => return 2 * count - -(-length // tile)
    says: Query 2 attends to key 1
    The window is causal: no query attends to keys above the diagonal.
the last, smaller tiles left out
    range(0, length, tile) => range(0, length // tile * tile, tile)
    says: There is one tile
    If the length is not a multiple of the tile, a row of smaller tiles remains.
scores instead of tiles
    range(0, length, tile) => range(length)
    first // tile - oldest // tile => first - oldest
    says: There is one tile
    Many scores are in one tile and are computed together.
"""

HARMLESS = r"""
… => count += first / tile - …
    the first query of a row is a multiple of tile
"""
