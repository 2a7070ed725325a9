"""The command ``crossperf``, also as ``python -m crossperf``: Ctrl-C ends it quietly from its first moment on."""


def main() -> None:
    """Run the command line; until it listens itself, an interrupt ends the process as the system does it."""
    try:  # even what tells of signals takes a moment to load
        import signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where the caller has it ignored
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    from crossperf.cli import main as run

    run()


if __name__ == "__main__":
    main()
