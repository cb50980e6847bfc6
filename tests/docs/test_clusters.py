"""The templates for supervisors are what bash and YAML can read; `faults/hosts.py` runs the loop in a shell."""

import subprocess

import pytest
import yaml
from pages import ROOT, Code, blocks

PAGE = ROOT / "docs/how-to/clusters.md"


@pytest.mark.parametrize("code", blocks(PAGE, "bash"), ids=lambda code: code.place)
def test_bash_can_read_each_script(code: Code):
    read = subprocess.run(["bash", "-n"], check=False, input=code.text, capture_output=True, text=True)
    assert (read.returncode, read.stderr) == (0, "")


def test_each_manifest_trains_a_recipe():
    job_set, task = [yaml.safe_load(code.text) for code in blocks(PAGE, "yaml")]
    job = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]
    [container] = job["template"]["spec"]["containers"]
    assert [*container["command"], *container["args"]][:2] == ["torchrun", f"--nnodes={job['completions']}"]
    assert "-m heedful train RECIPE" in task["run"]
    script = subprocess.run(["bash", "-n"], check=False, input=task["run"], capture_output=True, text=True)
    assert script.returncode == 0
