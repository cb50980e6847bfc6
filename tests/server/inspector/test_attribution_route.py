"""The parts of a logit are what the model's own numbers say, and what cannot be split is refused in words."""

import pytest

from served import client
from subjects import TEXT


@pytest.fixture(scope="module")
def server():
    return client()


def looked(server, model):
    return server.post("/api/v1/traces", json={"model": model, "text": TEXT}).json()["id"]


@pytest.mark.parametrize("model", ["translator", "gpt", "bert"])
def test_the_parts_of_a_logit_sum_to_it(server, model):
    answer = server.get(f"/api/v1/traces/{looked(server, model)}/attribution?place=1&token=5")
    found = answer.json()
    assert (found["place"], found["token"]) == (1, 5)
    assert sum(part["value"] for part in found["parts"]) == pytest.approx(found["logit"], abs=1e-5)
    assert "immutable" in answer.headers["Cache-Control"]


@pytest.mark.parametrize(
    ("model", "query", "words"),
    [
        ("gpt", "place=1", "give the logit"),
        ("gpt", "place=1&token=-1", "token='-1' is not a non-negative integer"),
        ("gpt", "place=999&token=5", "position 999: must be from 0 to"),
        ("gpt", "place=1&token=99999", "token 99999: must be from 0 to"),
        ("classes", "place=0&token=1", "a TextClassifier does not predict tokens"),
    ],
)
def test_what_has_no_logit_is_refused_in_words(server, model, query, words):
    answer = server.get(f"/api/v1/traces/{looked(server, model)}/attribution?{query}")
    assert answer.status_code == 400
    assert words in answer.json()["error"]
