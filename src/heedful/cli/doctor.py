"""`heedful doctor`: what this machine can do, and what slows it down."""


def doctor() -> None:
    """Look at this machine, measure what it can do, and say what to change. It takes some seconds."""
    from rich.console import Console
    from rich.table import Table

    from heedful.machine.checkup import CHECKS

    console = Console(highlight=False)
    with console.status("measuring"):
        findings = [check() for check in CHECKS]
    table = Table("", "found", "advice", box=None, pad_edge=False)
    for finding in findings:
        table.add_row(finding.subject, finding.found, finding.advice or "-")
    console.print(table)
