"""CTranslate2 as the engine: the translations of torch's search, and no torch in the process."""

import json
from dataclasses import asdict
from typing import Any

import pytest
import torch

import heedful
from engine_models import LINES, run_without_torch, write_random_model
from heedful.architectures import weights
from heedful.checkpoint import write_model
from heedful.config.load import recipe_from_dict
from heedful.config.schema import DecodeConfig
from heedful.convert import engine
from heedful.convert.engine import open_predictor
from heedful.errors import InputError
from heedful.predictors.ctranslate2_translator import CTranslate2Translator, search_misfits
from heedful.storage.complete_folder import ENGINES, is_complete
from heedful.text.pipeline import BOS, PAD
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

pytest.importorskip("ctranslate2")

SHAPES = {
    "of the paper": {},
    "of init": {"norm": "pre", "positions": "rotary"},
    "learned positions": {"positions": "learned", "max_positions": 30},
    "relative positions": {"positions": "relative"},
    "Llama": {"norm": "pre", "positions": "rotary", "normalization": "rms", "activation": "swiglu", "kv_heads": 2},
}
SEARCHES = {
    "greedy": {"beam": 1},
    "beam": {"beam": 4},
    "n best": {"beam": 3, "n_best": 3, "penalty": "average", "alpha": 1.0},
    "no penalty": {"beam": 3, "alpha": 0.0},
    "impatient": {"beam": 4, "patience": 0.5, "n_best": 2},
    "cut": {"beam": 3, "max_extra": 0},
    "greedy and cut": {"beam": 1, "max_extra": 0},
    "one by one": {"beam": 2, "batch_tokens": 1},
}


def write_translator(folder, **settings):
    """Write a translator with random weights that writes <eos> often, and <pad> and <bos> never."""
    model = {"encoder_layers": 1, "decoder_layers": 2, "tie": "none", "output_bias": True, **settings}
    data = {"max_length": 24, "filters": {"max_tokens": 24}}
    return write_random_model(folder, "translation", model, 1.5, data=data, decode={"max_extra": 6})


@pytest.fixture(scope="module", params=SHAPES)
def translators(request, tmp_path_factory):
    folder = write_translator(tmp_path_factory.mktemp("model") / "m", **SHAPES[request.param])
    return heedful.load(folder, engine="torch"), heedful.load(folder, engine="ctranslate2")


@pytest.mark.sampled(14)
@pytest.mark.parametrize("search", SEARCHES)
def test_translations_are_those_of_torch(translators, search):
    ours, theirs = (list(each.translate_lines([*LINES, ""], **SEARCHES[search])) for each in translators)
    for here, there in zip(ours, theirs, strict=True):
        assert [each.text for each in there.alternatives] == [each.text for each in here.alternatives]
        assert there.complete == here.complete
        assert there.truncated == here.truncated
        for mine, other in zip(here.alternatives, there.alternatives, strict=True):
            assert other.hypothesis.score == pytest.approx(mine.hypothesis.score, abs=1e-4)
            assert list(other.hypothesis.token_scores) == pytest.approx(list(mine.hypothesis.token_scores), abs=1e-4)
    if "cut" in search:
        assert not all(each.complete for each in ours)


def test_scores_of_given_translations_are_those_of_torch(translators):
    pairs = [(LINES[3], LINES[7]), (LINES[0], "")]
    ours, theirs = (each.score(pairs) for each in translators)
    for here, there in zip(ours, theirs, strict=True):
        assert there.pieces == here.pieces
        assert there.log_probs == pytest.approx(here.log_probs, abs=1e-4)


def test_every_line_is_counted_once(translators):
    counts = []
    list(translators[1].translate_lines([*LINES, ""], done=counts.append, max_extra=0))
    assert sum(counts) == len(LINES) + 1


@pytest.fixture
def padding(tmp_path):
    """Folder of a model that often predicts <pad> and <bos>, as new models do."""
    loaded: Any = heedful.load(write_translator(tmp_path / "model"), engine="torch")
    with torch.no_grad():
        loaded.model.output.bias[[PAD, BOS]] = 4.0
    write_model(tmp_path / "padding", loaded.recipe, loaded.tokenizers, weights(loaded.model))
    return tmp_path / "padding"


def test_torch_searches_where_ctranslate2_would_write_pad(padding, monkeypatch):
    monkeypatch.setattr(engine, "MAX_SHARE", 1.0)
    ours: Any = heedful.load(padding, engine="torch")
    theirs: Any = heedful.load(padding, engine="ctranslate2")
    rows = ours.tokenizers.source.encode_batch(LINES)
    empty = theirs.model.search(rows, [9] * len(rows), ours.config)
    assert not all(empty)
    assert theirs.translate(LINES) == ours.translate(LINES)


def test_a_model_whose_beams_could_hold_pad_is_left_to_torch(padding):
    with pytest.raises(InputError, match=r"<pad> and <bos>: must have almost no probability, but have \d\d\.\d%"):
        heedful.load(padding, engine="ctranslate2")
    assert not isinstance(heedful.load(padding, engine="auto"), CTranslate2Translator)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"patience": 0.0}, "decode.patience = 0: must be"),
        ({"patience": 0.3, "beam": 4}, "decode.patience = 0.3"),
        ({"patience": 0.5, "beam": 4, "n_best": 3}, "decode.n_best = 3: must be at most patience x beam"),
        ({"beam": 200}, "decode.beam = 200: must be at most half of the vocabulary"),
        ({"max_extra": 2000}, "decode.max_extra = 2000: must be at most 1,048"),
    ],
)
def test_a_search_that_ctranslate2_lacks_is_refused_or_done_by_torch(options, problem, tmp_path):
    folder = write_translator(tmp_path / "model")
    with pytest.raises(InputError, match=problem):
        open_predictor(CTranslate2Translator, folder, "ctranslate2", options=options)
    assert open_predictor(CTranslate2Translator, folder, "auto", options=options) is None
    with pytest.raises(InputError, match=problem):
        heedful.load(folder, engine="ctranslate2").translate("one", **options)


def test_a_model_that_ctranslate2_cannot_express_is_computed_by_torch(tmp_path):
    folder = write_translator(tmp_path / "model", positions="alibi")
    with pytest.raises(InputError, match=r'model\.positions = "alibi": must be'):
        heedful.load(folder, engine="ctranslate2")
    assert not isinstance(heedful.load(folder, engine="auto"), CTranslate2Translator)
    assert not (folder / ENGINES).exists()


def test_only_ctranslate2_computes_in_int8(tmp_path):
    folder = write_translator(tmp_path / "model")
    for name in ("auto", "ctranslate2"):
        assert isinstance(heedful.load(folder, precision="int8", engine=name), CTranslate2Translator)
    with pytest.raises(InputError, match='the engine "torch" runs in float32, not in int8; choose the engine'):
        heedful.load(folder, precision="int8")
    folder = write_translator(tmp_path / "other", positions="alibi")
    for name in ("auto", "ctranslate2"):
        with pytest.raises(InputError, match=r"use --precision float32 and --engine torch\s+model\.positions"):
            heedful.load(folder, precision="int8", engine=name)


def test_a_model_is_converted_once_beside_its_files_and_again_when_it_changes(tmp_path):
    folder = write_translator(tmp_path / "model")
    heedful.load(folder, engine="ctranslate2")
    [converted] = (folder / ENGINES).iterdir()
    before = (converted / "model.bin").stat().st_mtime_ns
    heedful.load(folder, engine="ctranslate2")
    assert (converted / "model.bin").stat().st_mtime_ns == before
    assert is_complete(folder, allow_others=False)  # so that `export` may replace the folder
    write_translator(folder, norm="pre")
    heedful.load(folder, engine="ctranslate2")
    assert converted not in (folder / ENGINES).iterdir()


def test_a_model_that_cannot_be_written_to_is_converted_in_the_cache(tmp_path, monkeypatch):
    folder = write_translator(tmp_path / "model")
    (folder / ENGINES).write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert heedful.load(folder, engine="ctranslate2").score(("one two", "two"))
    assert len(list((tmp_path / "cache/heedful" / ENGINES).iterdir())) == 1


def test_a_damaged_conversion_is_noticed_and_made_again(tmp_path):
    folder = write_translator(tmp_path / "model")
    translator = heedful.load(folder, engine="ctranslate2")
    expected = translator.translate(LINES)
    [converted] = (folder / ENGINES).iterdir()
    content = (converted / "model.bin").read_bytes()
    changed = bytearray(content)
    changed[-100] ^= 64  # a bit of a weight
    for damaged in (bytes(changed), content[:-1], b"damaged"):
        (converted / "model.bin").write_bytes(damaged)
        assert heedful.load(folder, engine="ctranslate2").translate(LINES) == expected
        assert (converted / "model.bin").read_bytes() == content


def test_a_conversion_that_ctranslate2_cannot_open_is_an_error_that_names_its_folder(tmp_path, monkeypatch):
    folder = write_translator(tmp_path / "model")
    heedful.load(folder, engine="ctranslate2")
    [converted] = (folder / ENGINES).iterdir()
    (converted / "model.bin").write_bytes(b"of another version")
    monkeypatch.setattr("heedful.convert.engine.is_intact", lambda _: True)
    with pytest.raises(InputError, match=f"{converted}: CTranslate2 cannot open it"):
        heedful.load(folder, engine="ctranslate2")


def test_a_command_that_translates_with_ctranslate2_imports_neither_torch_nor_numpy(tmp_path):
    folder = write_translator(tmp_path / "model")
    heedful.load(folder, engine="ctranslate2")
    for options in ([], ["--json"], ["--beam", "1"]):
        answers = run_without_torch("translate", "--model", folder, *options, lines="one two\nthree\n")
        assert len(answers) == 2
        if "--json" in options:
            [best] = json.loads(answers[0])["translations"]
            assert len(best["token_scores"]) == len(best["pieces"])


def test_an_unknown_engine_is_refused(tmp_path):
    with pytest.raises(InputError, match='unknown engine "onnx"; choose one of auto, torch, ctranslate2'):
        open_predictor(CTranslate2Translator, "en-de", "onnx")


def test_the_default_search_fits():
    tokenizer = train_tokenizer(LINES, recipe_from_dict({"tokenizer": {"kind": "word"}}, "test").tokenizer)
    assert not search_misfits(DecodeConfig(**asdict(DecodeConfig())), TokenizerPair(tokenizer, tokenizer))
