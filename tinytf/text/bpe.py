"""Byte-level byte-pair encoding: text to ids and back, with no unknown words.

Sources: Sennrich et al. 2016, section 3.2 (merges); Radford et al. 2019, section 2.2 (of bytes).
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import index, itemgetter
from pathlib import Path
from typing import Any

from tinytf.support.files import CheckpointError, read_json, read_text, write_atomically
from tinytf.text.merges import Pair, learn_merges_by_queue
from tinytf.text.pieces import PieceCache, byte_ids, surrogates_named
from tinytf.text.pretokenize import split, split_chunks
from tinytf.text.special_tokens import cut_out

__all__ = ["ByteBPE", "train_bpe"]

FORMAT = "tinytf-bpe-1"
_MOST_BYTES = 1 << 24  # of all tokens together; GPT-2's take 0.3 MB, the largest published 2


def train_bpe(
    text: str | Path | Iterable[str],
    num_merges: int | None = None,
    vocab_size: int | None = None,
    special_tokens: Sequence[str] = (),
    byte_order: bytes = bytes(range(256)),
    bar: Any = None,
) -> "ByteBPE":
    """Learn a `ByteBPE` from a text, from the chunks of one, or from a UTF-8 file at a Path.

    Chunks may be cut anywhere: the result is that of the whole text, of which only the different
    pieces and their counts are kept. Give `num_merges`, or `vocab_size`, which counts the 256 bytes
    and the special tokens too; a text that runs out of pairs gives fewer. `bar` is a tqdm bar to
    move. Equally frequent pairs: the one with the smaller first id, then the smaller second, wins;
    with `byte_order=gpt2_files.GPT2_BYTE_ORDER` the merges are those of Hugging Face's trainer.
    Where a special token stands in the text, the text is cut: nothing is learned of its characters,
    nor across it.

    Raises ValueError for an empty text, a lone surrogate, a vocabulary too small for its bytes and
    special tokens, and where not exactly one of num_merges and vocab_size is given.
    """
    if (num_merges is None) == (vocab_size is None):
        raise ValueError(
            f"give num_merges or vocab_size, one of them: got num_merges={num_merges}, "
            f"vocab_size={vocab_size}"
        )
    if num_merges is None:
        num_merges = vocab_size - 256 - len(special_tokens)
        if num_merges < 0:
            raise ValueError(
                f"vocab_size={vocab_size} is less than the 256 bytes and "
                f"{len(special_tokens)} special tokens need"
            )
    if num_merges < 0:
        raise ValueError(f"num_merges must be at least 0, got {num_merges}")
    ByteBPE([], special_tokens, byte_order)  # refuses what is wrong before the work is done
    chunks = (
        read_text(text) if isinstance(text, Path) else [text] if isinstance(text, str) else text
    )
    pieces: Counter[str] = Counter()
    for special, parts in groupby(cut_out(special_tokens, chunks), key=itemgetter(0)):
        if not special:
            for found in split_chunks(part for _, part in parts):
                pieces.update(found)
    if not pieces:
        raise ValueError("the text to train on is empty")
    ids = byte_ids(byte_order)
    with surrogates_named(pieces):
        words = {tuple(p.encode().translate(ids)): n for p, n in pieces.items()}
    return ByteBPE(learn_merges_by_queue(words, num_merges, bar), special_tokens, byte_order)


class ByteBPE:
    """A vocabulary of bytes, merges of them, and special tokens, numbered in this order.

    Ids 0 to 255 are the bytes (id b is byte b, or `byte_order[b]`); id 256 + i is what the i-th
    merge makes; the special tokens come last. Every text and all bytes can be encoded; decoding
    gives them back.

    Raises ValueError for merges of ids that do not exist yet or that make the same bytes twice, for
    tokens that together take more than 16 MB (35 merges, each of the last token with itself, would
    take 2³⁵ bytes), for special tokens that are empty or given twice or that no UTF-8 can say, and
    if `byte_order` is not all 256 bytes.
    """

    def __init__(
        self,
        merges: Iterable[Pair],
        special_tokens: Sequence[str] = (),
        byte_order: bytes = bytes(range(256)),
    ) -> None:
        if isinstance(special_tokens, str):
            raise TypeError(f"special_tokens is a list of strings, got {special_tokens!r}")
        if sorted(byte_order) != list(range(256)):
            raise ValueError("byte_order must hold each of the 256 bytes once")
        self.merges = [(a, b) for a, b in merges]
        self.special_tokens = tuple(special_tokens)
        self.byte_order = bytes(byte_order)
        self._tokens = [bytes([b]) for b in byte_order]
        self._ranks: dict[Pair, int] = {}
        made, total = set(self._tokens), 256
        for i, pair in enumerate(self.merges):
            if not all(type(part) is int and 0 <= part < 256 + i for part in pair):
                raise ValueError(f"merge {i} joins {pair}, but the ids before it are 0..{255 + i}")
            size = len(self._tokens[pair[0]]) + len(self._tokens[pair[1]])
            total += size
            if total > _MOST_BYTES:
                raise ValueError(
                    f"merge {i} makes a token of {size} bytes, and all tokens together {total}: "
                    f"at most {_MOST_BYTES} are allowed"
                )
            token = self._tokens[pair[0]] + self._tokens[pair[1]]
            if token in made:
                raise ValueError(f"merge {i} makes {token!r}, which is a token already")
            made.add(token)
            self._ranks[pair] = 256 + i
            self._tokens.append(token)
        self._special: dict[str, int] = {}
        for token in self.special_tokens:
            if not isinstance(token, str) or not token:
                raise ValueError(f"a special token is a string that is not empty, got {token!r}")
            if token in self._special:
                raise ValueError(f"special token {token!r} is given twice")
            self._special[token] = len(self._tokens)
            with surrogates_named([token]):
                self._tokens.append(token.encode())
        self._byte_ids = byte_ids(self.byte_order)
        self._cache = PieceCache(self._byte_ids, self._ranks)

    def __len__(self) -> int:
        return len(self._tokens)

    def __repr__(self) -> str:
        return f"ByteBPE(256 bytes, {len(self.merges):,} merges, {len(self._special)} special)"

    @property
    def vocab_size(self) -> int:
        """How many ids there are: 256, the merges, and the special tokens."""
        return len(self._tokens)

    def special_id(self, token: str) -> int:
        """Give the id of a special token. Raises ValueError if there is none of this name."""
        if token not in self._special:
            raise ValueError(f"{token!r} is not one of the special tokens {self.special_tokens}")
        return self._special[token]

    def token_bytes(self, id: int) -> bytes:
        """Give the bytes that an id stands for. Raises ValueError outside the vocabulary."""
        return self.decode_bytes([id])

    def encode(self, text: str, allowed_special: Collection[str] | str = ()) -> list[int]:
        """Turn text into ids.

        The name of a special token in the text is plain text, unless `allowed_special` names it, or
        is "all": text from outside then can't smuggle one in. Raises TypeError for what is not
        text, ValueError for a lone surrogate and for an unknown special token.
        """
        if not isinstance(text, str):
            raise TypeError(
                f"encode takes a string, got {type(text).__name__}; encode_bytes takes bytes"
            )
        ids: list[int] = []
        names = self._allowed(allowed_special)
        with surrogates_named([text]):
            for special, part in cut_out(names, [text]):
                if special:
                    ids.append(names[part])
                else:
                    ids += self._encode_pieces(split(part))
        return ids

    def encode_chunks(
        self, chunks: Iterable[str], allowed_special: Collection[str] | str = ()
    ) -> Iterator[list[int]]:
        """Encode a text that comes in chunks, in lists that join to what `encode` gives.

        A special token that is allowed may be cut by the chunks, too. Errors as `encode`'s; where a
        lone surrogate stands is said of its part of the text.
        """
        names = self._allowed(allowed_special)
        for special, parts in groupby(cut_out(names, chunks), key=itemgetter(0)):
            if special:
                yield [names[token] for _, token in parts]
                continue
            for pieces in split_chunks(part for _, part in parts):
                with surrogates_named(["".join(pieces)]):
                    ids = list(self._encode_pieces(pieces))
                yield ids

    def encode_file(
        self,
        path: str | Path,
        chunk_bytes: int = 1 << 20,
        allowed_special: Collection[str] | str = (),
    ) -> Iterator[list[int]]:
        """Encode a UTF-8 file of any size, a list of ids at a time; errors as `read_text`'s."""
        return self.encode_chunks(read_text(path, chunk_bytes), allowed_special)

    def encode_bytes(self, data: bytes) -> list[int]:
        """Turn any bytes into ids, UTF-8 or not; for UTF-8 the ids are those of `encode`."""
        ids: list[int] = []
        for piece in split(data.decode("utf-8", "surrogateescape")):
            ids += self._cache.merge(piece.encode("utf-8", "surrogateescape"))
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids into text; bytes that are not UTF-8, such as half a character, become �."""
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Turn ids into bytes. Raises ValueError for an id outside the vocabulary."""
        parts, size = [], len(self._tokens)
        for position, i in enumerate(map(index, ids)):
            if not 0 <= i < size:
                raise ValueError(
                    f"id {i} at position {position} is outside the vocabulary of {size} "
                    f"(0..{size - 1})"
                )
            parts.append(self._tokens[i])
        return b"".join(parts)

    def _allowed(self, special: Collection[str] | str) -> dict[str, int]:
        """Give the ids of the special tokens that are meant."""
        if isinstance(special, str) and special != "all":
            raise TypeError(f'allowed_special is a list or "all", got {special!r}')
        special = self.special_tokens if special == "all" else special
        return {token: self.special_id(token) for token in special}

    def _encode_pieces(self, pieces: Iterable[str]) -> Iterator[int]:
        return chain.from_iterable(map(self._cache.__getitem__, pieces))

    def save(self, path: str | Path) -> None:
        """Write the tokenizer as JSON, whole or not at all; CheckpointError if it can't be."""
        content = {
            "format": FORMAT,
            "byte_order": list(self.byte_order),
            "merges": self.merges,
            "special_tokens": self.special_tokens,
        }
        write_atomically(path, json.dumps(content, ensure_ascii=False).encode())

    @classmethod
    def load(cls, path: str | Path) -> "ByteBPE":
        """Read what `save` wrote.

        Raises CheckpointError for a file that is missing, truncated, or not one of ours.
        """
        content = read_json(path)
        name = Path(path).name
        if not isinstance(content, dict) or "format" not in content:
            raise CheckpointError(f"{name} is JSON, but not a tinytf tokenizer: it has no format")
        if content["format"] != FORMAT:
            raise CheckpointError(f"{name} has format {content['format']!r}, expected {FORMAT!r}")
        try:
            pairs = [(a, b) for a, b in content["merges"]]
            return cls(pairs, content["special_tokens"], bytes(list(content["byte_order"])))
        except KeyError as error:
            raise CheckpointError(f"{name} lacks {error.args[0]!r}") from None
        except (TypeError, ValueError) as error:
            raise CheckpointError(f"{name} is not a tokenizer: {error}") from error

    @classmethod
    def from_vocab(
        cls,
        vocab: Mapping[int, bytes],
        merges: Iterable[tuple[bytes, bytes]],
        special_tokens: Sequence[str] = (),
    ) -> "ByteBPE":
        """Make a tokenizer of the bytes behind each id, and of the pairs that were merged.

        Ids must run bytes (in any order), merges (in theirs), special tokens; of `special_tokens`
        those that `vocab` lacks come last. Raises ValueError that names the first id or token where
        vocabulary, merges and special tokens do not agree.
        """
        if sorted(vocab) != list(range(len(vocab))) or len(vocab) < 256:
            raise ValueError(f"the ids must run from 0, 256 bytes first: there are {len(vocab)}")
        tokens, merges = [vocab[i] for i in range(len(vocab))], list(merges)
        ids = {token: i for i, token in reversed(list(enumerate(tokens)))}
        for i, pair in enumerate(merges):
            if missing := [part for part in pair if part not in ids]:
                raise ValueError(f"merge {i} joins {pair}, but {missing[0]!r} is no token")
        end, named = 256 + len(merges), [token.encode() for token in special_tokens]
        if strange := [token for token in tokens[end:] if token not in named]:
            raise ValueError(f"{strange[:5]} come of no merge and are no special_tokens")
        special = [token.decode() for token in tokens[end:]]
        special += [token for token in special_tokens if token not in special]
        bpe = cls([(ids[a], ids[b]) for a, b in merges], special, b"".join(tokens[:256]))
        for i, token in enumerate(tokens):
            if bpe.token_bytes(i) != token:
                raise ValueError(f"id {i} is {token!r}, but its merge makes {bpe.token_bytes(i)!r}")
        return bpe
