"""Unknown tokens are counted where text is encoded, and reported with a remedy that makes them fewer."""

import json

import pytest

from heedful.config.schema import CorpusConfig, DataConfig, Recipe, TokenizerConfig
from heedful.data.preparation.pairs import prepare_pairs
from heedful.tasks import TASKS
from heedful.text.coverage import MANY_UNKNOWN, UnknownTokens, remedy, unknown_lines
from toy_captions import recipe, write_table


@pytest.mark.parametrize(("unknown", "reported"), [(0, False), (1, False), (2, True), (67, True)])
def test_a_share_that_matters_is_reported(unknown, reported):
    found = {"target tokens of train.de": UnknownTokens(100, unknown)}
    lines = list(unknown_lines(found, TokenizerConfig(kind="word", byte_fallback=False)))
    assert MANY_UNKNOWN == 0.02
    assert bool(lines) == reported
    assert all(
        line.startswith(f"{unknown}% of the target tokens of train.de are not in the vocabulary") for line in lines
    )


def test_the_end_of_a_text_is_no_token_of_it_and_nothing_is_no_share():
    found = UnknownTokens()
    assert found.share == 0.0
    found.count([1, 7, 3])
    assert (found.tokens, found.unknown, found.share) == (2, 1, 0.5)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"kind": "word", "byte_fallback": False}, 'tokenizer.kind = "bpe"'),
        ({"kind": "character", "byte_fallback": False}, "tokenizer.byte_fallback = true"),
        ({"kind": "bpe", "byte_fallback": False}, "tokenizer.vocab_size"),
        ({"kind": "foreign", "path": "tokenizer"}, "trained on this text"),
    ],
)
def test_the_remedy_fits_the_tokenizer(settings, key):
    assert key in remedy(TokenizerConfig(**settings))


@pytest.mark.parametrize(
    ("kind", "fallback"),
    [("word", False), ("character", False), *((kind, True) for kind in ("word", "character", "bpe", "wordpiece"))],
)
def test_preparing_pairs_reports_the_side_whose_text_is_unknown(tmp_path, kind, fallback):
    known = ["alle meine entchen", "schwimmen auf dem see"] * 20
    rare = [f"{chr(0x4E00 + 2 * number)}{chr(0x5E01 + 2 * number)} {chr(0x6E00 + number)}" for number in range(40)]
    (tmp_path / "a.de").write_text("\n".join(known) + "\n")
    (tmp_path / "a.zh").write_text("\n".join(rare) + "\n")
    corpus = CorpusConfig(source="a.de", target="a.zh")
    tokenizer = TokenizerConfig(kind=kind, vocab_size=330 if fallback else 60, byte_fallback=fallback, joint=False)
    recipe = Recipe(data=DataConfig(root=str(tmp_path), train=(corpus,), valid=corpus), tokenizer=tokenizer)
    told: list[str] = []
    prepared = prepare_pairs(recipe, tmp_path / "data", told.append)
    lines = [line for line in told if "<unk>" in line]
    assert all("target tokens of a.zh" in line for line in lines)
    assert len(lines) == (0 if fallback else 1)
    stored = json.loads((tmp_path / "data" / "report.json").read_text())["tokens"]
    for side, name in enumerate(("source tokens of a.de", "target tokens of a.zh")):
        rows = [
            (store.source, store.target)[side](index)[:-1]
            for store in (*prepared.train, prepared.valid)
            if store is not None
            for index in range(len(store))
        ]
        counts = {"tokens": sum(map(len, rows)), "unknown": int(sum((row == 1).sum() for row in rows))}
        assert stored[name] == counts
    told.clear()
    prepare_pairs(recipe, tmp_path / "data", told.append)  # the data prepared earlier is used
    assert [line for line in told if "<unk>" in line] == lines


def test_preparing_captions_reports_their_unknown_tokens(tmp_path):
    tokenizer = {"kind": "word", "vocab_size": 7, "byte_fallback": False}
    settings = recipe("captioning", write_table("captioning", tmp_path), tokenizer=tokenizer)
    told: list[str] = []
    TASKS["captioning"].prepare(settings, tmp_path / "data", told.append)
    assert [line.split(" of the ")[1].split(" are ")[0] for line in told if "<unk>" in line] == [
        "target tokens of train.jsonl",
        "target tokens of valid.jsonl",
    ]
