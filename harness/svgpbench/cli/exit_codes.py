"""Exit codes of the command line; 0 is success."""

FAILED = 1
"""A cell or a check failed."""

USER_MISTAKE = 2
"""The command line, a file of the user or the data is wrong."""

INTERRUPTED = 130
"""The user pressed Ctrl-C."""
