"""``python -m spanshot`` is ``spanshot``."""

from spanshot.interfaces.cli import main

if __name__ == "__main__":
    main()
