"""``python -m spanshot`` is ``spanshot``."""

from spanshot.cli.main import main

if __name__ == "__main__":
    main()
