"""Work of the process of one system: train it, or resume its training, then measure it."""

from rich.console import Console

from heedful.errors import HeedfulError
from heedful.machine import choose_device, prepare_process
from heedful.machine.memory import PeakMemory
from heedful.tasks import import_task
from heedful.tools.compare.job import Job, Result
from heedful.tools.compare.measure import measure
from heedful.training import loop


def work(job: Job, console: Console | None = None) -> int:
    """Train and measure the system of a job, and write the result; an error becomes part of the result."""
    console = console or Console(stderr=True)
    before = Result.read(job.result)
    result = Result(job.to_json(), before.peak_memory)
    code = 0
    try:
        import_task(job.recipe.task)
        code = train(job, result, console) if job.trains else 0
        if not code:
            result.write(job.result)  # the memory of the training, should the measurement not come to its end
            prepare_process(job.recipe.train.threads)
            result.measured = measure(job, result.peak_memory)
    except HeedfulError as error:
        result.error, code = str(error), HeedfulError.exit_code
    except Exception as error:  # of a user's own class, or for want of memory: other systems shall not suffer from it
        console.print_exception()
        result.error, code = f"{type(error).__name__}: {error}", HeedfulError.exit_code
    result.write(job.result)
    return code


def train(job: Job, result: Result, console: Console) -> int:
    """Train the system of a job, or resume its training, and note the memory that this took; return the exit code."""
    memory = PeakMemory(choose_device(job.recipe.train.device))
    try:
        with memory:
            return loop.train(job.recipe, job.folder, console, job.data).exit_code
    finally:
        result.peak_memory = max(memory.bytes, result.peak_memory or 0)
