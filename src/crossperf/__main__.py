"""``python -m crossperf`` is the command line."""

from crossperf.cli import main

main()
