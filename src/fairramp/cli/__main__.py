"""`python -m fairramp.cli` is the same as `fairramp`."""

from fairramp.cli import main

if __name__ == "__main__":
    main()
