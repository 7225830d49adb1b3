"""The ``zenwire`` command: one file per subcommand, argument parsing only."""
