"""The page gets the model's own numbers, and clear words where there are none."""

import json

import numpy as np
import pytest
from safetensors.numpy import load

import subjects
from heedful.inspector.look import Question, look
from served import PAGE, SAMPLE, client, models

TEXT = "the old dog sees the station ."
NASTY = "</script><img src=x onerror=alert(1)> \u202e dog 😀"


@pytest.fixture(scope="module")
def server():
    return client()


def asked(server, **question):
    answer = server.post("/api/v1/traces", json={"model": "translator", "text": TEXT} | question)
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_the_page_is_served_as_it_was_built(server):
    answer = server.get("/")
    assert answer.text == PAGE.html
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_models_are_described_and_never_by_where_they_lie(server):
    found = server.get("/api/v1/models").json()
    assert [model["name"] for model in found["models"]] == ["translator", "gpt", "bert", "classes"]
    assert found["sample"] == 2
    assert "here" not in json.dumps(found)
    [first, gpt, bert, _] = found["models"]
    assert [stack["name"] for stack in first["stacks"]] == ["enc", "dec"]
    assert [stack["layers"] for stack in first["stacks"]] == [2, 3]
    assert [[stack["name"] for stack in model["stacks"]] for model in (gpt, bert)] == [["dec"], ["enc"]]
    assert first["parameters"] == sum(p.numel() for p in subjects.translator().model.parameters())


@pytest.mark.parametrize("name", ["translator", "gpt", "bert", "classes"])
def test_a_look_tells_what_a_trace_holds(server, name):
    seen = asked(server, model=name, text="the <mask> dog" if name == "bert" else TEXT)
    assert seen["schema"] == "trace/1"
    assert seen["model"]["name"] == name
    assert max(seen["checks"].values()) < 1e-5
    assert all(len(tensor["axes"]) == len(tensor["shape"]) for tensor in seen["tensors"].values())
    for block in seen["blocks"]:
        assert all(line.split(".")[0] in seen["lines"] for line in (block["queries"], block["keys"]))
    assert (seen["lens"] is None) == (name == "classes")
    assert (seen["search"] is None) == (name != "translator")
    assert seen["answers"][0]["options"]
    assert server.get(f"/api/v1/traces/{seen['id']}").json() == seen


def test_the_same_question_is_answered_once(server):
    assert asked(server)["id"] == asked(server)["id"]
    assert asked(server, beam=2)["id"] != asked(server)["id"]


def test_tensors_are_those_of_the_model(server):
    seen = asked(server)
    own = look(subjects.translator(), Question(text=TEXT)).trace
    path = f"/api/v1/traces/{seen['id']}/tensors"
    found = load(server.get(path).content)
    assert set(found) == set(seen["tensors"]) == set(own)
    for name in found:
        assert np.array_equal(found[name], own[name].values)
    head = load(server.get(f"{path}?names=dec.1.cross.q,dec.1.cross.attn&head=1").content)
    assert set(head) == {"dec.1.cross.q", "dec.1.cross.attn"}
    assert np.array_equal(head["dec.1.cross.attn"], own["dec.1.cross.attn"].values[1:2])
    small = load(server.get(f"{path}?names=*.attn&stored=sqrt_u8").content)
    assert {values.dtype for values in small.values()} == {np.dtype("uint8")}


def test_tensors_never_change_and_may_be_kept(server):
    answer = server.get(f"/api/v1/traces/{asked(server)['id']}/tensors?names=enc.norm")
    assert "immutable" in answer.headers["cache-control"]


def test_heads_that_are_switched_off_change_what_is_said(server):
    off = [{"block": f"dec.{layer}.cross", "number": head} for layer in range(3) for head in range(2)]
    without = asked(server, target="der alte Hund", off=off)
    whole = asked(server, target="der alte Hund")
    assert without["lens"]["log_probs"] != whole["lens"]["log_probs"]
    assert without["question"]["off"] == off


def test_what_somebody_writes_comes_back_as_text(server):
    seen = asked(server, text=NASTY + "\0")
    page = server.get(f"/api/v1/traces/{seen['id']}/export.html")
    assert page.text.count("</script>") == PAGE.html.count("</script>") + 3
    assert "onerror" not in page.text
    assert "attachment" in page.headers["content-disposition"]


@pytest.mark.parametrize(
    ("question", "status", "words"),
    [
        ({"text": ""}, 400, "the text is empty"),
        ({"text": " \n"}, 400, "the text is empty"),
        ({}, 400, "text: Field required"),
        ({"text": 7}, 400, "text: Input should be a valid string"),
        ({"text": TEXT, "beams": 3}, 400, "unknown fields: beams; valid names are alpha, beam"),
        ({"text": TEXT, "beam": 0}, 400, "beam = 0: must be from 1 to 20"),
        ({"text": TEXT, "alpha": -1.0}, 400, "alpha = -1.0: must be from 0 to 10"),
        (
            {"text": TEXT, "model": "/etc/passwd"},
            404,
            "the model '/etc/passwd' does not exist; choose one of translator",
        ),
        ({"text": TEXT, "model": ["gpt"]}, 404, "does not exist"),
        ({"text": "dog " * 3000}, 400, "the model takes at most 999"),
        (
            {"text": TEXT, "off": [{"block": "dec.9.cross", "number": 0}]},
            400,
            "tensor dec.9.cross.z does not exist",
        ),
        ({"text": TEXT, "off": [{"block": "dec.1.cross", "number": 5}]}, 400, "head 5: the block has 2"),
        (
            {"text": TEXT, "way": "loud", "off": [{"block": "dec.1.cross", "number": 1}]},
            400,
            "choose one of silent, even",
        ),
        ({"text": TEXT, "prefix": "der " * 99}, 400, "give fewer words"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(server, question, status, words):
    answer = server.post("/api/v1/traces", json={"model": "translator"} | question)
    assert answer.status_code == status
    assert words in answer.json()["error"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not valid JSON"),
        (b"[1]", "not a JSON object"),
        (b"{", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b"[" * 50_000, "nested too deep"),
        (b'{"model": "\\ud800"}', "half a character"),
        (b'{"alpha": NaN}', "NaN is not a number"),
        (b'{"alpha": 1e400}', "not valid JSON"),
    ],
    ids=["empty", "list", "half", "no text", "deep", "surrogate", "not a number", "infinite"],
)
def test_what_is_no_request_is_refused_in_words(server, content, words):
    answer = server.post("/api/v1/traces", content=content)
    assert answer.status_code == 400
    assert words in answer.json()["error"]


def test_what_is_too_long_is_refused_in_words(server):
    answer = server.post("/api/v1/traces", json={"model": "translator", "text": "1" * 10**6})
    assert answer.status_code == 413
    assert "at most 100,000 bytes" in answer.json()["error"]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("none", 404, "no longer in the cache"),
        ("none/tensors", 404, "no longer in the cache"),
        ("{id}/tensors?names=enc.9.norm", 400, "the tensor enc.9.norm does not exist"),
        ("{id}/tensors?names=enc.norm&stored=f8", 400, "the encodings are"),
        ("{id}/tensors?names=dec.1.cross.q&head=2", 400, "head 2"),
        ("{id}/tensors?head=-1", 400, "not a non-negative integer"),
        ("{id}/tensors?head=²", 400, "not a non-negative integer"),
        (
            "{id}/export.html?block=dec.9.self",
            400,
            "dec.9.self is not an attention sublayer; choose one of enc.0.self, enc.1.self, dec.0.self",
        ),
    ],
)
def test_what_is_not_there_is_refused_in_words(server, path, status, words):
    answer = server.get("/api/v1/traces/" + path.format(id=asked(server)["id"]))
    assert answer.status_code == status
    assert words in answer.json()["error"]


def test_heads_are_weighed_one_after_another():
    with client().stream("POST", "/api/v1/sweeps", json={"model": "translator"}) as answer:
        events = [json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line]
    assert [(event["block"], event["number"]) for event in events][:3] == [
        ("enc.0.self", 0),
        ("enc.0.self", 1),
        ("enc.1.self", 0),
    ]
    assert len(events) == 16
    assert all(event["name"] == "BLEU" for event in events)


def test_heads_cannot_be_weighed_without_a_sample_or_a_translator():
    for server, model in ((client(sample=([], [])), "translator"), (client(), "gpt")):
        answer = server.post("/api/v1/sweeps", json={"model": model})
        assert answer.status_code == 400
        assert "--data" in answer.json()["error"]


def test_the_models_of_this_test_are_the_ones_that_are_served():
    assert set(models()) == {"translator", "gpt", "bert", "classes"}
    assert len(SAMPLE[0]) == len(SAMPLE[1])
