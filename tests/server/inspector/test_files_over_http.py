"""An image or audio is sent with a question, within limits, and is kept nowhere but in the memory of a look."""

import base64

import pytest
from starlette.testclient import TestClient

import served
import toy_readers
from heedful.server.application import application
from heedful.server.engine import Engine
from heedful.server.inspector.inspection_handlers import MAX_FILE, OpenedFile
from heedful.server.inspector.routes import inspector_routes
from toy_readers import CAPTION, FILES, PICTURE


def encoded(content):
    return base64.b64encode(content).decode()


def client(opened=None):
    engine = Engine(served.models() | toy_readers.models())
    routes = inspector_routes(engine, served.PAGE, ([], []), opened)
    return TestClient(application(routes), "http://127.0.0.1:8642", follow_redirects=False)


@pytest.fixture(scope="module")
def server():
    return client()


@pytest.mark.parametrize("task", FILES)
def test_a_file_is_looked_at_and_its_tensors_are_given(server, task):
    answer = server.post("/api/v1/traces", json={"model": task, "text": "a.bin", "file": encoded(FILES[task])})
    assert answer.status_code == 201, answer.text
    seen = answer.json()
    assert seen["question"]["text"] == "a.bin"
    assert seen["question"]["file"] is None
    assert encoded(FILES[task]) not in answer.text
    assert server.get(f"/api/v1/traces/{seen['id']}").json() == seen
    assert server.get(f"/api/v1/traces/{seen['id']}/tensors?names=*.attn").status_code == 200
    assert server.get(f"/api/v1/traces/{seen['id']}/export.html").status_code == 200
    assert server.get(f"/api/v1/traces/{seen['id']}/neighbours?line=src&place=1").status_code == 400


def test_another_file_of_the_same_name_is_another_look(server):
    ids = set()
    for content in (PICTURE, toy_readers.toy_media.png(toy_readers.toy_media.drawn("top", 2))):
        question = {"model": "captioning", "text": "a.png", "file": encoded(content), "target": CAPTION}
        ids.add(server.post("/api/v1/traces", json=question).json()["id"])
    assert len(ids) == 2


@pytest.mark.parametrize(
    ("question", "status", "words"),
    [
        ({"model": "captioning", "file": encoded(b"no picture")}, 400, "a.png: not an image, or in an"),
        ({"model": "captioning", "file": encoded(PICTURE[:70])}, 400, "the image is damaged or cut off"),
        ({"model": "captioning", "file": "not base64!"}, 400, "file: is not valid base64"),
        ({"model": "captioning", "file": "ä"}, 400, "file: is not valid base64"),
        ({"model": "captioning", "file": 7}, 400, "file: is not valid base64"),
        ({"model": "captioning", "file": ""}, 400, "the file is empty"),
        ({"model": "captioning"}, 400, "reads images, not text; give a file"),
        ({"model": "audio_classification", "file": encoded(PICTURE)}, 400, "a.png: it is not audio"),
        ({"model": "translator", "file": encoded(PICTURE)}, 400, "reads text, not files"),
        ({"model": "captioning", "file": encoded(PICTURE), "prefix": "x" * 100_000}, 413, "send less text"),
        ({"model": "captioning", "file": encoded(PICTURE[:70]), "prefix": "字" * 30_000}, 400, "damaged or cut off"),
        (
            {"model": "captioning", "file": encoded(b"x" * (MAX_FILE + 1))},
            413,
            "but the limit is 8,000,000; make it smaller",
        ),
        ({"model": "captioning", "file": encoded(b"x" * (MAX_FILE + 200_000))}, 413, "a request may have at most"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_words_for_the_page(server, question, status, words):
    answer = server.post("/api/v1/traces", json={"text": "a.png"} | question)
    assert (answer.status_code, words in answer.json()["error"]) == (status, True), answer.text


def test_a_path_is_never_opened(server):
    answer = server.post("/api/v1/traces", json={"model": "captioning", "text": "/etc/hostname"})
    assert answer.json()["error"] == "the model reads images, not text; give a file"


def test_other_requests_stay_short(server):
    assert server.post("/api/v1/probes/bias", content=b" " * 100_001).status_code == 413


def test_the_file_that_a_server_was_started_with_is_given_to_its_page(server):
    found = client(OpenedFile("a.png", PICTURE))
    assert found.get("/api/v1/models").json()["file"] == "a.png"
    assert found.get("/api/v1/file").json() == {"name": "a.png", "file": encoded(PICTURE)}
    assert server.get("/api/v1/models").json()["file"] is None
    assert server.get("/api/v1/file").status_code == 404
