"""Whatever the documentation names exists: files, commands, options, recipe keys, classes, functions.

A name stands between backticks. `OTHERS` are no names of heedful's; it is short, and a new entry needs a reason.
"""

import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import known
import pytest
from pages import PAGES, ROOT, Code, blocks, name_of, spans

HISTORY = {"CHANGELOG.md", "EXPERIMENTS.md"}  # tell of names that were
PROSE = [page for page in PAGES if page.name not in HISTORY]
HOMES = [
    ROOT / place for place in ("", "src/heedful", "src", "benchmarks", "faults", "web/src")
]  # where paths may start
OTHERS = {
    "Auto": "the beginning of the names of some classes of transformers",
    "Dense": "a module of Sentence Transformers",
    "SentenceTransformer": "its model",
    "model.onnx": "a file of an exported model, and no key of a recipe",
    "my_tasks.py": "a file of the reader's",
    "valid_loss": "in the log, `valid_` and the name of a score",
    "xquad.zh.json.gz": "data that a recipe's page proposes",
}

PLACED = [  # names that a line puts into a file
    re.compile(r"(?P<names>(?:`\w+`(?:, | and )?)+) in `(?P<file>[\w/]+\.py)`"),
    re.compile(r"`(?P<file>[\w/]+\.py)` 里的(?P<names>(?:、?\s?`\w+`)+)"),
]


def of_command(code: Code, match: re.Match[str]) -> str | None:
    """`heedful COMMAND --option`: the command has that option."""
    found = known.command_at(match[1].split()[1:])
    if isinstance(found, str):
        return f"there is no command {found}"
    return missing("option", options_in(match[1]) - known.options(found))


def of_script(code: Code, match: re.Match[str]) -> str | None:
    """`python FILE --option`: the file is there, and so is the option."""
    if not (ROOT / match[1]).is_file():
        return f"there is no {match[1]}"
    return missing("option", options_in(match[2]) - known.all_options())


def of_make(code: Code, match: re.Match[str]) -> str | None:
    """`make TARGET`: the Makefile has it."""
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return missing("target", set(match[1].split()) - set(targets))


def of_install(code: Code, match: re.Match[str]) -> str | None:
    """`pip install heedful[EXTRA]`: there is that extra."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    asked = {name for group in re.findall(r"\[([\w,]+)\]", match[1]) for name in group.split(",")}
    return missing("extra", asked - set(extras))


def of_option(code: Code, match: re.Match[str]) -> str | None:
    """`--option`: some command has it."""
    return missing("option", options_in(match[0]) - known.all_options())


def of_path(code: Code, match: re.Match[str]) -> str | None:
    """A file of the repository, of what heedful writes, of the data of a recipe, or of a block of this page."""
    path = match[0].removesuffix("/")
    there = any((home / path).exists() for home in [code.page.parent, *HOMES])
    shown = any(path in (block.title, *block.text.split()) for block in blocks(code.page, "bash", "python", "toml"))
    return None if there or shown or path.split("/")[-1] in known.names() else "there is no such file"


def of_key(code: Code, match: re.Match[str]) -> str | None:
    """`table.key = value`: recipes have that key, and it takes that value."""
    name, value = match[1], match[2]
    if known.key(name.split(".")[0]) is None:
        return of_name(code, match)
    node = known.key(name)
    if node is None:
        return None if known.is_importable(["heedful", *name.split(".")]) else f"recipes have no {name}"
    choices = [choice for option in [node, *node.get("anyOf", [])] for choice in option.get("enum", [])]
    wrong = choices and value and value.strip('"') not in map(str, choices)
    return f"{name} takes {choices}" if wrong else None


def of_name(code: Code, match: re.Match[str]) -> str | None:
    """A class, a function, or a word that the sources know; or a class of a block of this page."""
    shown = any(re.search(rf"^class {match[1]}\b", block.text, re.M) for block in blocks(code.page, "python"))
    return None if shown or known.is_known(match[1].split(".")) else "there is no such name"


def options_in(text: str) -> set[str]:
    """What begins with two dashes."""
    return set(re.findall(r"(?<!\S)--[a-z][\w-]*", text))


def missing(what: str, names: set[str]) -> str | None:
    """A sentence, if there are any."""
    return f"there is no {what} {', '.join(sorted(names))}" if names else None


FORMS: list[tuple[str, Callable[[Code, re.Match[str]], str | None]]] = [  # the first that a text has decides
    (r"(?:\w+=\S+ )?(heedful [a-z].*)", of_command),
    (r"(?:python|sh) (\S+\.(?:py|sh))(.*)", of_script),
    (r"make ((?:[a-z]+ ?)+)", of_make),
    (r"pip install (.*)", of_install),
    (r"--[a-z].*", of_option),
    (r"(?:[\w.-]+/)+[\w.-]*|[\w.-]+\.(?:py|sh|md|toml|jsonl?|svg|png|tsv|txt|gz|ipynb|align)", of_path),
    (r"([a-z_]+(?:\.[a-z_0-9]+)+)(?: ?= ?(.+))?", of_key),
    (r"\.?([A-Za-z_]\w*(?:\.\w+)*)(?:\(.*\))?(?:\.\w+(?:\(.*\))?)*", of_name),
]


def problem(code: Code) -> str | None:
    """What is wrong with a text between backticks; None if nothing is, or if it is no name."""
    if code.text in OTHERS or code.text.isupper():  # capitals stand for what the reader puts there
        return None
    for form, check in FORMS:
        if match := re.fullmatch(form, code.text):
            return check(code, match)
    return None


def typed(page: Path) -> Iterator[Code]:
    """The lines in the blocks of a page that set things up or run a script, which the tests of pages leave out."""
    for block in blocks(page, "bash", "console"):
        for number, line in enumerate(block.text.split("\n"), start=block.line):
            if re.match(r"(python|sh|make|pip) ", line):
                yield Code(page, number, "", line.partition("#")[0].strip())


@pytest.mark.parametrize("page", PROSE, ids=name_of)
def test_whatever_a_page_names_exists(page: Path) -> None:
    problems = [
        f"{code.place}: `{code.text}`: {found}" for code in [*spans(page), *typed(page)] if (found := problem(code))
    ]
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize("page", PROSE, ids=name_of)
def test_a_name_is_in_the_file_that_a_page_says(page: Path) -> None:
    problems = []
    for match in (match for form in PLACED for match in form.finditer(page.read_text(encoding="utf-8"))):
        files = [home / match["file"] for home in HOMES if (home / match["file"]).is_file()]
        there = {name for path in files for name in known.defined(known.tree(path))}
        problems += [
            f"{name} is not in {match['file']}" for name in re.findall(r"\w+", match["names"]) if name not in there
        ]
    assert not problems, "\n" + "\n".join(problems)


def test_a_wrong_name_of_each_kind_is_found() -> None:
    wrong = [
        "heedful trains --out x", "heedful train x --outt y", "python benchmarks/no.py", "make demos",
        'pip install "heedful[server]"', "--tempreture", "nn/sights.py", "model.head", 'model.norm = "middle"', "Sigth",
        "heedful.architectures.no_such.Thing",
    ]  # fmt: skip
    assert [text for text in wrong if problem(Code(ROOT / "README.md", 1, "", text)) is None] == []


def shown_commands() -> set[tuple[str, str]]:
    """Each heedful command in a block of a page, or in the Makefile, with the file that shows it."""
    shown = re.compile(r"(?:^|[$|] )(heedful [^|<>\n#]+)", re.MULTILINE)
    pages = {
        (name_of(page), line) for page in PAGES for block in blocks(page, "bash") for line in shown.findall(block.text)
    }
    makefile = re.findall(r"\$\(BIN\)/(heedful [^|<>\n]+)", (ROOT / "Makefile").read_text())
    return pages | {("Makefile", line) for line in makefile}


@pytest.mark.parametrize(("place", "line"), sorted(shown_commands()))
def test_every_command_that_is_shown_parses(place: str, line: str) -> None:
    for _, command in known.commands("heedful", known.command_line()):
        command.callback = lambda **_: None
        for parameter in command.params:
            parameter.callback = None  # it looks for files that are not here
    known.command_line().main(shlex.split(line)[1:], standalone_mode=False)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_files_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []
