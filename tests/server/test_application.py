"""Apps stand side by side on one engine: each is a list of routes, and what guards one guards the other."""

import asyncio
import json
from functools import partial

import pytest
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

import subjects
from heedful.errors import RunError
from heedful.server.application import application, body
from heedful.server.engine import Engine
from heedful.server.inspector.routes import inspector_routes
from served import PAGE, SAMPLE, models

OFF = [{"block": f"dec.{layer}.cross", "number": head} for layer in range(3) for head in range(2)]
LOOK = {"model": "translator", "text": subjects.TEXT, "off": OFF, "beam": 7}


def translation_routes(engine):
    """A second app, as small as can be: it translates."""

    async def translate(request):
        asked = await body(request)
        model = engine.model(asked.get("model"))
        return JSONResponse({"text": await engine.run(partial(model.predictor.translate, asked["text"]))})

    async def fail(request):
        raise RunError("the disk is full")

    return [Route("/translate", translate, methods=["POST"]), Route("/fail", fail)]


@pytest.fixture
def both():
    """Both apps on one engine, as ASGI."""
    engine = Engine(models())
    return partial(
        application,
        [*inspector_routes(engine, PAGE, SAMPLE), Mount("/public", routes=translation_routes(engine))],
    )


async def asked(app, path, question):
    """The status and the answer of an app."""
    sent, messages = [], [{"type": "http.request", "body": json.dumps(question).encode()}]

    async def receive():
        if not messages:
            await asyncio.Event().wait()
        return messages.pop()

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"127.0.0.1")]
    await app({"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}, receive, send)
    return sent[0]["status"], json.loads(b"".join(message.get("body", b"") for message in sent[1:]))


def test_two_apps_that_are_asked_at_once_both_answer_with_the_models_own_numbers(both):
    expected, app = subjects.translator().translate(subjects.TEXT), both()

    async def ask():
        looks = [asked(app, "/api/v1/traces", LOOK | {"prefix": prefix}) for prefix in ("", "der")]
        question = {"model": "translator", "text": subjects.TEXT}
        return await asyncio.gather(*looks, *(asked(app, "/public/translate", question) for _ in range(3)))

    *looks, first, second, third = asyncio.run(ask())
    assert [status for status, _ in looks] == [201, 201]
    assert first == second == third == (200, {"text": expected})


def test_without_heads_that_the_inspector_switches_off_another_answer_would_differ():
    assert subjects.translator().translate(subjects.TEXT) != asyncio.run(asked_without())


async def asked_without():
    engine = Engine(models())
    app = application(inspector_routes(engine, PAGE, SAMPLE))
    return (await asked(app, "/api/v1/traces", LOOK))[1]["answers"][0]["options"][0]["text"]


@pytest.mark.parametrize(
    ("path", "question", "status", "words"),
    [
        ("/public/translate", {"model": "nobody", "text": "a"}, 404, "the model 'nobody' does not exist"),
        ("/public/translate", ["a"], 400, "not a JSON object"),
        ("/public/translate", {"model": "translator", "text": "a" * 100_000}, 413, "at most 100,000 bytes"),
        ("/public/translate", {"model": "translator", "text": "dog " * 3000}, 200, None),
        ("/public/nothing", {}, 404, "Not Found"),
        ("/public/fail", {}, 405, "Method Not Allowed"),
        ("/nothing", {}, 404, "Not Found"),
    ],
)
def test_errors_of_every_app_are_answered_alike(both, path, question, status, words):
    answer = TestClient(both(), "http://127.0.0.1").post(path, json=question)
    assert answer.status_code == status
    assert words is None or words in answer.json()["error"]


def test_a_failure_of_the_machine_is_told_as_one(both):
    answer = TestClient(both(), "http://127.0.0.1").get("/public/fail")
    assert (answer.status_code, answer.json()) == (500, {"error": "the disk is full"})


def test_a_closed_engine_sends_everybody_away_for_a_moment():
    engine = Engine(models())
    engine.close()
    server = TestClient(application([Mount("/public", routes=translation_routes(engine))]), "http://127.0.0.1")
    answer = server.post("/public/translate", json={"model": "translator", "text": "a"})
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "1"


def test_every_app_is_guarded(both):
    server = TestClient(both(token="right"), "http://box.example", follow_redirects=False)
    question = {"model": "translator", "text": "a"}
    assert server.post("/public/translate", json=question).status_code == 401
    server.get("/?token=right")
    assert server.post("/public/translate", json=question).status_code == 200
    answer = server.post("/public/translate", json=question, headers={"Origin": "http://evil.example"})
    assert answer.status_code == 403
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_it_is_told_when_the_server_is_ready(both):
    told = []
    with TestClient(both(ready=partial(told.append, "ready")), "http://127.0.0.1"):
        assert told == ["ready"]
