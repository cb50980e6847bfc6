import gzip
import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from heedful.config.load import recipe_to_dict
from heedful.config.schema import CorpusConfig, DataConfig, FilterConfig, ModelConfig, Recipe, TokenizerConfig
from heedful.data.preparation.pairs import prepare_pairs
from heedful.data.preparation.prepared_data import data_digest
from heedful.errors import InputError, RunError
from heedful.storage.disk import Storage
from heedful.text.tokenizer import EOS

WORDS = """
    the der, a ein, one eins, two zwei, small klein, big groß, green grün, red rot, dog Hund, cat Katze, house Haus,
    tree Baum, sees sieht, likes mag, under unter, near nahe
"""
ENGLISH, GERMAN = zip(*[entry.split() for entry in WORDS.split(",")], strict=True)


def sentences(count: int, seed: int) -> tuple[list[str], list[str]]:
    rng = random.Random(seed)
    picks = [[rng.randrange(len(ENGLISH)) for _ in range(rng.randint(4, 11))] for _ in range(count)]
    return [" ".join(ENGLISH[i] for i in pick) for pick in picks], [" ".join(GERMAN[i] for i in pick) for pick in picks]


def write(folder: Path, name: str, source: list[str], target: list[str]) -> CorpusConfig:
    for language, side in (("en", source), ("de", target)):
        (folder / f"{name}.{language}").write_bytes("".join(line + "\n" for line in side).encode())
    return CorpusConfig(source=f"{name}.en", target=f"{name}.de")


@pytest.fixture
def recipe(tmp_path):
    """Two training corpora of 101 and 53 pairs and 13 pairs for validation."""
    root = tmp_path / "text"
    root.mkdir()
    return Recipe(
        data=DataConfig(
            root=str(root),
            train=(
                write(root, "large", *sentences(101, seed=3)),
                replace(write(root, "small", *sentences(53, seed=5)), weight=2.5),
            ),
            valid=write(root, "valid", *sentences(13, seed=7)),
        ),
        tokenizer=TokenizerConfig(vocab_size=331),
    )


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def told():
    """What `prepare` reports, in a list."""
    return []


def with_data(recipe: Recipe, **changes) -> Recipe:
    return replace(recipe, data=replace(recipe.data, **changes))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_stores_hold_the_text_in_order(recipe, folder, told):
    prepared = prepare_pairs(recipe, folder, told.append)
    assert prepared.weights == (1.0, 2.5)
    assert prepared.report.rows() == []
    assert prepared.tokenizers.joint
    expected = [sentences(101, seed=3), sentences(53, seed=5), sentences(13, seed=7)]
    stores = [store for store in (*prepared.train, prepared.valid) if store is not None]
    for store, (source, target) in zip(stores, expected, strict=True):
        assert len(store) == len(source)
        for index in range(len(store)):
            assert store.source(index)[-1] == store.target(index)[-1] == EOS
            assert prepared.tokenizers.source.decode(store.source(index)) == source[index]
            assert prepared.tokenizers.target.decode(store.target(index)) == target[index]
    assert prepared.valid_text == list(zip(*expected[2], strict=True))
    assert [line.split(":")[0] for line in told] == ["training the bpe tokenizer", "large.en", "small.en", "valid.en"]


def test_everything_that_is_dropped_is_counted_and_nothing_is_dropped_from_validation(recipe, folder, told):
    root = Path(recipe.data.root)
    source, target = sentences(7, seed=11)
    bad_source = ["", "dog", "x" * 1_000_000, source[0], "Собака видит", "dog", "the " * 31, source[1]]
    bad_target = ["Hund", " ", "Hund", target[0], "Hund", "der " * 20, "Hund", target[1]]
    train = write(root, "mixed", source + bad_source, target + bad_target)
    valid = write(root, "valid", bad_source, bad_target)
    filters = FilterConfig(max_characters=211, max_tokens=29, max_ratio=5.0, source_script="latin")
    prepared = prepare_pairs(with_data(recipe, train=(train,), valid=valid, filters=filters), folder, told.append)
    assert prepared.report.rows() == [
        ("empty source", 1, "mixed.en, line 8"),
        ("empty target", 1, "mixed.en, line 9"),
        ("too many characters", 1, "mixed.en, line 10"),
        ("wrong script", 1, "mixed.en, line 12"),
        ("duplicate", 2, "mixed.en, line 11"),
        ("too many tokens", 1, "mixed.en, line 14"),
        ("length ratio", 1, "mixed.en, line 13"),
    ]
    assert len(prepared.train[0]) == 7
    assert prepared.valid is not None
    assert len(prepared.valid) == len(prepared.valid_text) == 8
    assert "7 pairs, 8 dropped" in "".join(told)


def test_duplicates_are_found_across_corpora(recipe, folder, told):
    doubled = with_data(recipe, train=(recipe.data.train[0], *recipe.data.train))
    with pytest.raises(InputError, match=r"large\.en: no pairs are left \(101 dropped: 101 for duplication"):
        prepare_pairs(doubled, folder, told.append)
    doubled = with_data(doubled, filters=FilterConfig(duplicates=True))
    assert [len(store) for store in prepare_pairs(doubled, folder, told.append).train] == [101, 101, 53]


def test_bad_utf8_is_dropped_from_both_sides_and_counted(recipe, folder, told):
    for name in ("large.en", "small.de", "valid.de"):
        path = Path(recipe.data.root) / name
        lines = path.read_bytes().split(b"\n")
        path.write_bytes(b"\n".join([*lines[:6], b"\xff" + lines[6], *lines[7:]]))
    with pytest.raises(InputError, match=r"large\.en, line 7, byte 1.*data\.bad_utf8"):
        prepare_pairs(recipe, folder, told.append)
    assert not folder.exists()
    prepared = prepare_pairs(with_data(recipe, bad_utf8="skip"), folder, told.append)
    assert prepared.report.rows() == [("bad UTF-8", 3, "large.en, line 7")]
    assert [len(store) for store in prepared.train] == [100, 52]
    assert prepared.valid is not None
    assert len(prepared.valid) == len(prepared.valid_text) == 12


def test_vocabularies_can_be_separate(recipe, folder, told):
    separate = replace(recipe, tokenizer=replace(recipe.tokenizer, joint=False))
    prepared = prepare_pairs(separate, folder, told.append)
    assert not prepared.tokenizers.joint
    assert prepared.tokenizers.target.decode(prepared.train[0].target(0)) == sentences(101, seed=3)[1][0]
    assert "grün" not in "".join(prepared.tokenizers.source.pieces(range(len(prepared.tokenizers.source))))


def test_data_without_validation_is_prepared(recipe, folder, told):
    prepared = prepare_pairs(with_data(recipe, valid=None), folder, told.append)
    assert prepared.valid is None
    assert prepared.valid_text == []


def lengthen(recipe, line, words):
    """Replace a line of the validation text by one of so many words."""
    path = Path(recipe.data.root) / recipe.data.valid.source
    lines = path.read_text().splitlines(keepends=True)
    lines[line - 1] = "dog " * words + "\n"
    path.write_text("".join(lines))


def test_a_validation_sentence_longer_than_learned_positions_is_refused_with_its_line(recipe, folder, told):
    model = ModelConfig(positions="learned", max_positions=307)
    learned = replace(recipe, model=model)
    prepare_pairs(learned, folder, told.append)
    lengthen(recipe, 7, 200)
    for _ in range(2):  # prepared, and prepared before
        with pytest.raises(
            InputError, match=r"valid\.en, line 7: a sentence of 6\d\d tokens is longer than model\.max_p"
        ):
            prepare_pairs(learned, folder, told.append)
    prepare_pairs(replace(recipe, model=replace(model, max_positions=1009)), folder, told.append)


def test_a_very_long_validation_sentence_is_remarked_upon(recipe, folder, told):
    lengthen(recipe, 11, 5003)
    prepare_pairs(recipe, folder, told.append)
    assert "valid.en, line 11: a sentence of 15,0" in told[-1]


def test_prepared_data_is_used_again(recipe, folder, told):
    first = prepare_pairs(recipe, folder, told.append)
    before = {path: path.stat().st_ino for path in folder.rglob("*")}
    again = prepare_pairs(recipe, folder, told.append)
    assert told[-1] == f"{folder}: using the data prepared earlier"
    assert {path: path.stat().st_ino for path in folder.rglob("*")} == before
    assert again.digest == first.digest == data_digest(recipe)
    assert [store.ids.tolist() for store in again.train] == [store.ids.tolist() for store in first.train]
    assert (again.report, again.valid_text, again.weights) == (first.report, first.valid_text, first.weights)


def test_data_that_an_older_version_prepared_is_prepared_again(recipe, folder, told):
    prepare_pairs(recipe, folder, told.append)
    report = json.loads((folder / "report.json").read_text())
    del report["format"]
    (folder / "report.json").write_text(json.dumps(report))
    told.clear()
    prepare_pairs(recipe, folder, told.append)
    assert told[0] == f"{folder}: preparing the data again (an older version of heedful prepared it)"
    assert json.loads((folder / "report.json").read_text())["format"] == 2


def test_other_data_replaces_prepared_data(recipe, folder, told):
    first = prepare_pairs(recipe, folder, told.append)
    with (Path(recipe.data.root) / "large.en").open("a") as source:
        source.write("one more\n")
    with (Path(recipe.data.root) / "large.de").open("a") as target:
        target.write("noch eins\n")
    second = prepare_pairs(recipe, folder, told.append)
    assert second.digest != first.digest
    assert len(second.train[0]) == 102
    assert len(list(folder.parent.iterdir())) == 2


def test_the_digest_does_not_depend_on_names_places_dates_compression_and_weights(recipe, tmp_path):
    digest = data_digest(recipe)
    moved = tmp_path / "moved"
    moved.mkdir()
    for path in Path(recipe.data.root).iterdir():
        (moved / f"my-{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        os.utime(moved / f"my-{path.name}.gz", (1, 1))

    def renamed(corpus: CorpusConfig) -> CorpusConfig:
        return replace(corpus, source=f"my-{corpus.source}.gz", target=f"my-{corpus.target}.gz", weight=7.0)

    train = tuple(renamed(corpus) for corpus in recipe.data.train)
    assert data_digest(with_data(recipe, root=str(moved), train=train, valid=renamed(recipe.data.valid))) == digest
    assert data_digest(replace(recipe, name="other", train=replace(recipe.train, seed=7))) == digest
    assert data_digest(with_data(recipe, test=recipe.data.valid)) == digest
    assert data_digest(replace(recipe, tokenizer=replace(recipe.tokenizer, dropout=0.1))) == digest


def test_the_digest_depends_on_every_setting_that_changes_the_data(recipe):
    data, filters, tokenizer = recipe.data, recipe.data.filters, recipe.tokenizer
    changed = [
        recipe,
        with_data(recipe, train=data.train[::-1]),
        with_data(recipe, train=data.train[:1]),
        with_data(recipe, train=(replace(data.train[0], source="large.de"), *data.train[1:])),
        with_data(recipe, train=(replace(data.train[0], part=(0.0, 0.5)), *data.train[1:])),
        with_data(recipe, valid=None),
        with_data(recipe, valid=data.train[0]),
        with_data(recipe, bad_utf8="skip"),
        with_data(recipe, filters=replace(filters, max_characters=997)),
        with_data(recipe, filters=replace(filters, max_tokens=97)),
        with_data(recipe, filters=replace(filters, max_ratio=7.0)),
        with_data(recipe, filters=replace(filters, duplicates=True)),
        with_data(recipe, filters=replace(filters, source_script="latin")),
        with_data(recipe, filters=replace(filters, target_script="latin")),
        replace(recipe, tokenizer=replace(tokenizer, kind="word")),
        replace(recipe, tokenizer=replace(tokenizer, vocab_size=337)),
        replace(recipe, tokenizer=replace(tokenizer, joint=False)),
        replace(recipe, tokenizer=replace(tokenizer, lowercase=True)),
        replace(recipe, tokenizer=replace(tokenizer, normalization="nfc")),
        replace(recipe, tokenizer=replace(tokenizer, byte_fallback=False)),
        replace(recipe, tokenizer=replace(tokenizer, pretokenized=True)),
    ]
    assert len({data_digest(one) for one in changed}) == len(changed)


@pytest.mark.parametrize("victim", ["train-0/ids.bin", "train-1/manifest.json", "valid/lengths.npy", "tokenizer/joint"])
@pytest.mark.parametrize("damage", ["changed", "lost"])
def test_damaged_data_is_prepared_again(recipe, folder, told, victim, damage):
    first = prepare_pairs(recipe, folder, told.append)
    path = folder / victim
    path = path / "tokenizer.json" if path.is_dir() else path
    content = path.read_bytes()
    path.unlink()
    if damage == "changed":
        path.write_bytes(content[:-3] + bytes(reversed(content[-3:-1])) + b"}")
    again = prepare_pairs(recipe, folder, told.append)
    assert f"{folder}: preparing the data again" in " ".join(told)
    assert [store.ids.tolist() for store in again.train] == [store.ids.tolist() for store in first.train]
    assert path.read_bytes() == content


def test_a_tokenizer_that_is_there_is_used(recipe, folder, told, tmp_path):
    trained = prepare_pairs(recipe, folder, told.append)
    trained.tokenizers.save(tmp_path / "tokenizer")
    told.clear()
    given = with_data(recipe, train=recipe.data.train[1:])
    given = replace(given, tokenizer=replace(recipe.tokenizer, path=str(tmp_path / "tokenizer"), vocab_size=1009))
    prepared = prepare_pairs(given, tmp_path / "other", told.append)
    assert not [line for line in told if line.startswith("training")]
    assert prepared.train[0].ids.tolist() == trained.train[1].ids.tolist()
    assert prepared.digest != trained.digest


@pytest.mark.parametrize(("joint", "problem"), [(True, "two vocabularies"), (False, "one vocabulary")])
def test_a_tokenizer_of_the_other_layout_is_refused(recipe, folder, told, tmp_path, joint, problem):
    other = replace(recipe, tokenizer=replace(recipe.tokenizer, joint=not joint))
    prepare_pairs(other, folder, told.append).tokenizers.save(tmp_path / "tokenizer")
    wrong = replace(recipe, tokenizer=replace(recipe.tokenizer, joint=joint, path=str(tmp_path / "tokenizer")))
    with pytest.raises(InputError, match=f"has {problem}.*set tokenizer.joint = {str(not joint).lower()}"):
        prepare_pairs(wrong, tmp_path / "other", told.append)


@pytest.mark.parametrize(
    "filters", [FilterConfig(max_characters=3), FilterConfig(max_tokens=2), FilterConfig(source_script="han")]
)
def test_filters_that_leave_nothing_are_an_error_with_the_reasons(recipe, folder, told, filters):
    with pytest.raises(InputError, match=r"no pairs are left \(\d+ dropped: \d+ for .* line 1\).*data\.filters"):
        prepare_pairs(with_data(recipe, filters=filters), folder, told.append)
    assert not folder.exists()


@pytest.mark.parametrize("empty", ["large", "small", "valid"])
def test_an_empty_corpus_is_an_error(recipe, folder, told, empty):
    write(Path(recipe.data.root), empty, [], [])
    with pytest.raises(InputError, match=rf"{empty}\.en: contains no pairs"):
        prepare_pairs(recipe, folder, told.append)


def test_a_recipe_without_text_is_an_error(recipe, folder, told):
    with pytest.raises(InputError, match=r"\[\[data\.train\]\]"):
        prepare_pairs(with_data(recipe, train=()), folder, told.append)


def test_a_pipe_is_refused_without_reading_it(recipe, folder, told):
    path = Path(recipe.data.root) / "large.en"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputError, match="not a regular file"):
        prepare_pairs(recipe, folder, told.append)


@pytest.mark.parametrize(
    "content", [{"thesis.txt": "precious"}, {"report.json": "{}"}, {"report.json": "[1]", "x": ""}]
)
def test_a_folder_that_holds_something_else_is_left_alone(recipe, folder, told, content):
    folder.mkdir()
    for name, text in content.items():
        (folder / name).write_text(text)
    before = contents(folder)
    with pytest.raises(InputError, match="not a folder with prepared data"):
        prepare_pairs(recipe, folder, told.append)
    assert contents(folder) == before


def test_an_empty_folder_is_filled(recipe, folder, told):
    folder.mkdir()
    assert len(prepare_pairs(recipe, folder, told.append).train) == 2


def test_a_file_in_the_place_of_the_folder_is_left_alone(recipe, folder, told):
    folder.write_text("precious")
    with pytest.raises(InputError, match="not a folder with prepared data"):
        prepare_pairs(recipe, folder, told.append)
    assert folder.read_text() == "precious"


def test_what_fails_leaves_the_data_of_before(recipe, folder, told, monkeypatch):
    prepare_pairs(recipe, folder, told.append)
    before = contents(folder)

    def full(_, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Storage, "create", full)
    with pytest.raises(RunError, match="No space left on device"):
        prepare_pairs(with_data(recipe, valid=None), folder, told.append)
    assert contents(folder) == before
    assert len(list(folder.parent.iterdir())) == 2


KILLED = """
import os, sys
from pathlib import Path
from heedful.config.load import recipe_from_dict
from heedful.data.preparation.pairs import prepare_pairs
import json

def report(text):
    if text.startswith(sys.argv[3]):
        os._exit(137)

prepare_pairs(recipe_from_dict(json.loads(sys.argv[1]), "test"), Path(sys.argv[2]), report)
"""


@pytest.mark.parametrize("moment", ["training", "large", "valid"])
def test_a_killed_preparation_leaves_nothing_that_looks_whole(recipe, folder, told, moment):
    arguments = [json.dumps(recipe_to_dict(recipe)), str(folder), moment]
    assert subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False).returncode == 137
    assert not folder.exists()
    assert len(prepare_pairs(recipe, folder, told.append).train) == 2
    assert sorted(path.name for path in folder.parent.iterdir()) == ["data", "text"]
