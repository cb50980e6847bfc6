from dataclasses import replace

import pytest
import torch

import toy_tasks
from heedful.architectures import EncoderDecoder, Model, TextClassifier
from heedful.architectures.text_cnn.settings import TextCNNConfig
from heedful.architectures.word_vectors import place, place_vectors, whole_words
from heedful.checkpoint import load_model
from heedful.config.load import recipe_from_dict
from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer
from interrupted import train
from reversal import SETTINGS

VECTORS = {"w1": [2.0] * 8 + [0.0] * 8, "w5": [0.0] * 8 + [-2.0] * 8, "elsewhere": [1.0] * 16}


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "vectors.txt"
    file.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in VECTORS.items()))
    return file


def setting(path, **model):
    recipe = recipe_from_dict(SETTINGS, "test")
    recipe = replace(recipe, model=replace(recipe.model, source_vectors=str(path), tie="none", **model))
    tokenizer = train_tokenizer(["w1 w2 w3 w4 w5 w1"], recipe.tokenizer)
    torch.manual_seed(0)
    built = EncoderDecoder(recipe.model, len(tokenizer), len(tokenizer))
    return built, recipe, TokenizerPair(tokenizer, tokenizer)


def test_words_get_their_vectors_at_the_scale_of_embeddings(path):
    built, recipe, tokenizers = setting(path)
    before = built.get_parameter("source_embedding.weight").clone()
    place_vectors(built, recipe, tokenizers)
    (w1,), (w2,), (w5,) = (tokenizers.source.encode(word) for word in ("w1", "w2", "w5"))
    after = built.get_parameter("source_embedding.weight")
    assert torch.equal(after[w2], before[w2])
    assert (after[w1, :8] > 0).all()
    assert (after[w1, 8:] == 0).all()
    torch.testing.assert_close(after[w5, 8:], -after[w1, :8])
    assert torch.stack([after[w1], after[w5]]).std().item() == pytest.approx(before.std().item())
    assert after.requires_grad


def test_a_file_with_few_of_the_words_is_pointed_out(tmp_path):
    said = []
    few = tmp_path / "few.vec"
    few.write_text("w1 " + " ".join(map(str, range(16))) + "\n. " + " ".join(map(str, range(1, 17))) + "\n")
    place_vectors(*setting(few), said.append)
    assert said == [
        f"{few}: has vectors for 1 of the 5 vocabulary words (20%); the others start from random vectors; "
        "check that the file is for this language and spells words as the vocabulary does (tokenizer.lowercase, "
        'tokenizer.kind = "word")'
    ]
    most = tmp_path / "most.vec"
    most.write_text("".join(f"w{i} {' '.join(str(i + j) for j in range(16))}\n" for i in range(1, 4)))
    place_vectors(*setting(most), said.append)
    assert len(said) == 1


def test_frozen_vectors_are_not_trained(path):
    built, recipe, tokenizers = setting(path, freeze_vectors=True)
    place_vectors(built, recipe, tokenizers)
    assert not built.source_embedding.weight.requires_grad
    assert built.target_embedding.weight.requires_grad


def test_vectors_of_another_size_are_refused_with_the_remedy(path):
    with pytest.raises(InputError, match=r"vectors of size 16, but model\.d_model = 24; set it to 16"):
        place_vectors(*setting(path, d_model=24))


@pytest.mark.parametrize(
    ("kind", "words"),
    [("bpe", ["king", "", "机器", ",", "ไทย", ""]), ("word", ["king", "king", "机器", ",", "ไทย", "Β"])],
)
def test_a_part_of_words_is_no_word_unless_words_stand_without_spaces(kind, words):
    assert whole_words([" king", "king", "机器", ",", "ไทย", "Β"], kind) == words


def test_words_with_characters_that_cannot_be_printed_get_theirs(tmp_path):
    config = TokenizerConfig(kind="word", byte_fallback=False, pretokenized=True, vocab_size=31)
    tokenizer = train_tokenizer(["می\u200cخواهم b"] * 3, config)
    (tmp_path / "vectors").write_text("می\u200cخواهم 3 4\nb 4 3\n", encoding="utf-8")
    table = torch.nn.Embedding(len(tokenizer), 2)
    place(tmp_path / "vectors", table, tokenizer)
    rows = table.weight[[tokenizer.encode("می\u200cخواهم")[0], tokenizer.encode("b")[0]]]
    assert torch.allclose(rows / rows.norm(dim=1, keepdim=True), torch.tensor([[0.6, 0.8], [0.8, 0.6]]))


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("name", toy_tasks.TASKS)
def test_every_task_on_text_begins_with_them(name, frozen, tmp_path):
    words = ("T1a", "T2b") if name in ("language_model", "masked_lm") else ("good", "w3")
    vectors = torch.randn(2, 16)
    lines = zip(words, vectors.tolist(), strict=True)
    (tmp_path / "vectors").write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in lines))
    model = {"source_vectors": str(tmp_path / "vectors"), "freeze_vectors": frozen}
    recipe = toy_tasks.recipe(name, toy_tasks.write_text(tmp_path), model=model, train={"average_last": 1})
    train(recipe, tmp_path / "run")
    loaded = load_model(tmp_path / "run")
    ids = [loaded.tokenizers.source.encode(word)[0] for word in words]
    rows = loaded.model.embedding_of("src").weight[ids]
    assert torch.allclose(rows / rows.std(), vectors / vectors.std(), atol=1e-6) == frozen
    assert torch.nn.functional.cosine_similarity(rows, vectors).min() > 0.7


def test_all_tables_of_an_embedding_get_them(path):
    _, recipe, tokenizers = setting(path)
    torch.manual_seed(0)
    built = TextClassifier(TextCNNConfig(d_model=16, filters=3, multichannel=True), len(tokenizers.source), 2)
    before = built.backbone.embedding.weight.clone()
    place_vectors(built, recipe, tokenizers)
    (w1,), (w2,) = (tokenizers.source.encode(word) for word in ("w1", "w2"))
    table, static = built.backbone.embedding.parameters()
    assert torch.equal(table, static)
    assert (table[w1, 8:] == 0).all()
    assert torch.equal(table[w2], before[w2])
    assert (table.requires_grad, static.requires_grad) == (True, False)


def test_a_model_that_reads_no_tokens_has_no_place_for_them(path):
    _, recipe, tokenizers = setting(path)
    with pytest.raises(InputError, match=r"vectors\.txt: the model's source is not text; leave model\.source_vectors"):
        place_vectors(Model(), recipe, tokenizers)
