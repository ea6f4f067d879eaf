"""Keep pytest from collecting the atheris driver, which is a program."""

collect_ignore = ["atheris_run.py"]
