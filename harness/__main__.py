"""``python -m harness`` is ``jobsworth``, for places where the script is not on the path."""

from harness.cli import main

if __name__ == "__main__":
    main()
