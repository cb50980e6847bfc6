"""Vectors of images and texts do not depend on their batch, and what is found is what is nearest, both ways."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from heedful.architectures.input_layers import media_and_text
from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError
from heedful.predictors.image_text_retriever import ImageTextRetriever
from heedful.text.training import train_tokenizer
from toy_media import png
from toy_retrieval import TEXTS, drawn, recipe


@pytest.fixture(scope="module")
def retriever():
    tokenizer = train_tokenizer(TEXTS, TokenizerConfig(kind="word", byte_fallback=False))
    settings = recipe(Path("nowhere"))
    torch.manual_seed(1)
    return ImageTextRetriever(media_and_text(settings, len(tokenizer)).train(), tokenizer, settings)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Paths of images."""
    folder = tmp_path_factory.mktemp("pictures")
    paths = [folder / f"{number:02}.png" for number in range(len(TEXTS))]
    for number, path in enumerate(paths):
        path.write_bytes(png(drawn(TEXTS[number], number)))
    return paths


def test_a_vector_does_not_depend_on_the_others(retriever, pictures, monkeypatch):
    mixed = [item for pair in zip(TEXTS, pictures, strict=True) for item in pair]
    whole = retriever.encode(mixed)
    assert whole.dtype == np.float32
    assert whole.shape == (2 * len(TEXTS), 17)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(np.stack([retriever.encode(item) for item in mixed]), whole, atol=1e-6)
    monkeypatch.setattr("heedful.predictors.image_text_retriever.WINDOW", 5)
    done = []
    np.testing.assert_allclose(np.stack(list(retriever.encode_lines(mixed, done.append))), whole, atol=1e-6)
    assert sum(done) == len(mixed)
    assert retriever.model.training


def test_a_picture_may_be_a_path_bytes_an_open_file_pixels_or_an_image(retriever, pictures):
    path = pictures[3]
    pixels = drawn(TEXTS[3], 3)
    kinds = (path, path.read_bytes(), BytesIO(path.read_bytes()), pixels, Image.fromarray(pixels))
    found = [retriever.encode(given) for given in kinds]
    for vector in found[1:]:
        np.testing.assert_array_equal(found[0], vector)


def test_a_string_is_a_text_even_if_a_file_has_that_name(retriever, pictures):
    assert not np.allclose(retriever.encode(str(pictures[0])), retriever.encode(pictures[0]))


def test_no_inputs_have_no_vectors(retriever):
    assert retriever.encode([]).shape == (0, 17)
    assert retriever.search([], TEXTS) == []
    assert retriever.search("a red square", []) == []


@pytest.mark.parametrize("way", ["text to pictures", "picture to texts", "picture to pictures"])
def test_a_search_finds_the_nearest(way, retriever, pictures):
    query = TEXTS[7] if way.startswith("text") else pictures[7]
    corpus = TEXTS if way.endswith("texts") else pictures
    cosines = retriever.encode(corpus) @ retriever.encode(query)
    found = retriever.search(query, corpus, k=5)
    assert [hit.number for hit in found] == sorted(range(len(corpus)), key=lambda i: -cosines[i])[:5]
    assert [hit.text for hit in found] == [str(corpus[hit.number]) for hit in found]
    assert [hit.score for hit in found] == pytest.approx([cosines[hit.number] for hit in found])
    several = retriever.search([query, query], corpus, 5, retriever.encode(corpus))
    assert [[hit.text for hit in hits] for hits in several] == [[hit.text for hit in found]] * 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (7, "is neither a text or image nor a list; give a string, a path, bytes, an open file, pixels or"),
        ([7], "text or image 1: 7 .* is neither a text nor an image"),
        (Path("absent.png"), r"absent\.png: no such file"),
        ([b"no picture"], "not an image"),
    ],
)
def test_what_is_neither_a_text_nor_a_picture_is_refused(given, message, retriever):
    with pytest.raises(InputError, match=message):
        retriever.encode(given)


def test_a_search_needs_a_vector_for_each_input(retriever):
    with pytest.raises(InputError, match="3 texts but 2 vectors"):
        retriever.search("a", TEXTS[:3], vectors=np.zeros((2, 17), np.float32))
    with pytest.raises(InputError, match="k = 0"):
        retriever.search("a", TEXTS[:3], k=0)


@pytest.mark.parametrize("corpus", ["one text", 5])
def test_what_is_no_list_of_inputs_is_not_searched(retriever, corpus):
    with pytest.raises(InputError, match=r"put it in a list|a list for several inputs|several arrays in a list"):
        retriever.search(TEXTS[0], corpus)
