"""BERTs of Hugging Face and of heedful compute the same, whichever is made of the other."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

import foreign_models
from foreign_folders import LINES, TEXTS
from heedful.architectures import weights
from heedful.checkpoint import load_model, write_model
from heedful.config.load import load_preset
from heedful.config.schema import ModelConfig, Recipe
from heedful.convert import FORMATS, Model
from heedful.convert.sentence_transformers import POOLINGS, sentence_files
from heedful.errors import InputError
from heedful.nn.embedding import NEVER
from heedful.predictors.filler import Filler
from heedful.registry import EXPORTERS
from heedful.tasks import find_task
from heedful.text.hugging_face import from_hugging_face
from heedful.text.pipeline import BOS, EOS, MASK, PAD
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

transformers = pytest.importorskip("transformers")

read, write = FORMATS["bert"].read, EXPORTERS["bert"].write
WITH_HEADS = ("BertForPreTraining", "BertForMaskedLM")


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """A folder and the model in it, for each kind."""
    base = tmp_path_factory.mktemp("bert")
    return {name: (base / name, foreign_models.bert(base / name, name)) for name in (*WITH_HEADS, "BertModel")}


def batch(tokenizer):
    """Texts and what of them is real, as pairs, in heedful's ids."""
    rows = [[BOS, *tokenizer.encode(text)[:23], MASK, EOS, *tokenizer.encode(text[::-1])[:19], EOS] for text in TEXTS]
    ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)
    second = (ids == EOS).cumsum(1) - (ids == EOS).long() > 0
    return ids, ids != PAD, (second & (ids != PAD)).long()


def loaded(model, folder):
    write_model(folder, model.recipe, model.tokenizers, model.weights)
    return load_model(folder)


def their_outputs(model, ids, padding_mask, segments):
    return model(input_ids=ids, attention_mask=padding_mask.long(), token_type_ids=segments)


@pytest.mark.parametrize("architecture", WITH_HEADS)
def test_a_converted_model_gives_the_same_logits(theirs, tmp_path, architecture):
    folder, original = theirs[architecture]
    converted = read(folder)
    ours = loaded(converted, tmp_path / "ours")
    assert (ours.recipe.task, ours.recipe.masking.next_sentence) == ("masked_lm", architecture == "BertForPreTraining")
    assert not converted.left_out
    ids, padding_mask, segments = batch(ours.tokenizers.source)
    old = torch.from_numpy(old_ids(folder))
    with torch.inference_mode():
        expected = their_outputs(original, old[ids], padding_mask, segments)
        found = ours.model(ids, padding_mask, segments)
        if ours.recipe.masking.next_sentence:
            neighbours = ours.model.next_sentence(ours.model.backbone(ids, padding_mask, segments), padding_mask)
            torch.testing.assert_close(neighbours, expected.seq_relationship_logits, atol=1e-5, rtol=0)
    logits = expected.prediction_logits if ours.recipe.masking.next_sentence else expected.logits
    assert logits.std() > 0.5
    torch.testing.assert_close(found[padding_mask], logits[..., old][padding_mask], atol=1e-5, rtol=0)


def old_ids(folder):
    return from_hugging_face(folder)[1]


@pytest.mark.parametrize("architecture", [*WITH_HEADS, "BertModel"])
def test_the_trunk_alone_gives_the_same_states(theirs, tmp_path, architecture):
    folder, original = theirs[architecture]
    model = read(folder, "ranking")
    assert (model.recipe.task, model.recipe.model.pooling) == ("ranking", "mean")
    backbone = loaded(model, tmp_path / "ours").model.backbone
    ids, padding_mask, segments = batch(model.tokenizers.source)
    base = original if architecture == "BertModel" else original.bert
    with torch.inference_mode():
        expected = their_outputs(base, torch.from_numpy(old_ids(folder))[ids], padding_mask, segments).last_hidden_state
        torch.testing.assert_close(
            backbone(ids, padding_mask, segments)[padding_mask], expected[padding_mask], atol=1e-5, rtol=0
        )


def test_a_sentence_encoder_pools_as_its_file_says(theirs, tmp_path):
    folder, original = theirs["BertModel"]
    changed = edited(folder, tmp_path)
    (changed / "1_Pooling").mkdir()
    modes = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False, "pooling_mode_max_tokens": False}
    (changed / "1_Pooling" / "config.json").write_text(json.dumps(modes))
    ours = loaded(read(changed), tmp_path / "ours")
    ids, padding_mask, segments = batch(ours.tokenizers.source)
    with torch.inference_mode():
        states = their_outputs(
            original, torch.from_numpy(old_ids(folder))[ids], padding_mask, segments
        ).last_hidden_state
        expected = torch.nn.functional.normalize(states[:, 0], dim=-1)
        torch.testing.assert_close(ours.model(ids, padding_mask, segments), expected, atol=1e-5, rtol=0)
    (changed / "1_Pooling" / "config.json").write_text(json.dumps(modes | {"pooling_mode_max_tokens": True}))
    with pytest.raises(InputError, match="asks for pooling_mode_cls_token and pooling_mode_max_tokens, but heedful"):
        read(changed)


def test_a_task_that_a_bert_is_not_for_is_refused(theirs):
    for task in ("regression", "translation"):
        with pytest.raises(
            InputError, match=f'can be converted for "masked_lm" or "ranking", not for "{task}"; .* train.start'
        ):
            read(theirs["BertModel"][0], task)
    with pytest.raises(InputError, match='"rankin": unknown task'):
        read(theirs["BertModel"][0], "rankin")


def test_what_a_task_does_not_need_is_named(theirs):
    assert {name.split(".")[1] for name in read(theirs["BertForPreTraining"][0], "ranking").left_out} == {
        "pooler",
        "predictions",
        "seq_relationship",
    }
    model = read(theirs["BertModel"][0])
    assert model.recipe.task == "ranking"
    assert sorted(model.left_out) == ["bert.pooler.dense.bias", "bert.pooler.dense.weight"]


@pytest.mark.parametrize("architecture", WITH_HEADS)
def test_there_and_back_again_changes_nothing(theirs, tmp_path, architecture):
    ours = read(theirs[architecture][0])
    write(ours, tmp_path / "theirs")
    again = read(tmp_path / "theirs")
    assert again.recipe.model == ours.recipe.model
    assert again.tokenizers.source.digest == ours.tokenizers.source.digest
    assert again.weights.keys() == ours.weights.keys()
    assert all(torch.equal(again.weights[name], value) for name, value in ours.weights.items())


@pytest.mark.parametrize("architecture", [*WITH_HEADS, "BertModel"])
def test_transformers_loads_what_is_written(theirs, tmp_path, architecture):
    ours = read(theirs[architecture][0])
    write(ours, tmp_path / "theirs")
    written, report = getattr(transformers, architecture).from_pretrained(tmp_path / "theirs", output_loading_info=True)
    pooler = {f"{prefix}pooler.dense.{kind}" for prefix in ("", "bert.") for kind in ("weight", "bias")}
    assert set(report["missing_keys"]) <= (pooler if architecture == "BertModel" else set())
    assert not report["unexpected_keys"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    both = tokenizer("the cat", "the mat", return_tensors="pt")
    old = torch.from_numpy(old_ids(theirs[architecture][0]))
    with torch.inference_mode():
        found = written.eval()(**both)[0]
        expected = theirs[architecture][1](**both | {"input_ids": old[both["input_ids"]]})[0]
    torch.testing.assert_close(found, expected[..., old] if architecture in WITH_HEADS else expected, atol=1e-5, rtol=0)


TINY = ["d_model=22", "d_ff=37", "heads=2", "encoder_layers=3", "max_positions=53"]


def random_bert(*overrides):
    """A random model of heedful in the documented shape of a BERT, with a tokenizer of its own."""
    shape = [f"model.{override}" for override in TINY] + ["data.max_length=53", "tokenizer.vocab_size=211"]
    recipe = load_preset("bert-tiny", [*shape, *overrides])
    tokenizer = train_tokenizer(LINES, recipe.tokenizer)
    pair = TokenizerPair(tokenizer, tokenizer)
    built = find_task(recipe.task).build(recipe, pair).eval()
    for parameter in built.parameters():
        parameter.data = 0.3 * torch.randn_like(parameter)
    return Model(recipe=recipe, tokenizers=pair, weights=weights(built)), built


@pytest.mark.parametrize("task", ["masked_lm", "ranking"])
@pytest.mark.parametrize(
    "overrides", [["segments=0"], ["segments=1"], ["segments=3", "bias=false", "attention_bias=false"]]
)
def test_transformers_computes_the_states_of_a_model_of_heedful(task, overrides, tmp_path):
    model, built = random_bert(f"task={task}", *(f"model.{override}" for override in overrides))
    write(model, tmp_path / "theirs")
    written, report = transformers.BertModel.from_pretrained(tmp_path / "theirs", output_loading_info=True)
    assert set(report["missing_keys"]) <= {"pooler.dense.weight", "pooler.dense.bias"}
    ids, padding_mask, segments = batch(model.tokenizers.source)
    with torch.inference_mode():
        expected = built.get_submodule("backbone")(ids, padding_mask, segments)
        found = their_outputs(written.eval(), ids, padding_mask, segments).last_hidden_state
        torch.testing.assert_close(found[padding_mask], expected[padding_mask], atol=1e-5, rtol=0)
        again = read(tmp_path / "theirs", task)
        backbone = loaded(again, tmp_path / "again").model.backbone
        torch.testing.assert_close(
            backbone(ids, padding_mask, segments)[padding_mask], expected[padding_mask], atol=1e-5, rtol=0
        )


def test_transformers_fills_gaps_as_heedful_does(tmp_path):
    model, built = random_bert("model.output_bias=false")
    write(model, tmp_path / "theirs")
    pipeline = transformers.pipeline("fill-mask", str(tmp_path / "theirs"), device="cpu")
    filler = Filler(built, model.tokenizers.source, 53)
    for text in ("The cat [MASK] on the mat.", "the other cat sat on the [MASK]."):
        (expected,) = filler.fill(text, 7)
        found = [each["token"] for each in pipeline(text, top_k=12)]
        assert [token for token in found if token > MASK][:7] == [each.token for each in expected]


def test_a_model_of_another_type_is_refused_by_name(theirs, tmp_path):
    folder = theirs["BertForMaskedLM"][0]
    roberta = {"model_type": "roberta", "architectures": ["RobertaForMaskedLM"]}
    with pytest.raises(InputError, match=r'model_type is "roberta" and architectures are \["RobertaForMaskedLM"\]'):
        read(edited(folder, tmp_path, **roberta))
    (tmp_path / "odd").mkdir()
    with pytest.raises(InputError, match="architectures are 7; read as a"):
        read(edited(folder, tmp_path / "odd", architectures=7))
    jina = {"architectures": ["JinaBertForMaskedLM"]}
    (tmp_path / "jina").mkdir()
    with pytest.raises(InputError, match="JinaBertForMaskedLM"):
        read(edited(folder, tmp_path / "jina", **jina))


def test_a_head_of_another_task_is_left_out_by_name(theirs, tmp_path):
    def edit(tensors):
        return tensors | {"classifier.weight": torch.zeros(3, 22), "bert.embeddings.position_ids": torch.arange(53)}

    model = read(edited(theirs["BertModel"][0], tmp_path, edit))
    assert {"classifier.weight", "bert.embeddings.position_ids"} < model.left_out.keys()
    assert "for classes, tags or answers, fine-tune the converted model, with train.start" in model.notes[0]


def edited(folder, tmp_path, edit=lambda tensors: tensors, **settings):
    """A copy of a folder with other weights and settings."""
    tmp_path = tmp_path / "edited"
    tmp_path.mkdir()
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    save_file(edit(load_file(folder / "model.safetensors")), tmp_path / "model.safetensors")
    config = json.loads((folder / "config.json").read_text()) | settings
    (tmp_path / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v != "absent"}))
    return tmp_path


def test_old_names_and_copies_are_understood(theirs, tmp_path):
    def edit(tensors):
        old = {
            name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): tensors[name]
            for name in tensors
        }
        return old | {
            "cls.predictions.decoder.weight": tensors["bert.embeddings.word_embeddings.weight"].clone(),
            "cls.predictions.decoder.bias": tensors["cls.predictions.bias"].clone(),
            "bert.embeddings.position_ids": torch.arange(53)[None],
        }

    folder = theirs["BertForPreTraining"][0]
    ours, again = read(folder).weights, read(edited(folder, tmp_path, edit)).weights
    assert ours.keys() == again.keys()
    assert all(torch.equal(ours[name], again[name]) for name in ours)


def test_all_weights_that_are_wrong_are_listed(theirs, tmp_path):
    def edit(tensors):
        rest = {name: value for name, value in tensors.items() if "layer.1.attention.self.key" not in name}
        return rest | {
            "bert.encoder.layer.3.output.dense.bias": torch.zeros(22),
            "strange.weight": torch.zeros(3, 22),
            "cls.predictions.transform.dense.weight": torch.zeros(22, 19),
        }

    with pytest.raises(InputError) as caught:
        read(edited(theirs["BertForPreTraining"][0], tmp_path, edit))
    assert str(caught.value).splitlines()[1:] == [
        "  cls.predictions.transform.dense.weight is (22, 19), but the model needs (22, 22)",
        "  missing bert.encoder.layer.1.attention.self.key.bias (22,)",
        "  missing bert.encoder.layer.1.attention.self.key.weight (22, 22)",
        "  unexpected bert.encoder.layer.3.output.dense.bias (22,)",
        "  unexpected bert.strange.weight (3, 22)",
    ]


def test_a_copy_with_other_values_is_refused(theirs, tmp_path):
    def edit(tensors):
        return tensors | {"cls.predictions.decoder.weight": tensors["bert.embeddings.word_embeddings.weight"] + 1}

    with pytest.raises(InputError, match=r"cls\.predictions\.decoder\.weight and bert\..* differ"):
        read(edited(theirs["BertForPreTraining"][0], tmp_path, edit))


def test_a_trunk_is_no_masked_language_model(theirs):
    with pytest.raises(InputError, match=r"missing cls\.predictions\.bias"):
        read(theirs["BertModel"][0], "masked_lm")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"position_embedding_type": "relative_key"},
            'position_embedding_type is "relative_key", but heedful supports',
        ),
        ({"hidden_act": "mish"}, "hidden_act is 'mish', but heedful has only relu, gelu"),
        (
            {"hidden_act": "relu"},
            'in heedful, a head that predicts masked tokens has the activation "gelu", not "relu"',
        ),
        ({"hidden_size": "absent", "is_decoder": True}, "hidden_size is missing; is_decoder is true"),
        ({"num_attention_heads": 3}, "hidden_size = 22 is not divisible by num_attention_heads"),
        ({"hidden_size": 10**12}, "has an invalid setting or weight"),
    ],
)
def test_settings_that_heedful_lacks_are_refused(theirs, tmp_path, settings, message):
    with pytest.raises(InputError, match=message):
        read(edited(theirs["BertForPreTraining"][0], tmp_path, **settings))


def test_rows_without_a_token_are_refused(tmp_path):
    foreign_models.bert(tmp_path / "bert", vocab_size=503)
    with pytest.raises(InputError, match=r"tokens up to id \d+, but the embeddings have 503 rows; .*resize_token"):
        read(tmp_path / "bert")


def test_a_token_that_is_lacking_has_no_probability(tmp_path):
    foreign_models.bert(tmp_path / "bert")
    names = (tmp_path / "bert" / "vocab.txt").read_text().replace("[PAD]", "[unused1]")
    (tmp_path / "bert" / "vocab.txt").write_text(names)
    model = read(tmp_path / "bert")
    assert (model.weights["output.bias"] == NEVER).nonzero().tolist() == [[PAD]]
    assert not model.weights["backbone.embedding.weight"][PAD].any()


def test_what_is_no_bert_is_not_written(theirs, tmp_path):
    ours = read(theirs["BertForMaskedLM"][0])
    other = replace(ours.recipe.model, norm="pre", segments=0, activation="swiglu")
    with pytest.raises(InputError, match=r'norm = "post", not "pre"\n  model\.activation = "gelu", not "swiglu"$'):
        write(replace(ours, recipe=replace(ours.recipe, model=other)), tmp_path / "theirs")
    strange = {"pooler.dense.bias": torch.zeros(22), "output.weight": torch.zeros(3, 22)}
    with pytest.raises(InputError) as caught:
        write(replace(ours, weights=ours.weights | strange), tmp_path / "theirs")
    assert str(caught.value).splitlines()[1:] == ["  output.weight (3, 22)", "  pooler.dense.bias (22,)"]
    assert not (tmp_path / "theirs").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious.txt").write_text("")
    with pytest.raises(InputError, match="already exists; choose a folder that is new or empty"):
        write(ours, tmp_path / "full")


def test_all_keys_that_keep_a_model_from_being_a_bert_are_listed_at_once(tmp_path):
    others = ["d_model=24", 'positions="rotary"', 'norm="pre"', 'activation="relu"', "kv_heads=1"]
    tokenizer = ["tokenizer.byte_fallback=true", "tokenizer.vocab_size=401"]
    model, _ = random_bert(*(f"model.{other}" for other in others), *tokenizer)
    with pytest.raises(InputError, match="cannot be converted to a Hugging Face bert model") as caught:
        write(model, tmp_path / "theirs")
    assert str(caught.value).splitlines()[1:] == [
        "  model.kv_heads left out, not 1",
        '  model.positions = "learned", not "rotary"',
        '  model.norm = "post", not "pre"',
        '  model.activation = "gelu", not "relu"',
        "  tokenizer.byte_fallback = false, not true",
    ]


def test_a_trunk_alone_may_have_any_activation_of_theirs(tmp_path):
    write(random_bert("task=ranking", 'model.activation="silu"')[0], tmp_path / "theirs")
    assert read(tmp_path / "theirs").recipe.model.activation == "silu"
    with pytest.raises(
        InputError, match=r'activation = "quick_gelu", "silu", "gelu_tanh", "gelu" or "relu", not "swiglu"'
    ):
        write(random_bert("task=ranking", 'model.activation="swiglu"')[0], tmp_path / "other")


def test_a_model_for_a_task_that_bert_is_not_for_is_refused(theirs, tmp_path):
    ours = read(theirs["BertForMaskedLM"][0])
    message = 'is for the task "tagging", but this format needs "masked_lm" or "ranking"'
    with pytest.raises(InputError, match=message):
        write(replace(ours, recipe=replace(ours.recipe, task="tagging")), tmp_path / "theirs")


@pytest.mark.parametrize("architecture", WITH_HEADS)
def test_a_bert_that_came_in_knows_its_mask_when_it_has_gone_out(theirs, tmp_path, architecture):
    folder = theirs[architecture][0]
    write(read(folder), tmp_path / "again")
    before, after = (transformers.AutoTokenizer.from_pretrained(place) for place in (folder, tmp_path / "again"))
    assert (after.mask_token, after.cls_token, after.sep_token) == ("[MASK]", "[CLS]", "[SEP]")
    for text in ("the [MASK] sat", "[MASK][MASK] cat", "a mat [MASK]."):
        ids = after(text)["input_ids"]
        assert MASK in ids
        assert old_ids(folder)[ids].tolist() == before(text)["input_ids"]


@pytest.mark.parametrize(("before", "tokenizer", "notes"), [(True, False, 1), (True, True, 0), (False, False, 0)])
def test_texts_that_are_lowered_before_the_tokenizer_are_noted(theirs, tmp_path, before, tokenizer, notes):
    changed = edited(theirs["BertModel"][0], tmp_path)
    (changed / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 50, "do_lower_case": before}))
    (changed / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": tokenizer}))
    assert sum("write your texts in lower case" in note for note in read(changed).notes) == notes


@pytest.mark.parametrize(("pooling", "written"), [("max", "max"), ("sum", "mean"), ("last", "last")])
def test_every_pooling_of_a_sentence_encoder_is_written_as_one_that_is_read(pooling, written):
    recipe = Recipe(task="ranking", model=ModelConfig(family="encoder", pooling=pooling))
    modes = sentence_files(recipe)["1_Pooling/config.json"]
    assert [POOLINGS[mode] for mode, on in modes.items() if on is True] == [written]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece", "character", "word"])
def test_the_pipeline_of_transformers_fills_gaps_as_heedful_does(kind, tmp_path):
    small = ["model.d_model=28", "model.d_ff=37", "model.heads=2", "model.encoder_layers=2", "tokenizer.vocab_size=401"]
    recipe = load_preset("bert-tiny", [*small, f'tokenizer.kind="{kind}"'])
    tokenizer = train_tokenizer(LINES, recipe.tokenizer)
    pair = TokenizerPair(tokenizer, tokenizer)
    torch.manual_seed(3)
    built = find_task(recipe.task).build(recipe, pair).eval()
    for parameter in built.parameters():
        parameter.data = 0.3 * torch.randn_like(parameter)
    write(Model(recipe=recipe, tokenizers=pair, weights=weights(built)), tmp_path / "theirs")
    pipeline = transformers.pipeline("fill-mask", model=str(tmp_path / "theirs"))
    filler = Filler(built, tokenizer, 128)
    for text in ("The cat sits on the [MASK].", "[MASK] man in 2024", "我吃[MASK]果。", "A man [MASK] km", "[MASK]"):
        [expected] = filler.fill(text)
        pieces = list(range(tokenizer.first_piece, len(tokenizer)))
        found = pipeline(text, top_k=5, targets=pipeline.tokenizer.convert_ids_to_tokens(pieces))
        assert [candidate["token"] for candidate in found] == [candidate.token for candidate in expected]
