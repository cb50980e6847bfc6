"""Message catalogs: a plain reader finds the translations that were missing, and all else is the same."""

import ast
import re

import pytest
from hard_texts import broken, changed, check_that_only_input_errors_are_raised, texts
from hypothesis import given
from hypothesis import strategies as st

from heedful.documents.gettext_catalog import read
from heedful.errors import InputError

PLURALS = {
    1: "nplurals=1; plural=0;",
    2: "nplurals=2; plural=(n != 1);",
    3: "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);",
}
HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Plural-Forms: {}\\n"\n\n'
plain = texts.map(lambda text: text.replace("\ud83d", "")).filter(str.strip)


def quoted(text: str, parts: int = 1) -> str:
    """A text in one or several strings, with escapes where a catalog needs them."""
    escapes = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
    characters = [escapes.get(c) or (f"\\{ord(c):03o}" if c < " " or c == "\x7f" else c) for c in text]
    size = len(characters) // parts + 1
    strings = [characters[i : i + size] for i in range(0, len(characters), size)]
    return "\n".join(f'"{"".join(string)}"' for string in strings) or '""'


@st.composite
def catalogs(draw: st.DrawFn) -> str:
    count = draw(st.sampled_from([1, 2, 3]))
    blocks = [HEADER.format(PLURALS[count])] if draw(st.booleans()) or count != 2 else []
    for i in range(draw(st.integers(0, 4))):
        blocks += draw(
            st.lists(st.sampled_from(["#: a.c:1\n", "#, c-format\n", "#. note\n", '#| msgid "old"\n']), max_size=2)
        )
        blocks.append(draw(st.sampled_from(["", f'msgctxt "menu {i}"\n'])))
        parts = draw(st.integers(1, 3))
        blocks.append(f"msgid {quoted(draw(plain), parts)}\n")
        translations = draw(st.sampled_from([["", "", ""], ["", "fertig", ""], ["x \\n", "fertig", "y"]]))
        if draw(st.booleans()):
            blocks.append(f"msgid_plural {quoted(draw(plain), parts)}\n")
            blocks += [f'msgstr[{form}] "{translations[form]}"\n' for form in range(count)]
        else:
            blocks.append(f'msgstr "{translations[0]}"\n')
        blocks.append(draw(st.sampled_from(["\n", "\n\n", '\n#~ msgid "gone"\n#~ msgstr ""\n\n'])))
    content = "".join(blocks).rstrip("\n") + draw(st.sampled_from(["", "\n"]))
    return content.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


def statements(content: str) -> list[tuple[str, str]]:
    """Keyword and text of each statement, by a plain reader."""
    content = re.sub(r"(?m)^#.*$", "", content.replace("\r\n", "\n"))
    parts = re.findall(r'([a-z_]+(?:\[\d\])?) ((?:\s*"(?:[^"\\]|\\.)*")+)', content)
    return [
        (key, "".join(ast.literal_eval(each) for each in re.findall(r'"(?:[^"\\]|\\.)*"', value)))
        for key, value in parts
    ]


@given(catalogs())
def test_a_catalog_without_empty_translations_stays_the_same(content):
    content = re.sub(r'(?m)^(msgstr(?:\[\d\])?) ""(?!\s*")', r'\1 "done"', content)
    document = read(content.encode(), "a.po")
    assert document.segments == []
    assert document.with_segments([]) == content.encode()


@given(catalogs(), st.data())
def test_new_texts_are_read_and_all_else_stays(content, data):
    document = read(content.encode(), "a.po")
    segments = changed(document, data.draw)
    output = document.with_segments(segments).decode()
    assert output.count("\r") == (output.count("\n") if "\r" in content else 0)
    new = iter([segment.text.strip("\n").replace("\ud83d", "?") for segment in segments])
    before, after = statements(content), statements(output)
    assert len(before) == len(after)
    sources = []
    for (key, old), (new_key, text) in zip(before, after, strict=True):
        assert key == new_key
        sources = [old] if key == "msgid" else [*sources, old] if key == "msgid_plural" else sources
        if key.startswith("msgstr") and not old and sources[0]:
            body = next(new)
            edges = {(msgid[: len(msgid) - len(msgid.lstrip())], msgid[len(msgid.rstrip()) :]) for msgid in sources}
            assert text in {start + body + end for start, end in edges}
        else:
            assert text == old
    assert next(new, None) is None
    assert re.findall(r"(?m)^#.*$", content) == re.findall(r"(?m)^#.*$", output)


@given(catalogs(), st.data())
def test_broken_files_are_refused_in_one_line(content, data):
    check_that_only_input_errors_are_raised(read, broken(data.draw, content.encode()), "a.po")


@given(st.binary(max_size=31) | st.text('msgidtr_pul "\\#[0]\n', max_size=31).map(str.encode))
def test_arbitrary_bytes_are_refused_in_one_line(data):
    check_that_only_input_errors_are_raised(read, data, "a.po")


def filled(content: str) -> str:
    """A catalog with each source in capital letters as its translation."""
    document = read(content.encode(), "a.po")
    return document.with_segments(
        [segment._replace(text=segment.text.upper()) for segment in document.segments]
    ).decode()


@pytest.mark.parametrize(
    ("definition", "singular", "forms"),
    [
        (PLURALS[1], "%d file", ["%D FILES"]),
        (PLURALS[2], "%d file", ["%D FILE", "%D FILES"]),
        (PLURALS[2], "One file", ["ONE FILE", "%D FILES"]),
        ("nplurals=2; plural=n>1;", "%d file", ["%D FILE", "%D FILES"]),
        (PLURALS[3], "%d file", ["%D FILE", "%D FILES", "%D FILES"]),
        (PLURALS[3], "One file", ["%D FILES", "%D FILES", "%D FILES"]),  # the first form is that of 21, too
        ("nplurals=3; plural=n==1 ? 2 : n==2 ? 0 : 1;", "One file", ["%D FILES", "%D FILES", "ONE FILE"]),
        ("nplurals=INTEGER; plural=EXPRESSION;", "One file", ["ONE FILE", "%D FILES"]),
    ],
)
def test_the_plural_form_of_one_is_a_translation_of_the_singular(definition, singular, forms):
    message = f'msgid "{singular}"\nmsgid_plural "%d files"\n'
    empty = "".join(f'msgstr[{i}] ""\n' for i in range(len(forms)))
    expected = "".join(f'msgstr[{i}] "{form}"\n' for i, form in enumerate(forms))
    header = HEADER.format(definition)
    assert filled(f"{header}{message}{empty}") == f"{header}{message}{expected}"
    assert filled(f'{header}{message}msgstr[0] ""') + "\n" == f"{header}{message}{expected}"  # others are added


def test_translations_fuzzy_and_obsolete_messages_and_contexts_stay():
    content = (
        'msgid "a"\nmsgstr "b"\n\n#, fuzzy\nmsgctxt "c"\nmsgid "d"\nmsgstr "e"\n\n#~ msgid "f"\n#~ msgstr ""\n\n'
        '#, fuzzy\nmsgctxt ""\nmsgid "g"\nmsgstr ""\n'
    )
    assert filled(content) == content.removesuffix('""\n') + '"G"\n'


@pytest.mark.parametrize("charset", ["ASCII", "CHARSET", "US-ASCII"])
def test_a_translation_may_have_characters_that_the_charset_of_a_template_lacks(charset):
    content = f'#, fuzzy\nmsgid ""\nmsgstr "charset={charset}\\n"\n\nmsgid "ä"\nmsgstr ""\nmsgid "b"\nmsgstr ""\n'
    expected = content.replace(charset, "UTF-8").replace('"ä"\nmsgstr ""', '"ä"\nmsgstr "Ä"')
    assert filled(content) == expected.removesuffix('""\n') + '"B"\n'


def test_newlines_at_the_edges_are_those_of_the_source():
    assert filled('msgid "\\na\\nb\\n"\nmsgstr ""\n') == 'msgid "\\na\\nb\\n"\nmsgstr ""\n"\\n"\n"A\\n"\n"B\\n"\n'


def test_lines_are_wrapped_if_those_of_the_file_are():
    long = "word " * 30
    short = filled(f'msgid ""\n"{long[:75]}"\n"{long[75:]}"\nmsgstr ""\n').partition("msgstr")[2]
    assert max(map(len, short.split("\n"))) <= 79
    assert filled(f'msgid "{long}"\nmsgstr ""') == f'msgid "{long}"\nmsgstr "{long.upper().strip()} "'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('msgid "a"\nmsgstr "b\n', "a.po:2: a message catalog cannot have this line"),
        ('msgid "a"\nmsgid "b"\n', "a.po:2: a message catalog cannot have this line"),
        ('msgstr "a"\n', "a.po:1: a message catalog cannot have this line"),
        ('msgid "a"\n', "a.po:2: the last message has no msgstr"),
        ('msgid ""\nmsgstr "charset=ISO-8859-1"\n', "a.po:1: is in ISO-8859-1; convert the file with msgconv"),
        (HEADER.format("nplurals=2; plural=n/0;"), "a.po:1: Plural-Forms cannot be read"),
        (HEADER.format("nplurals=x"), "a.po:1: Plural-Forms cannot be read"),
        ("[json]", "a.po:1: a message catalog cannot have this line"),
    ],
)
def test_the_message_names_the_line(content, message):
    with pytest.raises(InputError, match=message):
        read(content.encode(), "a.po")
