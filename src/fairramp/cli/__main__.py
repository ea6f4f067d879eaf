"""Run `fairramp` as `python -m fairramp.cli`."""

from fairramp.cli import main

if __name__ == "__main__":
    main()
