"""What doctests need of the machine."""

from importlib.util import find_spec

# Its module stands on torch, which only `make test-torch` installs.
collect_ignore = [] if find_spec("torch") else ["src/fairramp/export/torch.py"]
