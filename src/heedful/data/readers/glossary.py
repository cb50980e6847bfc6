"""Glossaries: source terms with the target terms that translate them, from a table (.tsv, .csv) or a TBX file."""

import importlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unicodedata import normalize

from heedful.data.readers.files import ending_of, open_bytes
from heedful.data.readers.rows import cells_of
from heedful.documents.xml_tree import Element, parse, text_of
from heedful.errors import InputError

MAX_FILE = 1 << 28  # bytes of a TBX file
TABLES, TBX = (".tsv", ".csv"), (".tbx", ".xml")
PREFIXES = {"http://www.w3.org/XML/1998/namespace": "xml"}
_MARKUP = re.compile(r"<(?!!\[CDATA\[)[^<>]*>")
# Chinese and Japanese characters are compared one by one, because no spaces separate words.
_UNIT = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+|[^\w\s]")
# Languages of the stemmers of snowballstemmer.
STEMMERS = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "fi": "finnish",
    "fr": "french", "hi": "hindi", "hu": "hungarian", "it": "italian", "nl": "dutch", "no": "norwegian",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish", "tr": "turkish",
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """Entry of a glossary: a source term, and the target terms of which one has to appear in a translation."""

    source: str
    targets: tuple[str, ...]


@dataclass
class Glossary:
    """Glossary whose source terms are found in texts as whole words, in upper or lower case.

    Inflected forms of a source term are found, too, if the package snowballstemmer is installed and has a stemmer for
    `language`, an ISO 639 code.
    """

    entries: Sequence[Entry]
    language: str = ""
    by_first: dict[str, list[tuple[tuple[str, ...], Entry]]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._stem = stemmer_of(self.language)
        by_first: defaultdict[str, list[tuple[tuple[str, ...], Entry]]] = defaultdict(list)
        for entry in self.entries:
            if units := self._units(entry.source):
                by_first[units[0]].append((units, entry))
        self.by_first = dict(by_first)

    def entries_in(self, text: str) -> list[Entry]:
        """Return the entries whose source terms occur in a text, in order; where terms overlap, only the longest."""
        units = self._units(text)
        matches = [
            (len(term), begin, entry)
            for begin, unit in enumerate(units)
            for term, entry in self.by_first.get(unit, ())
            if units[begin : begin + len(term)] == term
        ]
        taken: set[int] = set()
        entries = {}
        for size, begin, entry in sorted(matches, key=lambda match: (-match[0], match[1])):
            span = set(range(begin, begin + size))
            if not span & taken:
                taken |= span
                entries.setdefault(entry, begin)
        return sorted(entries, key=lambda entry: entries[entry])

    def _units(self, text: str) -> tuple[str, ...]:
        return tuple(self._stem(unit) for unit in _UNIT.findall(normalize("NFC", text).casefold()))


def stemmer_of(language: str) -> Callable[[str], str]:
    """Return a function that removes the inflection of a word in a language, or one that returns the word unchanged."""
    name = STEMMERS.get(language.partition("-")[0])
    try:
        return importlib.import_module("snowballstemmer").stemmer(name).stemWord if name else str
    except ImportError:
        return str


def read_glossary(path: Path, source_language: str, target_language: str) -> Glossary:
    """Read a glossary; entries with the same source term are combined.

    A table has source terms in its first column and target terms in its second one, in which | separates alternatives.
    A TBX file needs terms in both languages, which are ISO 639 codes.
    """
    ending = ending_of(path)
    if ending not in (*TABLES, *TBX):
        raise InputError(f"{path}: is not a glossary; give a table (.tsv or .csv) or a TBX file (.tbx)")
    pairs = table_pairs(path) if ending in TABLES else tbx_pairs(path, source_language, target_language)
    targets: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for source, target in pairs:
        targets[normalize("NFC", source)][target] = None
    if not targets:
        raise InputError(f"{path}: contains no terms; give a source term and a target term in each row")
    return Glossary([Entry(source, tuple(names)) for source, names in targets.items()], source_language)


def table_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the pairs of source and target terms in a table; blank rows are skipped."""
    for line, cells in cells_of(path, "error"):
        if not cells or not any(cell.strip() for cell in cells):
            continue
        source, *targets = (cell.strip() for cell in cells[:2])
        alternatives = [each.strip() for each in "|".join(targets).split("|") if each.strip()]
        if not source or not alternatives:
            raise InputError(
                f"{path}:{line}: needs a source term and a target term, separated by a tab or, in a .csv file, a comma"
            )
        yield from ((source, each) for each in alternatives)


def tbx_pairs(path: Path, source_language: str, target_language: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of source and target terms of each concept in a TBX file."""
    xml = parse(content_of(path), str(path), PREFIXES)
    languages = set()
    count = 0
    for entry in _elements(xml.root, "termEntry", "conceptEntry"):
        terms: defaultdict[str, list[str]] = defaultdict(list)
        for section in _elements(entry, "langSet", "langSec"):
            language = section.attributes.get("xml:lang", "").lower().partition("-")[0]
            # A term may have markup, such as <hi>.
            texts = (text_of(_MARKUP.sub("", xml.inner(term))) for term in _elements(section, "term"))
            terms[language] += filter(None, (" ".join(text.split()) for text in texts))
        languages |= terms.keys()
        for source in terms[source_language.partition("-")[0]]:
            for target in terms[target_language.partition("-")[0]]:
                count += 1
                yield source, target
    if not count:
        has = f"its languages are {', '.join(sorted(languages))}" if languages else "it contains no termEntry"
        raise InputError(
            f"{path}: contains no terms in both {source_language} and {target_language}; {has}; give a TBX file with "
            "the languages of the model"
        )


def _elements(element: Element, *names: str) -> Iterator[Element]:
    """Yield the elements in an element at any depth that have one of the names, in whatever namespace."""
    for child in element.children:
        if child.name.rpartition(":")[2] in names:
            yield child
        yield from _elements(child, *names)


def content_of(path: Path) -> bytes:
    with open_bytes(path) as stream:
        content = stream.read(MAX_FILE + 1)
    if len(content) > MAX_FILE:
        raise InputError(f"{path}: is larger than {MAX_FILE:,} bytes; divide it")
    return content
