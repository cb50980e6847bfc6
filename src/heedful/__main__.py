"""The command line as `python -m heedful`."""

from heedful.cli import main

main()
