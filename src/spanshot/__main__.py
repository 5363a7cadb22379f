"""Run ``python -m spanshot``, which is the same as ``spanshot``."""

from spanshot.cli.main import main

if __name__ == "__main__":
    main()
