"""Constraints on the text of an output, and what they require of a search. This module does not import torch.

Constraints are about text, so a `Guide` reads the text of a hypothesis, however the text is split into tokens. A search
asks it which tokens may follow, which tokens lead to a missing term, and how far a hypothesis has come.
"""

import re
from bisect import bisect_left
from codecs import utf_8_decode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from heedful.config.schema import DecodeConfig
from heedful.errors import InputError
from heedful.text.tokenizer import Tokenizer

# Letters, digits and combining marks of scripts that put spaces between words. A word of such a script is never found
# inside a longer word. Words of other scripts (Chinese, Japanese, Thai, Lao, Khmer, Burmese) have no marked ends.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_MARKS = "\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0d7f"
_IN_WORD = re.compile(rf"(?![{_UNSPACED}])[\w{_MARKS}]")


@dataclass(frozen=True)
class Constraints:
    """Constraints on the text of one output; upper and lower case differ.

    Attributes:
        prefix: The text with which the output begins.
        terms: Terms that must occur in the output as whole words; a term is a text, or a sequence of alternatives of
            which at least one must occur.
        forbidden: Words or phrases that must not occur in the output as whole words.
        preferred: Further terms, which are left out, the last one first, if no output with them is found.
    """

    prefix: str = ""
    terms: Sequence[str | Sequence[str]] = ()
    forbidden: Sequence[str] = ()
    preferred: Sequence[str | Sequence[str]] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.prefix, str):
            raise InputError(f"constraints: prefix must be a string, but is {self.prefix!r}")
        forbidden = (self.forbidden,) if isinstance(self.forbidden, str) else self.forbidden
        object.__setattr__(self, "terms", _terms("terms", self.terms))
        object.__setattr__(self, "forbidden", _phrases("forbidden", forbidden))
        object.__setattr__(self, "preferred", _terms("preferred", self.preferred))

    def __bool__(self) -> bool:
        return bool(self.prefix or self.terms or self.forbidden or self.preferred)

    def __add__(self, other: "Constraints") -> "Constraints":
        """Combine the constraints of two sources; the prefix of `other` takes precedence."""
        terms = tuple(dict.fromkeys((*self.terms, *other.terms)))
        forbidden = tuple(dict.fromkeys((*self.forbidden, *other.forbidden)))
        preferred = tuple(dict.fromkeys((*self.preferred, *other.preferred)))
        return Constraints(other.prefix or self.prefix, terms, forbidden, preferred)

    def __str__(self) -> str:
        prefix = [f"the prefix {self.prefix!r}"] if self.prefix else []
        terms = [f"the term {' | '.join(term)!r}" for term in (*self.terms, *self.preferred)]
        return ", ".join([*prefix, *terms, *(f"without {phrase!r}" for phrase in self.forbidden)])

    @property
    def strict(self) -> "Constraints":
        """Constraints that require the preferred terms too."""
        return Constraints(self.prefix, (*self.terms, *self.preferred), self.forbidden)

    def are_met(self, text: str) -> bool:
        """Return True if a whole output satisfies all constraints; preferred terms may be missing."""
        return (
            text.startswith(self.prefix)
            and all(any(has_phrase(text, phrase) for phrase in term) for term in self.terms)
            and not any(has_phrase(text, phrase) for phrase in self.forbidden)
        )


def _terms(name: str, values: Any) -> tuple[tuple[str, ...], ...]:
    values = (values,) if isinstance(values, str) else values
    if not isinstance(values, Iterable):
        raise InputError(f"constraints: {name} must be texts, but is {values!r}; give strings in a list")
    terms = tuple(_phrases(name, (term,) if isinstance(term, str) else term) for term in values)
    if not all(terms):
        raise InputError("constraints: a term has no alternatives; give at least one text for each term")
    return terms


def _phrases(name: str, values: object) -> tuple[str, ...]:
    if not isinstance(values, Iterable):
        raise InputError(f"constraints: {name} must be texts, but is {values!r}; give strings in a list")
    phrases = tuple(values)
    for phrase in phrases:
        if not isinstance(phrase, str) or not phrase.strip():
            raise InputError(f"constraints: {name} must be nonempty texts, but one is {phrase!r}")
    return tuple(phrase.strip() for phrase in phrases)


@lru_cache(maxsize=10_000)
def joins_words(character: str) -> bool:
    """Return True for a character that is part of a word in a script with spaces between words; False for none."""
    return _IN_WORD.match(character) is not None


def find_phrase(text: str, phrase: str) -> int | None:
    """Return the end of the first place where a text contains a phrase as whole words; None if there is none."""
    begin = text.find(phrase)
    while begin >= 0:
        end = begin + len(phrase)
        # Adjacent letters on both sides of an end of the phrase would be parts of one word.
        inside = joins_words(phrase[0]) and joins_words(text[begin - 1 : begin] if begin else "")
        if not inside and not (joins_words(phrase[-1]) and joins_words(text[end : end + 1])):
            return end
        begin = text.find(phrase, begin + 1)
    return None


def has_phrase(text: str, phrase: str) -> bool:
    """Return True if a text contains a phrase as whole words."""
    return find_phrase(text, phrase) is not None


def ngram_ends(tokens: Sequence[int], size: int) -> list[int]:
    """Return the tokens that would complete an n-gram of `size` tokens that `tokens` already contains."""
    ngrams = [tuple(tokens[begin : begin + size]) for begin in range(len(tokens) - size + 1)]
    last = tuple(tokens[len(tokens) - size + 1 :])
    return [ngram[-1] for ngram in ngrams if ngram[:-1] == last]


def repeats_ngram(tokens: Sequence[int], size: int) -> bool:
    """Return True if an n-gram of `size` tokens occurs twice."""
    ngrams = [tuple(tokens[begin : begin + size]) for begin in range(len(tokens) - size + 1)]
    return len(set(ngrams)) < len(ngrams)


def each_constraint(constraints: object, texts: Iterator[str]) -> "Iterator[tuple[str, Constraints | None]]":
    """Pair each text with its constraints, given for all texts together or in an iterable with one for each text."""
    if constraints is None or isinstance(constraints, Constraints):
        yield from ((text, constraints or None) for text in texts)
        return
    if not isinstance(constraints, Iterable):
        raise InputError(f"constraints must be Constraints, or an iterable with one for each text, not {constraints!r}")
    several, end = iter(constraints), object()
    for number, text in enumerate(texts, start=1):
        each: Any = next(several, end)
        if each is end:
            raise InputError(f"text {number:,} has no constraints; give as many as there are texts, or None for a text")
        if not (each is None or isinstance(each, Constraints)):
            raise InputError(f"text {number:,}: its constraints must be Constraints or None, but are {each!r}")
        yield text, each or None
    if next(several, end) is not end:
        raise InputError("there are more constraints than texts; give one for each text")


class TokenIndex:
    """The tokens of a vocabulary by their bytes.

    Attributes:
        spelling: The bytes of each token; empty for special tokens.
        continuing: For each token, True if it may continue the word before it: it begins with a letter, a digit, or a
            byte of an incomplete character.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.spelling = [tokenizer.spell([token]) for token in range(len(tokenizer))]
        self.continuing = [
            bool(spelling) and (spelling[0] >= 0x80 or joins_words(chr(spelling[0]))) for spelling in self.spelling
        ]
        self.by_spelling: defaultdict[bytes, list[int]] = defaultdict(list)
        for token, spelling in enumerate(self.spelling):
            if spelling:
                self.by_spelling[spelling].append(token)
        self.sorted = sorted(self.by_spelling)
        self.longest = max(map(len, self.sorted), default=0)

    def beginning(self, text: bytes) -> Iterator[int]:
        """Yield the tokens with which an output can continue that must begin with `text`.

        A token is either a part of the text, or extends beyond its end.
        """
        for size in range(1, min(len(text), self.longest + 1)):
            yield from self.by_spelling.get(text[:size], ())
        for spelling in self.sorted[bisect_left(self.sorted, text) :]:
            if not spelling.startswith(text):
                return
            yield from self.by_spelling[spelling]

    def fewest_tokens(self, text: bytes) -> list[int | None]:
        """For each offset in `text`, count the tokens that write the rest, or more; None if no tokens can write it."""
        counts: list[int | None] = [None] * len(text) + [0]
        for offset in reversed(range(len(text))):
            rest = text[offset:]
            sizes = (min(len(self.spelling[token]), len(rest)) for token in self.beginning(rest))
            rests = (counts[offset + size] for size in set(sizes))
            counts[offset] = min((1 + count for count in rests if count is not None), default=None)
        return counts


@lru_cache(maxsize=4)
def token_index(tokenizer: Tokenizer) -> TokenIndex:
    return TokenIndex(tokenizer)


@dataclass(frozen=True)
class Spelling:
    """A way to write an alternative of a term: its tokens, and the bytes that the first 0, 1, 2, ... of them write."""

    tokens: Sequence[int]
    written: Sequence[bytes]
    joins_words: bool  # whether it begins with a letter rather than a space, so that it cannot follow another letter


def spellings_of(phrase: str, tokenizer: Tokenizer) -> list[Spelling]:
    """Return the ways to write a phrase at the beginning of a text and inside it; none if the vocabulary cannot."""
    first = [tokenizer.encode(phrase), tokenizer.encode_continuation(phrase)]
    if not tokenizer.first_space:
        first.append(tokenizer.encode(f" {phrase}"))
    spellings = {}
    for tokens in first:
        written = [tokenizer.spell(tokens[:size]) for size in range(len(tokens) + 1)]
        text = written[-1].decode("utf-8", "replace")
        if tokens and text.strip() == phrase:
            spellings[tuple(tokens)] = Spelling(tokens, written, joins_words(text[0]))
    return list(spellings.values())


class Guide:
    """Requirements of constraints on a search for one output. An output is given as the bytes that its tokens write."""

    def __init__(self, constraints: Constraints, tokenizer: Tokenizer, config: DecodeConfig) -> None:
        self.constraints = constraints
        self.tokenizer = tokenizer
        self.config = config
        self.index = token_index(tokenizer)
        # A term is not written by an alternative that contains something forbidden, though an equal text may occur.
        self.terms = [
            [
                spelling
                for phrase in term
                if not self.is_forbidden(phrase)
                for spelling in spellings_of(phrase, tokenizer)
            ]
            for term in constraints.terms
        ]
        self.sizes = [min((len(each.tokens) for each in term), default=0) for term in self.terms]
        # After a letter, only a spelling that begins with a space or a sign can be written.
        self.sizes_inside = [
            min((len(each.tokens) for each in term if not each.joins_words), default=size)
            for term, size in zip(self.terms, self.sizes, strict=True)
        ]
        # Decoding removes the first space of an output, so the prefix may be written with or without it.
        prefix = constraints.prefix.encode()
        spaced = tokenizer.first_space.encode()
        variants = {spaced + prefix, *([] if spaced and prefix.startswith(spaced) else [prefix])} if prefix else set()
        self.prefixes = {each: self.index.fewest_tokens(each) for each in sorted(variants)}

    def is_forbidden(self, text: str) -> bool:
        return any(has_phrase(text, phrase) for phrase in self.constraints.forbidden)

    def allows(self, text: str) -> bool:
        """Return False if the text contains something forbidden, whatever follows it."""
        ends = (find_phrase(text, phrase) for phrase in self.constraints.forbidden)
        return all(end is None or self._may_grow(end, text) for end in ends)

    def must_continue(self, text: str) -> bool:
        """Return True if the text ends with something forbidden, which only a longer last word makes acceptable."""
        # The first place of each phrase is enough: if any is inside an allowed text, the first one is.
        ends = (find_phrase(text, phrase) for phrase in self.constraints.forbidden)
        return any(end is not None and self._may_grow(end, text) for end in ends)

    def _may_grow(self, end: int, text: str) -> bool:
        return end == len(text) and joins_words(text[-1])

    def rest_of_prefix(self, output: bytes) -> dict[bytes, Sequence[int | None]]:
        """Return what is left of each spelling of the prefix, with `fewest_tokens`; nothing once it is written."""
        rests = {}
        for prefix, counts in self.prefixes.items():
            if output.startswith(prefix):
                return {}
            if prefix.startswith(output):
                rests[prefix[len(output) :]] = counts[len(output) :]
        return rests

    def place(self, output: bytes, text: str) -> "Place":
        """Describe how far an output has come."""
        if rests := self.rest_of_prefix(output):
            allowed = sorted({token for rest in rests for token in self.index.beginning(rest)})
            return Place(0, False, self._fewest_tokens(rests)[:1], allowed, False)
        missing = self.missing(text)
        rests_of_terms = list(self._rests_of_terms(missing, output, text))
        # The fewest tokens of a term count, but a spelling that is begun may have more.
        begun = max((self.sizes[number] - len(rest) for number, rest in rests_of_terms), default=0)
        return Place(
            progress=sum(self.sizes) - sum(self.sizes[number] for number in missing) + max(begun, 0),
            complete=not missing,
            forced=[rest[0] for _, rest in rests_of_terms],
            allowed=None,
            must_continue=self.must_continue(text),
        )

    def missing(self, text: str) -> list[int]:
        """Return the numbers of the terms that a text does not contain."""
        terms = enumerate(self.constraints.terms)
        return [number for number, term in terms if not any(has_phrase(text, phrase) for phrase in term)]

    def needed(self, output: bytes) -> int:
        """Return a number of further tokens, without <eos>, that is enough to write what is missing.

        They are the tokens of one way to write it. Its first token is in `Place.forced`, and after it one token fewer
        is needed, so that a search always finds an output if it keeps a hypothesis for which the limit is enough.
        """
        prefix = self._fewest_tokens(self.rest_of_prefix(output))
        output += self._written(prefix)
        text = text_of(output)
        ways = (
            len(rest) + sum(self.sizes_inside[each] for each in self.missing(text_of(output + self._written(rest))))
            for _, rest in self._rests_of_terms(self.missing(text), output, text)
        )
        return len(prefix) + min(ways, default=0)

    def _fewest_tokens(self, rests: Mapping[bytes, Sequence[int | None]]) -> list[int]:
        """Return the fewest tokens that write the rest of a prefix; `rests` are the values of `rest_of_prefix`."""
        sizes = {rest: counts[0] for rest, counts in rests.items() if counts[0] is not None}
        rest = min(sizes, key=lambda rest: sizes[rest], default=b"")
        tokens: list[int] = []
        offset = 0
        while offset < len(rest):
            counts = rests[rest][offset:]
            ends = {token: len(self.index.spelling[token]) for token in self.index.beginning(rest[offset:])}
            left = sizes[rest] - len(tokens) - 1
            tokens.append(next(token for token, end in ends.items() if counts[min(end, len(counts) - 1)] == left))
            offset += ends[tokens[-1]]
        return tokens

    def _written(self, tokens: Sequence[int]) -> bytes:
        return b"".join(self.index.spelling[token] for token in tokens)

    def _rests_of_terms(self, missing: Sequence[int], output: bytes, text: str) -> Iterator[tuple[int, Sequence[int]]]:
        """Yield the number of each missing term with tokens that complete it: what is left of it, or all of it.

        A term that is begun may also be written from its beginning: the rest could make the word before it longer.
        """
        for number in missing:
            for spelling in self.terms[number]:
                for size in range(len(spelling.tokens)):
                    written = spelling.written[size]
                    if output.endswith(written):
                        before = text_of(output[: len(output) - len(written)]) if written else text
                        if not (spelling.joins_words and joins_words(before[-1:])):
                            yield number, spelling.tokens[size:]

    def are_met(self, tokens: Sequence[int]) -> bool:
        """Return True if a whole output satisfies the constraints and the rules of `config`."""
        size = self.config.no_repeat_ngram
        return self.constraints.are_met(self.tokenizer.decode(tokens)) and not (size and repeats_ngram(tokens, size))

    def problem(self) -> str | None:
        """Explain why no output can satisfy the constraints, whatever its length; None if one may."""
        constraints, size = self.constraints, self.config.no_repeat_ngram
        if not self.allows(constraints.prefix):
            return f"the prefix {constraints.prefix!r} contains something forbidden; change one of them"
        if self.prefixes and all(counts[0] is None for counts in self.prefixes.values()):
            return f"the vocabulary cannot write the prefix {constraints.prefix!r}; {_remedy(self.tokenizer)}"
        for term, spellings in zip(constraints.terms, self.terms, strict=True):
            name = " | ".join(term)
            if all(map(self.is_forbidden, term)):
                return f"the term {name!r} contains something forbidden; change one of them"
            if not spellings:
                return f"the vocabulary cannot write the term {name!r}; {_remedy(self.tokenizer)}"
            if size and all(repeats_ngram(spelling.tokens, size) for spelling in spellings):
                return f"the term {name!r} repeats {size} tokens, which no_repeat_ngram = {size} excludes"
        return None

    def length_problem(self, limit: int) -> str | None:
        """Explain why the constraints need more than `limit` tokens, with <eos>; None if they do not."""
        needed = self.needed(b"") + 1
        if needed <= limit:
            return None
        return (
            f"the constraints ({self.constraints}) need {needed:,} tokens, but the output has at most {limit:,}; raise "
            "max_extra, or leave out some of them"
        )

    def failure(self, limit: int) -> str:
        """Explain why a search found no output of at most `limit` tokens, with <eos>."""
        return self.length_problem(limit) or (
            f"the search found no output of at most {limit:,} tokens that satisfies all constraints "
            f"({self.constraints}), which may contradict each other; raise beam or max_extra, or leave out some of them"
        )


def _remedy(tokenizer: Tokenizer) -> str:
    lowercase = "; it has only lower case" if tokenizer.config.lowercase else ""
    return f"it contains unknown characters, or a form that the tokenizer changes{lowercase}"


def text_of(output: bytes) -> str:
    """Decode an output; an incomplete character at its end is left out, because more bytes may follow."""
    return utf_8_decode(output, "replace", False)[0]


@dataclass(frozen=True)
class Place:
    """Progress of an output towards its constraints, and the tokens that may follow.

    Attributes:
        progress: The tokens of terms that are written already.
        complete: True if the prefix and all terms are written.
        forced: The next tokens of the prefix or of missing terms, which are candidates however improbable they are.
        allowed: The only tokens that may follow; None: all tokens.
        must_continue: True if only tokens that continue the last word may follow.
    """

    progress: int
    complete: bool
    forced: list[int]
    allowed: list[int] | None
    must_continue: bool
