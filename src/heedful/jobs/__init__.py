"""Long jobs over a folder of text files, one output line per input line, on any number of processes and machines."""

from heedful.jobs.folder_job import FolderJob, Worker, check_output_folder, open_job
from heedful.jobs.plan import SHARD_LINES, WINDOW, Compute, check_shard_lines

__all__ = [
    "SHARD_LINES",
    "WINDOW",
    "Compute",
    "FolderJob",
    "Worker",
    "check_output_folder",
    "check_shard_lines",
    "open_job",
]
