"""`heedful doctor`: measure the speed of this machine, and advise on what slows it down."""

from heedful.progress import show_progress


def doctor() -> None:
    """Measure how fast this machine computes, and say what would make it faster. It takes some seconds."""
    from rich.console import Console
    from rich.table import Table

    from heedful.machine import prepare_process
    from heedful.machine.doctor import CHECKS

    prepare_process()  # so that the checks measure with the settings that commands compute with
    with show_progress("measuring", "checks", len(CHECKS)) as progress:
        findings = [check() for check in progress.over(CHECKS)]
    table = Table("", "found", "advice", box=None, pad_edge=False)
    for finding in findings:
        table.add_row(finding.subject, finding.found, finding.advice or "-")
    Console(highlight=False).print(table)
