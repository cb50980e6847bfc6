"""Sentence Transformers' files say how the states of a BERT become the vector of a text, here as there."""

import json

import pytest

import foreign_models
from heedful.convert import FORMATS
from heedful.convert.sentence_transformers import read_sentence_settings
from heedful.errors import InputError
from heedful.registry import EXPORTERS

pytest.importorskip("transformers")

read, write = FORMATS["bert"].read, EXPORTERS["bert"].write


def put(folder, name, contents):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(contents))


@pytest.fixture
def folder(tmp_path):
    """What Sentence Transformers 6.2 saves beside a model."""
    place = "sentence_transformers"
    kinds = {
        "": f"{place}.base.modules.transformer.Transformer",
        "1_Pooling": f"{place}.sentence_transformer.modules.pooling.Pooling",
        "2_Normalize": f"{place}.base.modules.normalize.Normalize",
    }
    modules = [{"idx": i, "name": str(i), "path": path, "type": kinds[path]} for i, path in enumerate(kinds)]
    put(tmp_path, "modules.json", modules)
    put(tmp_path, "1_Pooling/config.json", {"embedding_dimension": 22, "pooling_mode": "cls", "include_prompt": True})
    put(tmp_path, "sentence_bert_config.json", {"transformer_task": "feature-extraction"})
    put(tmp_path, "tokenizer_config.json", {"model_max_length": 31})
    put(tmp_path, "config_sentence_transformers.json", {"prompts": {"query": "", "document": ""}})
    return tmp_path


def modules_of(folder, *kinds):
    put(folder, "modules.json", [{"path": f"{i}_{kind}", "type": f"x.{kind}"} for i, kind in enumerate(kinds)])


def test_files_of_today_and_of_old_are_read(folder):
    found = read_sentence_settings(folder)
    assert (found.pooling, found.max_length, found.notes) == ("first", 31, ())
    put(folder, "1_Pooling/config.json", {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True})
    put(folder, "sentence_bert_config.json", {"max_seq_length": 29, "do_lower_case": False})
    found = read_sentence_settings(folder)
    assert (found.pooling, found.max_length, found.notes) == ("mean", 29, ())


def test_a_module_that_changes_the_vectors_is_refused_by_name(folder):
    modules_of(folder, "Transformer", "Pooling", "Dense", "Normalize")
    with pytest.raises(InputError, match=r"modules\.json: .* through Transformer, Pooling, Dense, Normalize; heed"):
        read_sentence_settings(folder)
    modules_of(folder, "Pooling", "Transformer")
    with pytest.raises(InputError, match="passes through Pooling, Transformer"):
        read_sentence_settings(folder)
    modules_of(folder, "Transformer", "Pooling", "Dropout", "Normalize")
    assert read_sentence_settings(folder).notes == ()
    put(folder, "modules.json", [{"type": 7}])
    with pytest.raises(InputError, match=r"modules\.json: is not a list of modules"):
        read_sentence_settings(folder)


def test_what_is_done_there_and_not_here_is_told(folder):
    modules_of(folder, "Transformer", "Pooling")
    prompts = {"prompts": {"query": "query: ", "document": ""}, "default_prompt_name": "query"}
    put(folder, "config_sentence_transformers.json", prompts)
    prompt, length = read_sentence_settings(folder).notes
    assert prompt.startswith(
        "made for texts that begin with a prompt, 'query: ' for 'query'; Sentence Transformers adds 'query' by default"
    )
    assert length.startswith("modules.json has no Normalize: in Sentence Transformers, vectors have any length")


def test_a_sentence_encoder_goes_there_and_back(tmp_path):
    foreign_models.bert(tmp_path / "theirs", "BertModel")
    modules_of(tmp_path / "theirs", "Transformer", "Pooling", "Normalize")
    put(tmp_path / "theirs", "1_Pooling/config.json", {"pooling_mode": "lasttoken"})
    put(tmp_path / "theirs", "sentence_bert_config.json", {"max_seq_length": 41})
    ours = read(tmp_path / "theirs")
    assert (ours.recipe.model.pooling, ours.recipe.data.max_length) == ("last", 41)
    write(ours, tmp_path / "written")
    found = read_sentence_settings(tmp_path / "written")
    assert (found.pooling, found.max_length, found.notes) == ("last", 41, ())
    again = read(tmp_path / "written")
    assert (again.recipe.model, again.recipe.data) == (ours.recipe.model, ours.recipe.data)
    assert json.loads((tmp_path / "written" / "tokenizer_config.json").read_text())["model_max_length"] == 41
