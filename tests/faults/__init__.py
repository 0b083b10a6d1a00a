"""A campaign of faults: files broken and processes killed, to see that nothing is lost.

`python -m tests.faults --minutes 10` from the repository's root; `--help` says more.
"""
