"""Passages for BERT: consecutive sentences, in pairs or alone, and the tokens that are masked in them.

Devlin et al. 2019, sections 3.1, A.1 and A.2.

A store of sentences is a folder, kept as `heedful.data.stores` keeps its folders: `ids.bin` (the tokens of all
sentences, without special ones), `sentences.npy` (where each sentence begins, and the end) and `documents.npy` (which
sentence each document begins with, and the number of sentences).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from heedful.config.schema import MaskingConfig
from heedful.data.batches import BatchPlan
from heedful.data.stores import IDS, MappedFile, MappedStore, new_store, open_arrays, seal, write_ids
from heedful.errors import InputError
from heedful.random_numbers import MASKS, PASSAGES, KeyedGenerator, draw
from heedful.text.tokenizer import BOS, EOS, MASK, PAD

SENTENCES, DOCUMENTS = "sentences.npy", "documents.npy"

# A sequence of an epoch: two spans of tokens in the store; of a single passage the second one is empty.
SEQUENCE = np.dtype([("number", np.int64), ("first", np.int64, 2), ("second", np.int64, 2), ("is_next", np.bool_)])

Span = tuple[int, int]  # of tokens or of sentences: from, and up to
Passages = tuple[Span, Span, bool]  # the first, the second, and True if the second follows the first


def check_count(documents: int, masking: MaskingConfig) -> None:
    if masking.next_sentence and documents < 2:
        raise InputError(
            "the text of training, or of validation, is one document, and masking.next_sentence takes passages from "
            'two: give more documents (data.documents says what one is: a "file", or a "paragraph" with a blank line '
            "after it), or set masking.next_sentence = false"
        )


@dataclass(frozen=True)
class SentenceStore(MappedStore):
    """Store of the token ids of sentences, grouped in documents, read-only; no sentence and no document is empty."""

    ids: np.ndarray  # (all tokens,) uint16 or uint32, mapped
    sentences: np.ndarray  # (sentences + 1,) int64, mapped: the first token of each sentence; the last is the end
    documents: np.ndarray  # (documents + 1,) int64, mapped: the first sentence of each document; the last is the end
    files: tuple[MappedFile, ...]

    @classmethod
    def write(cls, folder: Path, documents: Iterable[Iterable[list[int]]], vocab_size: int) -> Self:
        """Write a store of encoded sentences, which appears as a whole or not at all, and open it.

        Memory: a chunk of sentences, and 8 bytes for each sentence and each document.
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
            arrays = {SENTENCES: np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]), DOCUMENTS: np.unique(sizes)}
            facts = {"documents": len(arrays[DOCUMENTS]) - 1, "sentences": len(lengths), "tokens": int(lengths.sum())}
            seal(writer, arrays, vocab_size, facts)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> Self:
        arrays, _, files = open_arrays(folder, (SENTENCES, DOCUMENTS))
        return cls(arrays[IDS], arrays[SENTENCES], arrays[DOCUMENTS], files)

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.documents) - 1


class PassagePlan:
    """Plans the sequences that BERT reads in each epoch: cuts documents into passages, and groups them into batches.

    Pairs, with `next_sentence`: sentences are gathered until they have the wanted number of tokens, and are cut in two
    between two random ones. With probability 1/2 the second passage follows the first; otherwise it begins at a random
    sentence of the other documents, and the sentences that it replaces are gathered again. A pair that is too long
    loses tokens of its longer side, each from a random end. In the original, a sentence that was gathered alone is
    always followed by a passage from elsewhere, so that less than half of the pairs are neighbours. Here, if it is long
    or all of its document, it is cut in two at a random token, and a second passage from elsewhere is the end of a
    sentence, of as many tokens as it replaces. The replaced tokens are left out of the epoch, as are a lone token and a
    short sentence at the end of a longer document: half a short sentence does not show what follows, and in another
    epoch the cuts fall elsewhere.

    Single passages, without `next_sentence`: each document is cut after the wanted number of tokens, even inside a
    sentence; no token is lost.

    The wanted number of tokens is what fits into `max_length` with the special tokens, and with probability `short` a
    random number from 2 up to that.

    Args:
        store: The sentences.
        masking: Says if sequences are pairs, and how many are short.
        max_length: Tokens of a sequence, special tokens included.
        batch_tokens: The largest size of a batch, sequences x the longest. A longer sequence is a batch alone.
        seed: Another seed gives another order.
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
        check_count(len(store), masking)

    def epoch(self, epoch: int) -> list[np.ndarray]:
        """Return the batches of passages of an epoch in order, each an array of `SEQUENCE`, shape (B,).

        The number of a sequence is its place among all sequences of the epoch.
        """
        chance = KeyedGenerator(self.seed, PASSAGES, epoch)
        cut = self._pairs if self.masking.next_sentence else self._singles
        passages = (sequence for document in range(len(self.store)) for sequence in cut(document, chance))
        sequences = np.fromiter(((number, *sequence) for number, sequence in enumerate(passages)), dtype=SEQUENCE)
        if not len(sequences):
            raise InputError("no passages can be made of the text: all of its documents are a single token")
        # Passages are batched as sentence pairs are, with both sides as long as the whole sequence.
        lengths = _sizes(sequences["first"]) + _sizes(sequences["second"]) + self.specials
        plan = BatchPlan([np.stack([lengths, lengths], axis=1)], [1.0], self.batch_tokens, self.seed)
        return [sequences[batch] for batch in plan.epoch(epoch)]

    def _pairs(self, document: int, chance: KeyedGenerator) -> Iterator[Passages]:
        whole = begin, end = self._sentences(document)
        while begin < end:
            size = self._size(chance)
            stop = self._gathered(begin, end, size)
            if stop == begin + 1:  # a single sentence has no place between two to be cut at
                if whole == (begin, stop) or self.bounds[stop] - self.bounds[begin] >= size:
                    yield from self._halves(document, begin, chance)
                begin = stop
                continue
            cut = begin + 1 + chance.integer(stop - begin - 1)
            first, is_next = self._span(begin, cut), chance.bernoulli(0.5)
            if is_next:
                second, begin = self._span(cut, stop), stop
            else:
                # What the stranger replaces is gathered again, so that no sentence is lost.
                sentence, last = self._elsewhere(document, chance)
                second = self._span(sentence, self._gathered(sentence, last, size - first[1] + first[0]))
                begin = cut
            yield *_trimmed(first, second, self.room, chance), is_next

    def _halves(self, document: int, sentence: int, chance: KeyedGenerator) -> Iterator[Passages]:
        """Yield the pair of passages made of a single sentence; no pair if it has one token."""
        begin, end = self._span(sentence, sentence + 1)
        if end - begin == 1:
            return
        cut = begin + 1 + chance.integer(end - begin - 1)
        second, is_next = (cut, end), chance.bernoulli(0.5)
        if not is_next:
            stranger, _ = self._elsewhere(document, chance)
            other_begin, other_end = self._span(stranger, stranger + 1)
            # The end of a sentence, as the true second half would be, of as many tokens as it replaces.
            second = (max(other_begin, other_end - (end - cut)), other_end)
        yield *_trimmed((begin, cut), second, self.room, chance), is_next

    def _singles(self, document: int, chance: KeyedGenerator) -> Iterator[Passages]:
        begin, end = self._span(*self._sentences(document))
        while begin < end:
            stop = min(end, begin + self._size(chance))
            yield (begin, stop), (stop, stop), False
            begin = stop

    def _size(self, chance: KeyedGenerator) -> int:
        """The number of tokens that the next sequence is to have, without special ones."""
        return 2 + chance.integer(self.room - 1) if chance.bernoulli(self.masking.short) else self.room

    def _sentences(self, document: int) -> Span:
        return int(self.store.documents[document]), int(self.store.documents[document + 1])

    def _span(self, begin: int, end: int) -> Span:
        """The tokens of some sentences."""
        return int(self.bounds[begin]), int(self.bounds[end])

    def _gathered(self, begin: int, end: int, size: int) -> int:
        """The end of the sentences from `begin` on, one at least, that have `size` tokens; `end` at most."""
        return min(end, max(begin + 1, int(np.searchsorted(self.bounds, self.bounds[begin] + size))))

    def _elsewhere(self, document: int, chance: KeyedGenerator) -> Span:
        """A random sentence of the other documents, and where its document ends."""
        begin, end = self._sentences(document)
        # Drawn from all sentences but those of the document, over which the number then steps.
        sentence = chance.integer(len(self.bounds) - 1 - (end - begin))
        sentence += (end - begin) * (sentence >= begin)
        return sentence, self._sentences(int(np.searchsorted(self.store.documents, sentence, side="right")) - 1)[1]


def assemble(store: SentenceStore, batch: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the token ids of a batch for BERT, <bos> A <eos> B <eos> or, where passages are single, <bos> A <eos>.

    The ids, int64, (B, S), are padded at the end with <pad>. Then come the segment of each token, int64, (B, S): 1 for
    B and its <eos>, else 0; and whether B follows A in the text, bool, (B,), False for single passages.
    """
    first, second = _sizes(batch["first"])[:, None], _sizes(batch["second"])[:, None]
    size = first + second + np.where(second > 0, 3, 2)
    column = np.arange(size.max())
    in_first, in_second = (column > 0) & (column <= first), (column > first + 1) & (column < size - 1)
    # <eos> everywhere inside, over which <bos> and the two passages are written.
    ids = np.where(column < size, EOS, PAD)
    ids[:, 0] = BOS
    ids[in_first] = store.ids[(batch["first"][:, :1] + column - 1)[in_first]]
    ids[in_second] = store.ids[(batch["second"][:, :1] + column - first - 2)[in_second]]
    segments = ((column > first + 1) & (column < size)).astype(np.int64)
    return ids, segments, batch["is_next"]


def cells(batch: np.ndarray) -> int:
    """Return the size of a batch of the plan: its sequences x the tokens in the longest one."""
    return len(batch) * int((_sizes(batch["first"]) + _sizes(batch["second"])).max())


def _sizes(spans: np.ndarray) -> np.ndarray:
    return spans[:, 1] - spans[:, 0]


def _trimmed(first: Span, second: Span, room: int, chance: KeyedGenerator) -> tuple[Span, Span]:
    """Shorten two spans: the longer one, or of equals the second, loses a token until both fit into `room`."""
    sizes = first[1] - first[0], second[1] - second[0]
    if sum(sizes) <= room:
        return first, second
    length = min(sizes[0], max(room - sizes[1], (room + 1) // 2))
    return _shortened(first, length, chance), _shortened(second, room - length, chance)


def _shortened(span: Span, size: int, chance: KeyedGenerator) -> Span:
    begin = span[0] + chance.binomial(span[1] - span[0] - size)
    return begin, begin + size


Key = tuple[int, int, int]  # seed, epoch and the number of a sequence


def mask_tokens(
    ids: np.ndarray,
    words: np.ndarray | None,
    masking: MaskingConfig,
    vocab_size: int,
    first_piece: int,
    keys: Sequence[Key],
) -> tuple[np.ndarray, np.ndarray]:
    """Mask tokens: choose some of each sequence at random, and put <mask>, a random token or the same in their place.

    Of the tokens that are not special, max(1, round(rate x their number)) are chosen, one by one or, with
    `whole_words`, word by word until there are as many: then the last word may exceed the number. The result for a
    sequence depends on its tokens and its key, not on the batch, its padding or its row.

    Args:
        ids: Token ids, padded at the end, shape (B, S).
        words: The number of each token's word in its sequence, shape (B, S); only `whole_words` needs it.
        masking: How many are chosen, and what becomes of them.
        vocab_size: Random tokens have ids below this one.
        first_piece: Random tokens have this id or a higher one: special tokens, and bytes if wanted, have lower ones.
        keys: The seed, epoch and number of each sequence, on which its random choices depend.

    Returns:
        What the model sees, like `ids`, of shape (B, S), and a mask of the tokens that it is to predict, bool, (B, S).
    """
    if first_piece >= vocab_size:
        raise ValueError(f"no tokens from {first_piece} on in a vocabulary of {vocab_size}")
    if masking.whole_words and words is None:
        raise ValueError("whole words need the word of each token")
    inputs, mask = ids.copy(), np.zeros(ids.shape, bool)
    columns = np.arange(ids.shape[1])
    for row, (seed, epoch, number) in enumerate(keys):
        candidates = columns[ids[row] > MASK]  # the special tokens are the first ids
        order, action, piece = draw(3 * len(candidates), seed, MASKS, epoch, number).reshape(3, -1)

        # Whole units, words or tokens, are masked in random order until `rate` of the tokens are reached.
        units = words[row, candidates] if words is not None and masking.whole_words else candidates
        _, unit, sizes = np.unique(units, return_inverse=True, return_counts=True)
        shuffled = np.argsort(order[: len(sizes)], kind="stable")
        count = 1 + np.searchsorted(np.cumsum(sizes[shuffled]), round(masking.rate * len(units)))
        selection = np.isin(unit, shuffled[:count])

        # Most become <mask>, some a random token, and the rest stay, so that the model cannot trust what it reads.
        masked = candidates[selection]
        random = first_piece + (piece[selection] % (vocab_size - first_piece)).astype(ids.dtype)
        share = action[selection] * 2.0**-64
        visible = np.where(share < masking.mask + masking.random, random, ids[row, masked])
        inputs[row, masked] = np.where(share < masking.mask, MASK, visible)
        mask[row, masked] = True
    return inputs, mask
