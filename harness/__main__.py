"""The program ``jobsworth``; also ``python -m harness``, for places where the script is not on the path."""

import signal

__all__ = ["main"]


def main() -> None:
    """Run the command line. While it is being loaded, an interrupt ends the program without a word."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else it is ignored, as under nohup
    if is_default:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from harness import cli

    if is_default:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


if __name__ == "__main__":
    main()
