"""Passages for BERT: consecutive sentences, in pairs or alone (Devlin et al. 2019, sections 3.1 and A.2).

A sentence store is a folder as in `heedful.data.stores`: `ids.bin` (the tokens of all sentences, without special
tokens), `sentences.npy` (where each sentence begins, then the number of tokens) and `documents.npy` (where each
document begins, then the number of sentences).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from heedful.config.schema import MaskingConfig
from heedful.data.batches import BatchPlan
from heedful.data.stores import IDS, MappedFile, MappedStore, complete_store, new_store, write_ids
from heedful.errors import InputError
from heedful.random_numbers import PASSAGES, KeyedGenerator
from heedful.text.tokenizer import BOS, EOS, PAD

SENTENCES, DOCUMENTS = "sentences.npy", "documents.npy"

# A sequence of an epoch: its number, two spans of tokens in the store (for a single passage, the second is empty), and
# True if the second follows the first.
SEQUENCE = np.dtype([("number", np.int64), ("first", np.int64, 2), ("second", np.int64, 2), ("is_next", np.bool_)])

Span = tuple[int, int]  # of tokens or of sentences: the start, and the exclusive end
Passages = tuple[Span, Span, bool]  # spans of tokens of two passages; True if the second follows the first in the text


def check_document_count(documents: int, masking: MaskingConfig) -> None:
    if masking.next_sentence and documents < 2:
        raise InputError(
            "the training or validation text is a single document, but masking.next_sentence takes passages from two; "
            'give more documents (data.documents defines what one is: a "file", or a "paragraph" with a blank line '
            "after it), or set masking.next_sentence = false"
        )


@dataclass(frozen=True)
class SentenceStore(MappedStore):
    """Read-only store of the token ids of sentences, grouped into documents. No sentence or document is empty."""

    FILES = (IDS, SENTENCES, DOCUMENTS)

    ids: np.ndarray  # (all tokens,) uint16 or uint32, mapped
    sentences: np.ndarray  # (sentences + 1,) int64, mapped: index of each sentence's first token, then the end
    documents: np.ndarray  # (documents + 1,) int64, mapped: index of each document's first sentence, then the end
    files: tuple[MappedFile, ...]

    @classmethod
    def write(cls, folder: Path, documents: Iterable[Iterable[list[int]]], vocab_size: int) -> Self:
        """Write a store of encoded sentences atomically, and open it.

        Memory: a chunk of sentences, and a few numbers per sentence and per document.
        """
        sizes = [0]

        def sentences() -> Iterator[list[int]]:
            for document in documents:
                begin = sizes[-1]
                sizes.append(begin)
                for sentence in filter(None, document):
                    sizes[-1] += 1
                    yield sentence

        with new_store(folder) as writer:
            lengths = write_ids(writer, sentences(), vocab_size)
            if not len(lengths):
                raise ValueError("a store needs at least one sentence")
            # A document without sentences begins where the next one does: `unique` drops it.
            arrays = {SENTENCES: np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]), DOCUMENTS: np.unique(sizes)}
            facts = {"documents": len(arrays[DOCUMENTS]) - 1, "sentences": len(lengths), "tokens": int(lengths.sum())}
            complete_store(writer, arrays, vocab_size, facts)
        return cls.open(folder)

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.documents) - 1


class PassagePlan:
    """Plan of the sequences that BERT reads in each epoch: passages of the documents, grouped into batches.

    Pairs, with `next_sentence`: sentences are collected until they have the target number of tokens, and are then split
    into two passages at a random sentence boundary. With probability 1/2 the second passage follows the first;
    otherwise it begins at a random sentence of the other documents, and the sentences that it replaces are collected
    again. A pair that is too long loses one token at a time, from a random end of its longer passage.

    In the original, a sentence collected alone is always followed by a passage from elsewhere, so that fewer than half
    of the pairs are consecutive. Here, such a sentence is split in two at a random token if it has at least the target
    number of tokens, or is the only one in its document. If the second passage is from elsewhere, it is the end of
    another sentence, at most as long as the half that it replaces; the epoch leaves that half out. It also leaves out a
    sentence collected alone that is a single token, or that is short and ends a longer document: half of a short
    sentence does not show what follows, and other epochs split the document elsewhere.

    Single passages, without `next_sentence`: each document is split after the target number of tokens, even inside a
    sentence; no token is lost.

    The target number of tokens of a sequence is `max_length` without special tokens or, with probability
    `masking.short`, a random number from 2 to this maximum.

    Args:
        store: The sentences.
        masking: Settings that say whether sequences are pairs, and how many are short.
        max_length: Maximum number of tokens in a sequence, special tokens included.
        batch_tokens: Maximum batch size: number of sequences x length of the longest in tokens. A sequence that
            exceeds it is a batch by itself.
        seed: A different seed gives a different order.
    """

    def __init__(
        self, store: SentenceStore, masking: MaskingConfig, max_length: int, batch_tokens: int, seed: int
    ) -> None:
        self.store = store
        self.bounds = np.asarray(store.sentences)  # indexing a plain array is faster, and it is mapped as well
        self.masking = masking
        self.specials = 3 if masking.next_sentence else 2
        self.room = max_length - self.specials
        self.batch_tokens = batch_tokens
        self.seed = seed
        if self.room < 2:
            raise InputError(
                f"data.max_length = {max_length} leaves no room for text; set it to {self.specials + 2} or more"
            )
        check_document_count(len(store), masking)

    def epoch(self, epoch: int) -> list[np.ndarray]:
        """Return the batches of passages of an epoch in order, each an array of `SEQUENCE`, shape (B,).

        The number of a sequence is its index among all sequences of the epoch.
        """
        chance = KeyedGenerator(self.seed, PASSAGES, epoch)
        cut = self._pairs if self.masking.next_sentence else self._singles
        passages = (sequence for document in range(len(self.store)) for sequence in cut(document, chance))
        sequences = np.fromiter(((number, *sequence) for number, sequence in enumerate(passages)), dtype=SEQUENCE)
        if not len(sequences):
            raise InputError("the text contains no passages: each of its documents is a single token")
        # `BatchPlan` takes pairs, so each sequence counts as a pair whose two sides are as long as the sequence.
        lengths = _sizes(sequences["first"]) + _sizes(sequences["second"]) + self.specials
        plan = BatchPlan([np.stack([lengths, lengths], axis=1)], [1.0], self.batch_tokens, self.seed)
        return [sequences[batch] for batch in plan.epoch(epoch)]

    def cells(self, batch: np.ndarray) -> int:
        """Return the size of a batch: number of sequences x length of the longest, special tokens included."""
        return len(batch) * int((_sizes(batch["first"]) + _sizes(batch["second"])).max() + self.specials)

    def _pairs(self, document: int, chance: KeyedGenerator) -> Iterator[Passages]:
        whole = begin, end = self._sentences(document)
        while begin < end:
            size = self._size(chance)
            stop = self._collect(begin, end, size)
            if stop == begin + 1:  # a single sentence has no sentence boundary at which to split
                if whole == (begin, stop) or self.bounds[stop] - self.bounds[begin] >= size:
                    yield from self._halves(document, begin, chance)
                begin = stop
                continue
            cut = begin + 1 + chance.integer(stop - begin - 1)
            first, is_next = self._span(begin, cut), chance.bernoulli(0.5)
            if is_next:
                second, begin = self._span(cut, stop), stop
            else:
                # The sentences that the second passage replaces are collected again, so that none is lost.
                sentence, last = self._other_sentence(document, chance)
                second = self._span(sentence, self._collect(sentence, last, size - first[1] + first[0]))
                begin = cut
            yield *_trim(first, second, self.room, chance), is_next

    def _halves(self, document: int, sentence: int, chance: KeyedGenerator) -> Iterator[Passages]:
        """Yield a pair from a single sentence: its beginning, and either its end or the end of another sentence.

        Yield nothing if the sentence has only one token.
        """
        begin, end = self._span(sentence, sentence + 1)
        if end - begin == 1:
            return
        cut = begin + 1 + chance.integer(end - begin - 1)
        second, is_next = (cut, end), chance.bernoulli(0.5)
        if not is_next:
            other, _ = self._other_sentence(document, chance)
            other_begin, other_end = self._span(other, other + 1)
            # The true second half ends a sentence, so its replacement, which is at most as long, also does.
            second = (max(other_begin, other_end - (end - cut)), other_end)
        yield *_trim((begin, cut), second, self.room, chance), is_next

    def _singles(self, document: int, chance: KeyedGenerator) -> Iterator[Passages]:
        begin, end = self._span(*self._sentences(document))
        while begin < end:
            stop = min(end, begin + self._size(chance))
            yield (begin, stop), (stop, stop), False
            begin = stop

    def _size(self, chance: KeyedGenerator) -> int:
        """Sample the target number of tokens of the next sequence, without special tokens."""
        return 2 + chance.integer(self.room - 1) if chance.bernoulli(self.masking.short) else self.room

    def _sentences(self, document: int) -> Span:
        return int(self.store.documents[document]), int(self.store.documents[document + 1])

    def _span(self, begin: int, end: int) -> Span:
        """Return the span of tokens of the sentences from `begin` to `end` - 1."""
        return int(self.bounds[begin]), int(self.bounds[end])

    def _collect(self, begin: int, end: int, size: int) -> int:
        """Return the end of the fewest sentences from `begin` on that together have at least `size` tokens.

        It is at most `end`, even if the sentences up to there have fewer tokens.
        """
        return min(end, max(begin + 1, int(np.searchsorted(self.bounds, self.bounds[begin] + size))))

    def _other_sentence(self, document: int, chance: KeyedGenerator) -> Span:
        """Sample a sentence of the other documents; return it and the end of its document."""
        begin, end = self._sentences(document)
        # A number below the count of all other sentences; the next line skips the sentences of this document.
        sentence = chance.integer(len(self.bounds) - 1 - (end - begin))
        sentence += (end - begin) * (sentence >= begin)
        return sentence, self._sentences(int(np.searchsorted(self.store.documents, sentence, side="right")) - 1)[1]


def read_passages(store: SentenceStore, batch: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read the sequences of a batch: <bos> A <eos> B <eos> or, for single passages, <bos> A <eos>.

    Returns:
        The token ids, int64, (B, S), padded at the end with <pad>.
        The segment of each token, int64, (B, S): 1 for B and its <eos>, else 0.
        True where B follows A in the text, bool, (B,); False for single passages.
    """
    first, second = _sizes(batch["first"])[:, None], _sizes(batch["second"])[:, None]
    size = first + second + np.where(second > 0, 3, 2)
    column = np.arange(size.max())
    in_first, in_second = (column > 0) & (column <= first), (column > first + 1) & (column < size - 1)
    # Fill each sequence with <eos>, then overwrite it with <bos> and the two passages.
    ids = np.where(column < size, EOS, PAD)
    ids[:, 0] = BOS
    ids[in_first] = store.ids[(batch["first"][:, :1] + column - 1)[in_first]]
    ids[in_second] = store.ids[(batch["second"][:, :1] + column - first - 2)[in_second]]
    segments = ((column > first + 1) & (column < size)).astype(np.int64)
    return ids, segments, batch["is_next"]


def _sizes(spans: np.ndarray) -> np.ndarray:
    return spans[:, 1] - spans[:, 0]


def _trim(first: Span, second: Span, room: int, chance: KeyedGenerator) -> tuple[Span, Span]:
    """Shorten two spans by one token at a time, always the longer one, until both together fit into `room`.

    If they are equally long, the second is shortened.
    """
    sizes = first[1] - first[0], second[1] - second[0]
    if sum(sizes) <= room:
        return first, second
    # The length of the first span if tokens were removed one by one, as `truncate_seq_pair` in BERT's code does.
    length = min(sizes[0], max(room - sizes[1], (room + 1) // 2))
    return _shorten(first, length, chance), _shorten(second, room - length, chance)


def _shorten(span: Span, size: int, chance: KeyedGenerator) -> Span:
    # BERT's code removes each token at a random end, so the number removed at the front is binomial.
    begin = span[0] + chance.binomial(span[1] - span[0] - size)
    return begin, begin + size
