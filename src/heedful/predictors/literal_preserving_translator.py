"""Translation of lines that preserves literals: URLs, tags, long numbers and other parts that are not language."""

import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from operator import itemgetter
from typing import Literal, NamedTuple, get_args

from sentencex.sentencex import segment

from heedful.predictors.predictor import Done
from heedful.predictors.translator import (
    MAX_SOURCE_TOKENS,
    WINDOW,
    Alternative,
    ConstraintsOfTexts,
    Translation,
    Translator,
    UnmetConstraints,
)
from heedful.search.constraints import Constraints, each_constraint
from heedful.search.hypothesis import Hypothesis
from heedful.text.tokenizer import UNK

# A literal acts as a name or a number in its sentence, marks up words (a tag), or stands apart from the sentence.
Kind = Literal["name", "number", "tag", "apart"]

_HAN = "\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff00-\uffef"  # may follow an address without a space
_IN_ADDRESS = rf"[^\s<>\"“”„«»{_HAN}]"
_ADDRESS = (
    rf"(?:https?|ftp|file|mailto|ssh|git)://?{_IN_ADDRESS}+|www\.{_IN_ADDRESS}+"
    r"|[A-Za-z0-9_.+-]+@[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+"
)
_PATH = r"(?<![\w/.])(?:~|\.{1,2})?/(?:[\w.@+-]+/)*[\w.@+-]*[\w/]|\b[A-Za-z]:\\[\w\\.-]+"
_PLACEHOLDER = (
    r"\{ *\w+ *, *(?:plural|select|selectordinal) *,(?:[^{}]|\{[^{}]*\})*\}"
    r"|<%[^\n]*?%>|\{%[^\n]*?%\}|[%#$]\{[^{}\n]{1,60}\}|\$t\([^()\n]*\)"
    r"|\$?\{\{?[^{}\n]{1,60}\}?\}|%\([\w.]+\)[a-z]|%(?:\d+\$)?[-+#0]*\d*(?:\.\d+)?[sdifgxXu@](?!\w)|%%\w+%%|%[A-Z_]{2,}%|%%"
    r"|\$[A-Za-z_]\w*|\[\[[^\[\]]+\]\]|<\d+>|`[^`\n]+`|(?<!\w)[@?][a-z+]+/[\w.]+|(?<!\w)[@#][A-Za-z_][\w.-]*\w|\b\w+_\w+\b"
    r"|\b[a-z]+(?:[A-Z]\w*)+\(\)"
)
_COUNT = re.compile(r"%(?:\d+\$)?[-+#0]*\d*(?:\.\d+)?[dif]|%?\{(?:n|num|number|count|total)\}")  # a number at run time
_NUMBER = (
    r"(?<![A-Za-z0-9_.,])(?:[$€£¥]\s?\d[\d.,]*(?<![.,])|\d[\d.,]*(?<![.,])\s?[$€£¥])(?![A-Za-z0-9_])"
    r"|(?<![A-Za-z0-9_.,])\+?\(?\d(?:\d|[ ()/.,-]{1,2}(?=[\d(]))*(?![A-Za-z0-9_])"
)
_CODE = r"\b[A-Z]{1,5}-?\d{2,}[\w-]*(?:[ ]\d{2,4}\b)*"
_BREAK = (
    r"</?(?:br|hr|p|div|li|ul|ol|td|tr|th|h[1-6]|title|body|html|table|blockquote)\b[^<>\n]*>|<!--.*?-->"
    r"|&(?:[A-Za-z]{2,8}|#\d{2,6}|#x[0-9A-Fa-f]{2,5});"
)
_TAG = r"</?[A-Za-z][^<>\n]*>|\]\([^()\s]+\)|!?\[(?=[^\[\]]+\]\()"
_PICTOGRAM = (
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u2190-\u21ff\u2300-\u23ff\u25a0-\u25ff\u00a9\u00ae\u2122]"
    "[\ufe0f\u200d\u20e3\U0001f000-\U0001faff\u2600-\u27bf]*"
    r"|(?<!\S)(?:[:;=8][-'^o]?[()\[\]DPpO/|\\*]|<3|\^_*\^)(?!\w)"
)
_REPEATED = re.compile(r"\W*(\w+)(?:\W+\1\b){3,}\W*", re.IGNORECASE)
_LITERAL = re.compile(
    f"(?P<apart>{_BREAK}|{_PICTOGRAM})|(?P<tag>{_TAG})|(?P<name>{_ADDRESS}|{_PLACEHOLDER}|{_PATH}|{_CODE})"
    f"|(?P<number>{_NUMBER})"
)
_BULLET = re.compile(r"(?:(?:[-–—*•·‣▪◦●○■□➢➤✓✔>]+|#{1,6}|\[[ xX]\]|\(?\d{1,3}[.)]|\(?[A-Za-z]\))[ \t]+)+")
_BLANKS = " \t\u00a0\u2007\u202f\u3000\ufeff\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_CLOSING = {"(": ")", "[": "]", "*": "*", "_": "_", "~": "~", "=": "="}
_MIN_DIGITS = 5  # a shorter number is not a literal, unless it has several parts or a currency
_STOPS = ".,;:!?'’"  # punctuation of the sentence that may follow an address


class Span(NamedTuple):
    """Literal in a text, and its role in its sentence."""

    begin: int
    end: int
    kind: Kind


def literals(text: str) -> list[Span]:
    """Find the literals of a text, from left to right."""
    spans = []
    for match in _LITERAL.finditer(text):
        begin, end = match.span()
        kind = next(kind for kind in get_args(Kind) if match[kind])
        if kind == "name":  # punctuation and a closing bracket of the sentence are not part of an address
            name = match[0].rstrip(_STOPS)
            while name.endswith((")", "]")) and name.count("(") + name.count("[") < name.count(")") + name.count("]"):
                name = name[:-1].rstrip(_STOPS)
            end = begin + len(name or match[0])
            kind = "number" if _COUNT.fullmatch(name) else kind
        elif kind == "number":
            parts = re.findall(r"\d+", match[0])
            has_currency = not (match[0][0].isdigit() and match[0][-1].isdigit())
            # Models translate short numbers well, and may have to write them as words.
            if len(parts) == 1 and len(parts[0]) < _MIN_DIGITS and not has_currency:
                continue
        spans.append(Span(begin, end, kind))
    return spans


def edges(text: str) -> tuple[str, str, str]:
    """Split a text into its beginning, its core and its end; blanks, bullets, tags and the like are not in the core."""
    begin, end = len(text) - len(text.lstrip(_BLANKS)), len(text.rstrip(_BLANKS))
    if bullet := _BULLET.match(text, begin, end):
        begin = bullet.end()
    spans = [span for span in literals(text) if span.kind in ("tag", "apart")]
    for span in spans:
        if span.begin >= begin and not text[begin : span.begin].strip(_BLANKS):
            begin = max(begin, span.end)
    for span in reversed(spans):
        if begin <= span.begin and not text[span.end : end].strip(_BLANKS):
            end = span.begin
    # In a blank text, `begin` is beyond `end`.
    core = text[begin:end] if begin < end else ""
    begin += len(core) - len(core.lstrip(_BLANKS))
    core = core.strip(_BLANKS)
    # Brackets and Markdown marks around the whole core belong to the ends as well.
    inner = core
    while len(inner) > 2 and _CLOSING.get(inner[0]) == inner[-1] and _is_balanced(inner[1:-1], inner[0], inner[-1]):
        inner = inner[1:-1]
    if inner.endswith(("--", "==", "**", "__", "~~")):
        inner = inner.rstrip("-=*_~").rstrip(_BLANKS)
    begin += core.find(inner)
    return text[:begin], inner, text[begin + len(inner) :]


def _is_balanced(text: str, opening: str, closing: str) -> bool:
    if opening == closing:
        return opening not in text.strip(opening)
    depth = 0
    for character in text:
        depth += (character == opening) - (character == closing)
        if depth < 0:
            return False
    return depth == 0


def has_language(text: str) -> bool:
    """Return True if a text has a letter outside its literals."""
    return any(map(str.isalpha, "".join(outside(text, literals(text)))))


def outside(text: str, spans: Sequence[Span]) -> list[str]:
    """Return the parts of a text before, between and after the `spans`: one more than there are spans."""
    begins, ends = [0, *(span.end for span in spans)], [*(span.begin for span in spans), len(text)]
    return [text[begin:end] for begin, end in zip(begins, ends, strict=True)]


NAMES = ("Tom", "Boston", "Ken", "Bob", "Paris", "Jim")  # models for many languages leave them untranslated
NUMBERS = ("37", "58", "64", "85", "92", "43")
MAX_TRIES = 3  # translations of a text with names as stand-ins, different ones each time
CLOSING_TAGS = ("</", "]")
ENDS = tuple(".!?…:;,。！？：；，、؟।\"'”’)]»")
NUMBER = re.compile(r"\d[\d.,'’\u00a0\u202f ]*")
# Thousands separators and decimals, which languages write differently
NOTATION = re.compile(r"\d{1,3}(?:[.,'’\u00a0\u202f]\d{3})+|\d+[.,]\d{1,2}")
# A phrase of up to five words that occurs more than three times in a row is kept once, unless the source has one.
REPETITION = re.compile(r"\b(\w+(?:\W+\w+){0,4}?)(?:\W+\1\b){3,}", re.IGNORECASE)
DOUBLING = re.compile(r"\b(\w+)(?:\W+\1\b)+", re.IGNORECASE)  # a single word that is repeated at least once
# Pieces between which a text that is too long may be split: clauses, words with their blanks, characters.
BREAKS = tuple(
    map(re.compile, (r"[^;:,，；：、–—]+[;:,，；：、–—]*\s*|[;:,，；：、–—]+\s*", r"\S+\s*|\s+", r"\s*\S\s*|\s+"))
)
MIN_REPETITIONS = 4  # of three words, in a translation that loops
_WIDE_STOP = re.compile("[。！？][”’」』）]*$")
UNTRANSLATED = Hypothesis([], [0.0], 1.0)  # for a text that is left unchanged, such as a line of literals

Steps = Generator[list[str], list[Translation], Translation]  # yields texts, receives translations, returns one


@dataclass
class LiteralPreservingTranslator:
    """Translator that leaves literals unchanged. The translation of a line never depends on other lines."""

    translator: Translator

    def translate_lines(
        self,
        lines: Iterable[str],
        window: int = WINDOW,
        done: Done = lambda _: None,
        *,
        constraints: ConstraintsOfTexts = None,
    ) -> Iterator[Translation]:
        """Translate lines as `Translator.translate_lines` does.

        A line that is translated in parts has the hypothesis of its first incomplete part or, if all are complete, of
        its first part. A line whose translation violates its constraints is translated as a whole, and its literals are
        preferred terms.
        """
        pairs = each_constraint(constraints, iter(lines))
        before = 0  # lines in previous windows
        while chunk := list(islice(pairs, window)):
            translations = self._together([self._line(line) for line, _ in chunk], done)
            violations = {
                index: self._as_a_whole(line, each)
                for index, ((line, each), translation) in enumerate(zip(chunk, translations, strict=True))
                if each and line.strip() and not each.strict.are_met(translation.text)
            }
            if violations:
                try:
                    answers = self._constrained(list(violations.values()))
                except UnmetConstraints as error:
                    raise UnmetConstraints(error.reason, before + list(violations)[error.index]) from error
                for index, answer in zip(violations, answers, strict=True):
                    translations[index] = answer
            before += len(chunk)
            yield from translations

    def _as_a_whole(self, line: str, constraints: Constraints) -> "Whole":
        """Prepare the translation of a line with constraints: its core, with its literals as further terms."""
        before, core, after = edges(line)
        if constraints.prefix.startswith(before):
            prefix = constraints.prefix[len(before) :]
        elif before.startswith(constraints.prefix):
            prefix = ""
        else:  # the translation does not begin as the line does
            prefix, before, core = constraints.prefix, "", before + core
        own = replace(constraints, prefix=prefix)
        for span in literals(core):
            literal = core[span.begin : span.end].strip()
            other_notation = literal.translate({ord("."): ",", ord(","): "."})
            more = own + Constraints(preferred=[(literal, other_notation) if span.kind == "number" else (literal,)])
            # A literal that the vocabulary cannot write, or that does not fit, is left to the model.
            if self.translator.problem_of(core, more) is None:
                own = more
        return Whole(line, constraints, (before, core, after), own)

    def _constrained(self, lines: "Sequence[Whole]") -> list[Translation]:
        cores = [whole.parts[1] for whole in lines]
        translator, window = self.translator, len(lines)
        translations = list(translator.translate_lines(cores, window, constraints=[whole.own for whole in lines]))
        for index, (whole, translation) in enumerate(zip(lines, translations, strict=True)):
            before, _, after = whole.parts
            translations[index] = _with_text(translation, f"{before}{translation.text}{after}")
        # What precedes or follows the core may be forbidden, or the core may be empty: then all is left to the model.
        rest = [i for i, whole in enumerate(lines) if not whole.constraints.are_met(translations[i].text)]
        texts, constraints = [lines[i].line for i in rest], [lines[i].constraints for i in rest]
        try:
            answers = list(translator.translate_lines(texts, window, constraints=constraints))
        except UnmetConstraints as error:
            raise UnmetConstraints(error.reason, rest[error.index]) from error
        for index, answer in zip(rest, answers, strict=True):
            translations[index] = answer
        return translations

    @cached_property
    def _knows_full_stop(self) -> bool:
        """True if the vocabulary has the full stop, so that the model may have learned that sentences end with it."""
        tokenizer = self.translator.tokenizers.source
        return not {UNK, *tokenizer.byte_ids} & set(tokenizer.encode("."))

    def _together(self, lines: list[Steps], done: Done) -> list[Translation]:
        """Translate several lines in step: the texts that they request share batches, until all lines are finished."""
        translations: dict[int, Translation] = {}
        # Each line is a generator that yields the texts that it needs next, and receives their translations. All lines
        # advance together, so that each round is translated in full batches.
        requests = {number: next(line) for number, line in enumerate(lines)}
        remaining = len(lines)

        def advance(count: int) -> None:  # progress is counted in lines, not in texts
            nonlocal remaining
            done(min(count, remaining))
            remaining -= min(count, remaining)

        while requests:
            texts = [text for request in requests.values() for text in request]
            answers = iter(self.translator.translate_lines(texts, max(len(texts), 1), advance))
            following: dict[int, list[str]] = {}
            for number, request in requests.items():
                try:
                    following[number] = lines[number].send(list(islice(answers, len(request))))
                except StopIteration as end:
                    translations[number] = end.value
            requests = following
        done(remaining)
        return [translations[number] for number in range(len(lines))]

    def _line(self, line: str) -> Steps:
        """Translate the core of a line, and keep the literals at its ends."""
        if "\n" in line or "\r" in line:  # several lines are left to the model
            [translation] = yield [line]
            return translation
        before, core, after = edges(line)
        if not line.strip():
            yield []
            return Translation([], truncated=False)
        if not (has_language(line) and has_language(core)):
            yield []
            return Translation([Alternative(line, UNTRANSLATED)], truncated=False)
        if repeated := _REPEATED.fullmatch(core):
            # A model that reads one word many times may lose count, so the word is translated once.
            translation = yield from self._capitals(repeated[1])
            words = re.sub(rf"\b{re.escape(repeated[1])}\b", lambda _: translation.text, core, flags=re.IGNORECASE)
            return _with_text(translation, f"{before}{words}{after}")
        translation = yield from self._capitals(core)
        return _with_text(translation, f"{before}{translation.text}{after}")

    def _capitals(self, core: str) -> Steps:
        """Translate a text. Text in capitals is translated in sentence case, and the result is put in capitals."""
        spans = literals(core)
        parts = outside(core, spans)
        letters = "".join(parts)
        if letters == letters.lower() or letters != letters.upper() or not re.search(r"[^\W\d_]{2}", letters):
            return (yield from self._sentence(core))
        # Training text has few lines in capitals, so the model has rarely seen their tokens.
        lower = [_in_sentence_case(part, first=not number) for number, part in enumerate(parts)]
        translation = yield from self._sentence(_joined(lower, _texts(core, spans)))
        spans = literals(translation.text)
        upper = [part.upper() for part in outside(translation.text, spans)]
        return _with_text(translation, _joined(upper, _texts(translation.text, spans)))

    def _sentence(self, text: str) -> Steps:
        """Translate a text with its literals.

        The parts between literals that stand apart are translated separately; tags are put around the translated words;
        other literals are replaced with stand-ins unless the model copies them.
        """
        spans = literals(text)
        if not spans:
            return (yield from self._plain(text))
        if apart := [span for span in spans if span.kind == "apart"]:
            return (yield from self._parts(text, apart))
        if tags := [span for span in spans if span.kind == "tag"]:
            return (yield from self._tagged(text, tags))
        # First try the text unchanged: often the model copies the literals.
        translation = yield from self._plain(text)
        if all(_is_kept(text[span.begin : span.end], span, text, translation.text) for span in spans):
            return translation
        # Then replace them with common names and numbers, which the model copies more reliably.
        for stand_ins in _stand_ins(text, spans):
            translation = yield from self._plain(_joined(outside(text, spans), stand_ins))
            # ASCII boundaries only: Chinese characters may touch a name, and \b would treat them as part of it.
            pattern = re.compile("|".join(rf"(?<![A-Za-z0-9_]){each}(?![A-Za-z0-9_])" for each in stand_ins))
            if sorted(pattern.findall(translation.text)) == sorted(stand_ins):
                originals = dict(zip(stand_ins, _texts(text, spans), strict=True))
                restored = pattern.sub(lambda match, texts=originals: texts[match[0]], translation.text)
                return _with_text(translation, restored)
        return (yield from self._parts(text, spans))

    def _parts(self, text: str, spans: Sequence[Span]) -> Steps:
        """Translate the parts between literals separately."""
        translations: list[str] = []
        parts: list[Translation] = []
        for part in outside(text, spans):
            core = re.sub(r"^[\W_]+", "", part).rstrip()
            if not has_language(core):
                translations.append(part)
                continue
            translation = yield from self._sentence(core)
            before, after = part.split(core, 1)
            translations.append(f"{before}{translation.text}{after}")
            parts.append(translation)
        if not parts:
            yield []
            return Translation([Alternative(text, UNTRANSLATED)], truncated=False)
        return _of_parts(parts, _joined(translations, _texts(text, spans)))

    def _tagged(self, text: str, tags: Sequence[Span]) -> Steps:
        """Translate a text without its tags, and put each tag after the same share of the words as in the source."""
        parts = outside(text, tags)
        source = "".join(parts).split()
        translation = yield from self._sentence(" ".join(source))
        words = translation.text.split(" ")
        before = [len("".join(parts[: number + 1]).split()) for number in range(len(tags))]
        positions = [round(count / max(len(source), 1) * len(words)) for count in before]
        opening: list[str] = [""] * len(words)  # the tags before and after each word
        closing: list[str] = [""] * len(words)
        first = 0  # minimum number of words before a closing tag: one more than before the last opening tag
        for tag, share, part in zip(_texts(text, tags), positions, parts, strict=False):
            closes = tag.startswith(CLOSING_TAGS)
            position = min(max(share, first), len(words)) if closes else share
            if position and (position == len(words) or (not part.endswith((" ", "\t")) and closes)):
                closing[position - 1] += tag
            else:
                opening[position] += tag
                first = position + 1
        for number, word in enumerate(words):
            core = word.rstrip(".,;:!?") if closing[number] else word  # a closing tag goes before punctuation
            words[number] = f"{opening[number]}{core}{closing[number]}{word[len(core) :]}"
        return _with_text(translation, " ".join(words))

    def _plain(self, text: str) -> Steps:
        """Translate a text in each of its readings, and keep the translation with the highest mean log-probability.

        If all translations loop, as they may for a text that is not language, the text itself is returned.
        """
        readings = self._readings(text)
        results = iter((yield [sentence for reading in readings for sentence in reading.sentences]))
        translations: list[tuple[float, Translation]] = []
        for reading in readings:
            parts = list(islice(results, len(reading.sentences)))
            words = reading.joined([part.text for part in parts])
            repetition = REPETITION if " " in text else DOUBLING
            if not repetition.search(text):
                words = repetition.sub(r"\1", words)
                if loops(text, words):
                    continue
            translations.append((_mean_log_prob(parts), _of_parts(parts, words)))
        if not translations:
            return Translation([Alternative(text, UNTRANSLATED)], truncated=False)
        return max(translations, key=itemgetter(0))[1]

    def _readings(self, text: str) -> list["Reading"]:
        """List the readings of a text: as it is and, if possible, split into sentences or with a full stop added.

        Most models are trained on single sentences with full stops.
        """
        recipe = self.translator.recipe
        sentences = [each for each in segment(recipe.data.source_language if recipe else "en", text) if each.strip()]
        parts = [part for sentence in sentences for part in self._parts_that_fit(sentence)]
        readings = [Reading([text])] if self._fits(text) else []
        if len(parts) > 1:
            blanks = [part[len(part.rstrip()) :] for part in parts[:-1]]
            readings.append(Reading([part.strip() for part in parts], blanks))
        elif self._knows_full_stop and not text.endswith(ENDS) and self._fits(f"{text}."):
            readings.append(Reading([f"{text[0].upper()}{text[1:]}."], adds_full_stop=True))
        return readings

    def _parts_that_fit(self, text: str, breaks: Sequence[re.Pattern[str]] = BREAKS) -> list[str]:
        """Split a text that is too long for the model: at clauses or, within a clause, at words or characters."""
        if not breaks or self._fits(text):
            return [text]
        parts = [""]
        for piece in breaks[0].findall(text):
            if parts[-1] and not self._fits(parts[-1] + piece):
                parts.append("")
            parts[-1] += piece
        return [short for part in parts for short in self._parts_that_fit(part, breaks[1:])]

    def _fits(self, text: str) -> bool:
        """Return True if a text is not longer than what the model reads, and than any sentence of its training."""
        recipe = self.translator.recipe
        limit = min(self.translator.longest_source, recipe.data.filters.max_tokens if recipe else MAX_SOURCE_TOKENS)
        # A token has at least one byte; one more is reserved for <eos>.
        return len(text.encode()) < limit or len(self.translator.tokenizers.source.encode(text.rstrip())) < limit


class Whole(NamedTuple):
    """A line that is translated as a whole, because its translation in parts violates its constraints."""

    line: str
    constraints: Constraints
    parts: tuple[str, str, str]  # what precedes the core, the core that is translated, what follows it
    own: Constraints  # on the translation of the core


class Reading(NamedTuple):
    """Reading of a text: the sentences into which it is split for translation, and the blanks between them."""

    sentences: list[str]
    blanks: Sequence[str] = ()
    adds_full_stop: bool = False

    def joined(self, translations: Sequence[str]) -> str:
        """Join the translations of the sentences; if the reading added a full stop, remove it."""
        if self.adds_full_stop:
            return re.sub(r"(?<=\w)[.!]$", "", translations[0])
        blanks = [
            blank_after(sentence, text, blank)
            for sentence, text, blank in zip(self.sentences, translations, self.blanks, strict=False)
        ]
        return _joined(translations, blanks)


def blank_after(sentence: str, translation: str, blank: str) -> str:
    """Return the blank after a translated sentence: the `blank` after the sentence, or the other language's."""
    # Chinese and Japanese sentences follow each other without a space.
    is_wide, becomes_wide = (_WIDE_STOP.search(text) is not None for text in (sentence, translation))
    if is_wide == becomes_wide:
        return blank
    return {"": " "}.get(blank, blank) if is_wide else {" ": ""}.get(blank, blank)


def loops(text: str, translation: str) -> bool:
    """Return True if a trigram occurs in a translation at least 4 times and twice as often as any in the source."""

    def most_repeated(text: str) -> int:
        words = re.findall(r"\w+", text.lower())
        return max(Counter(zip(words, words[1:], words[2:], strict=False)).values(), default=0)

    return most_repeated(translation) >= max(MIN_REPETITIONS, 2 * most_repeated(text))


def _mean_log_prob(translations: Sequence[Translation]) -> float:
    best = [translation.alternatives[0].hypothesis for translation in translations if translation.alternatives]
    # The total score of an output is often known before the scores of its tokens are computed.
    total, tokens = sum(each.score * each.penalty for each in best), sum(len(each.token_scores) for each in best)
    return total / tokens if tokens else float("-inf")


def _of_parts(parts: Sequence[Translation], text: str) -> Translation:
    """Combine the translations of the parts of a text."""
    # The hypothesis of an incomplete part, if any, represents the text, so that the text counts as incomplete, too.
    first = next((part for part in parts if not part.complete), parts[0])
    return _with_text(Translation(first.alternatives, any(part.truncated for part in parts)), text)


def _in_sentence_case(part: str, *, first: bool) -> str:
    """Lower-case a text, except for the beginnings of sentences and the word "I"."""
    lower = re.sub(r"\bi\b", "I", part.lower())
    begin = r"(^\W*|[.!?]\s+)(\w)" if first else r"([.!?]\s+)(\w)"
    return re.sub(begin, lambda match: match[1] + match[2].upper(), lower)


def _is_kept(literal: str, span: Span, text: str, translation: str) -> bool:
    """Return True if a translation contains a literal unchanged, or a number in the other language's notation."""
    if translation.count(literal) >= text.count(literal):
        return True
    if span.kind != "number" or not NOTATION.fullmatch(literal):
        return False
    numbers = (re.sub(r"\D", "", number) for number in NUMBER.findall(translation))
    return re.sub(r"\D", "", literal) in numbers


def _stand_ins(text: str, spans: Sequence[Span]) -> Iterator[list[str]]:
    """Yield lists of stand-ins to try: numbers for numbers and names for all else, names for all, numbers for all."""
    count = len(spans)
    # A stand-in that already occurs in the text could not be distinguished from it in the translation.
    names, numbers = ([each for each in pool if each not in text] for pool in (NAMES, NUMBERS))
    if min(len(names), len(numbers)) < count:
        return
    if any(span.kind == "number" for span in spans):
        yield [numbers[i] if span.kind == "number" else names[i] for i, span in enumerate(spans)]
    for begin in range(min(MAX_TRIES, len(names) - count + 1)):
        yield names[begin : begin + count]
    yield numbers[:count]


def _with_text(translation: Translation, text: str) -> Translation:
    if not translation.alternatives or translation.text == text:
        return translation
    return Translation([Alternative(text, translation.alternatives[0].hypothesis)], translation.truncated)


def _texts(text: str, spans: Sequence[Span]) -> list[str]:
    return [text[span.begin : span.end] for span in spans]


def _joined(parts: Sequence[str], between: Sequence[str]) -> str:
    """Join parts of a text with the strings `between` them, one fewer than the parts."""
    return "".join(each for pair in zip(parts, [*between, ""], strict=True) for each in pair)
