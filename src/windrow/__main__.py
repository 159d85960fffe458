"""`python -m windrow` is the same as `windrow`."""

from windrow.cli.main import main

main()
