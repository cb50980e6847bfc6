"""One job at a time, a short queue, and nobody waits for whoever went away."""

import asyncio
import threading

import pytest

from heedful.server.engine import BusyError, Worker


def test_jobs_run_one_at_a_time_and_in_order():
    running, seen = [], []

    def job(number):
        running.append(number)
        assert len(running) == 1
        seen.append(running.pop())
        return number

    async def ask():
        worker = Worker()
        return await asyncio.gather(*(worker.run(lambda n=n: job(n)) for n in range(7)))

    assert asyncio.run(ask()) == list(range(7))
    assert seen == list(range(7))


async def busy(worker, job, count):
    """Tasks of a worker that run the same job, of which the first has begun and the others wait."""
    jobs = [asyncio.create_task(worker.run(job)) for _ in range(count)]
    await asyncio.sleep(0.05)
    return jobs


def test_one_more_than_may_wait_is_sent_away():
    go = threading.Event()

    async def ask():
        worker = Worker(waiting=2)
        jobs = await busy(worker, go.wait, 3)
        with pytest.raises(BusyError, match="2 requests are waiting"):
            await worker.run(go.wait)
        go.set()
        await asyncio.gather(*jobs)
        return await worker.run(lambda: "again")

    assert asyncio.run(ask()) == "again"


def test_a_job_whose_caller_has_gone_never_runs():
    go, ran = threading.Event(), []

    async def ask():
        worker = Worker()
        first = asyncio.create_task(worker.run(go.wait))
        await asyncio.sleep(0.02)
        second = asyncio.create_task(worker.run(lambda: ran.append(2)))
        await asyncio.sleep(0.02)
        second.cancel()
        go.set()
        await first
        await worker.run(lambda: ran.append(3))

    asyncio.run(ask())
    assert ran == [3]


def test_what_a_job_raises_is_raised_to_its_caller_and_the_next_one_runs():
    async def ask():
        worker = Worker()
        with pytest.raises(ZeroDivisionError):
            await worker.run(lambda: 1 / 0)
        return await worker.run(lambda: 7)

    assert asyncio.run(ask()) == 7


def test_one_that_was_let_in_may_always_wait():
    go = threading.Event()

    async def ask():
        worker = Worker(waiting=1)
        jobs = await busy(worker, go.wait, 2)
        jobs.append(asyncio.create_task(worker.run(go.wait, admitted=True)))
        await asyncio.sleep(0.05)
        go.set()
        return await asyncio.gather(*jobs)

    assert asyncio.run(ask()) == [True] * 3


def test_those_that_have_gone_leave_no_thread():
    go = threading.Event()

    async def ask():
        worker = Worker()
        [first] = await busy(worker, go.wait, 1)
        first.cancel()  # its thread goes on, as it looks nowhere whether anybody waits
        before = threading.active_count()
        for _ in range(101):
            one = asyncio.create_task(worker.run(lambda: None))
            await asyncio.sleep(0.01)
            one.cancel()
        more = threading.active_count() - before
        go.set()
        return more

    assert asyncio.run(ask()) < 40
