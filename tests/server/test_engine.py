"""The engine runs models for whoever asks it, without a word of HTTP."""

import asyncio
import threading

import pytest

import subjects
from heedful.server.engine import CancelledError, Engine, NotFoundError
from served import loaded_translator, models
from subjects import gated


def test_models_are_known_by_the_names_they_were_given():
    engine = Engine(models())
    assert list(engine.models) == ["translator", "gpt", "bert", "classes"]
    assert engine.model("gpt").loaded.recipe.task == "language_model"
    for name in ("/etc/passwd", "", None, ["gpt"]):
        with pytest.raises(
            NotFoundError, match=r"the model .* does not exist; choose one of translator, gpt, bert, classes"
        ):
            engine.model(name)


def test_a_model_in_the_box_is_loaded_by_its_name():
    assert Engine.load([["en-de"]]).model("en-de").predictor.translate("A dog.").endswith(".")


def test_a_job_gets_the_numbers_of_the_model_alone():
    engine = Engine({"one": loaded_translator(seed=1)})
    predictor = engine.model("one").predictor
    assert asyncio.run(engine.run(lambda: predictor.translate(subjects.TEXT))) == (
        subjects.translator(1).translate(subjects.TEXT)
    )


def test_between_two_steps_of_one_caller_another_has_its_turn():
    order = []

    async def ask():
        engine = Engine({})

        def steps():
            for number in range(3):
                order.append(number)
                yield number

        async def others():
            await engine.run(lambda: order.append("other"))

        found, waiting = [], []
        async for number in engine.stream(steps()):
            found.append(number)
            waiting = waiting or [asyncio.create_task(others())]
            await asyncio.sleep(0.02)
        await asyncio.gather(*waiting)
        return found

    assert asyncio.run(ask()) == [0, 1, 2]
    assert order == [0, "other", 1, 2]


@pytest.mark.parametrize("loaded", [loaded_translator(seed=1), gated()], ids=["transformer", "recurrent"])
def test_a_cancelled_job_stops_in_the_model_whatever_its_architecture(loaded):
    engine, running, stopped = Engine({"one": loaded}), threading.Event(), threading.Event()
    predictor = engine.model("one").predictor

    def job():
        try:
            while True:
                predictor.translate(subjects.TEXT)
                running.set()
        except CancelledError:
            stopped.set()
            raise

    async def ask():
        task = asyncio.create_task(engine.run(job))
        while not running.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await engine.run(lambda: "next")

    assert asyncio.run(ask()) == "next"
    assert stopped.is_set()


def test_an_engine_that_is_closed_runs_nothing_more():
    engine = Engine(models())
    engine.close()
    with pytest.raises(CancelledError):
        asyncio.run(engine.run(lambda: 1))


def test_a_stream_that_has_begun_ends_however_many_wait():
    go = threading.Event()

    async def ask():
        engine, found, waiting = Engine({}), [], []
        async for number in engine.stream(iter(range(3))):
            found.append(number)
            if not waiting:
                waiting = [asyncio.create_task(engine.run(go.wait)) for _ in range(9)]
                await asyncio.sleep(0.05)
                asyncio.get_running_loop().call_later(0.1, go.set)
        await asyncio.gather(*waiting)
        return found

    assert asyncio.run(ask()) == [0, 1, 2]
