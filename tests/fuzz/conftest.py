"""The driver of atheris is a program, not a test."""

collect_ignore = ["atheris_run.py"]
