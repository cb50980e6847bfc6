"""The same job on Ray: the same results, and errors as messages."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from shouting import EXPECTED, open_shouting, results, shout, write_input

import heedful
from heedful.errors import InputError
from heedful.jobs import WINDOW
from heedful.jobs.on_ray import ShardActor, run_on_ray
from heedful.progress import silent

PROGRAM = """
import sys
from functools import partial
from pathlib import Path
from shouting import open_shouting, shout
from heedful.errors import InputError
from heedful.jobs.on_ray import run_on_ray
from heedful.progress import silent

def refuse(lines, done):
    raise InputError("no text for capitals")

def in_actor(folder, compute):
    return open_shouting(folder), compute

folder, progress = Path(sys.argv[1]), silent("")
try:
    run_on_ray(open_shouting(folder), partial(in_actor, folder, refuse), progress)
except InputError as error:
    print(error)
run_on_ray(open_shouting(folder), partial(in_actor, folder, shout), progress)
print(progress.done)
"""


def test_without_ray_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    write_input(tmp_path)
    job = open_shouting(tmp_path)
    with pytest.raises(InputError, match=r"pip install 'heedful\[ray\]'"):
        run_on_ray(job, lambda: (job, shout), silent(""))


def test_an_actor_computes_what_nobody_has_computed(tmp_path):
    write_input(tmp_path)
    job = open_shouting(tmp_path)
    actor = ShardActor(lambda: (open_shouting(tmp_path), shout))
    batch = {name: [value] for name, value in vars(job.missing("long.txt")[1]).items()}
    assert actor(batch) == {"file": ["long.txt"], "computed": [True], "error": [""], "exit_code": [0]}
    assert actor(batch) == {"file": ["long.txt"], "computed": [False], "error": [""], "exit_code": [0]}
    assert [shard.first for shard in job.missing("long.txt")] == [1, 2 * WINDOW + 1]


RAY_ENDS = "core worker has already been shutdown"  # Ray ends the process so if a busy machine makes it lose a worker


@pytest.mark.slow
def test_a_job_on_ray_has_the_same_results_and_errors(tmp_path):
    pytest.importorskip("ray")
    attempts = (on_ray(tmp_path / str(number)) for number in range(3))
    folder, done = next(((folder, done) for folder, done in attempts if RAY_ENDS not in done.stderr))
    if "Ray does not start" in done.stderr:
        pytest.skip("this machine is too busy for Ray, which waits 30 seconds for its own start")
    said = [line for line in done.stdout.splitlines() if "(raylet)" not in line]  # what Ray itself says of its workers
    assert said == ["no text for capitals", str(sum(map(len, EXPECTED.values())))], done.stderr
    assert results(folder) == EXPECTED


def on_ray(folder: Path) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Run the program in a folder; return both the folder and how the program ended."""
    folder.mkdir()
    write_input(folder)
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    places = [str(Path(heedful.__file__).parents[1]), str(Path(__file__).parent)]
    done = subprocess.run(
        [sys.executable, str(folder / "program.py"), str(folder)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(places)},
        capture_output=True,
        text=True,
        check=False,
    )
    return folder, done
