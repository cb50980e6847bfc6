"""Glossaries: tables and TBX files, and the terms that occur in a text."""

from pathlib import Path

import pytest

from heedful.data.readers import glossary as module
from heedful.data.readers.glossary import Entry, Glossary, read_glossary
from heedful.errors import InputError

TBX = """<?xml version="1.0"?><!DOCTYPE martif SYSTEM "TBXcoreStructV02.dtd">
<martif type="TBX" xml:lang="en"><text><body>
<termEntry><langSet xml:lang="en-GB"><tig><term>motor  car</term></tig></langSet>
<langSet xml:lang="de"><ntig><termGrp><term>Auto</term></termGrp></ntig><tig><term>Wagen</term></tig></langSet>
</termEntry>
<termEntry><langSet xml:lang="fr"><tig><term>chien</term></tig></langSet></termEntry>
</body></text></martif>"""


def sources(glossary: Glossary, text: str) -> list[str]:
    return [entry.source for entry in glossary.entries_in(text)]


def write(folder: Path, name: str, content: str) -> Path:
    (folder / name).write_text(content, encoding="utf-8")
    return folder / name


def test_a_table_has_source_terms_and_alternatives(tmp_path):
    file = write(tmp_path, "terms.tsv", "dog\tHund | Köter\n\ncat\tKatze\ndog\tWelpe\n")
    assert read_glossary(file, "en", "de").entries == [
        Entry("dog", ("Hund", "Köter", "Welpe")),
        Entry("cat", ("Katze",)),
    ]


def test_a_tbx_file_has_the_terms_of_concepts_in_many_languages(tmp_path):
    file = write(tmp_path, "terms.tbx", TBX)
    assert read_glossary(file, "en", "de").entries == [Entry("motor car", ("Auto", "Wagen"))]
    with pytest.raises(InputError, match="no terms in both es and de; its languages are de, en, fr"):
        read_glossary(file, "es", "de")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("terms.tsv", "dog\tHund\ncat\n", "terms.tsv:2: needs a source term and a target term"),
        ("terms.tsv", "\n", "contains no terms"),
        ("terms.txt", "dog\tHund\n", "is not a glossary"),
        ("terms.tbx", "<martif>\n<text>", "terms.tbx:2: is not well-formed XML"),
        ("terms.tbx", "<martif/>", "it contains no termEntry"),
        ("terms.tbx", '<!DOCTYPE m [<!ENTITY a "b">]><m>&a;</m>', "defines entities in a DOCTYPE"),
    ],
)
def test_what_is_wrong_with_a_glossary_is_said(tmp_path, name, content, problem):
    with pytest.raises(InputError, match=problem):
        read_glossary(write(tmp_path, name, content), "en", "de")


def test_terms_are_whole_words_and_the_longest_ones_win():
    glossary = Glossary([Entry(term, ("x",)) for term in ("dog", "hot dog", "dog food", "Ü")])
    assert sources(glossary, "A HOT  dog, dogs and a dogma.") == ["hot dog"]
    assert sources(glossary, "dog food for the dog") == ["dog food", "dog"]
    assert sources(glossary, "hot dog food") == ["hot dog"]
    assert sources(glossary, "u\u0308 dog dog") == ["Ü", "dog"]
    assert sources(glossary, "") == []


def test_chinese_terms_need_no_spaces_around_them():
    glossary = Glossary([Entry("电脑", ("computer",)), Entry("AI", ("AI",))])
    assert sources(glossary, "我的电脑用AI。") == ["电脑", "AI"]


def test_inflected_terms_are_found_with_a_stemmer(monkeypatch):
    class Stemmer:
        def stemWord(self, word: str) -> str:
            return word.removesuffix("s")

    monkeypatch.setattr(module.importlib, "import_module", lambda _: type("M", (), {"stemmer": lambda _: Stemmer()}))
    glossary = Glossary([Entry("dog", ("Hund",))], "en")
    assert sources(glossary, "Two dogs") == ["dog"]
    assert sources(Glossary([Entry("dog", ("Hund",))], "tlh"), "Two dogs") == []
