"""The errors that a user's mistake raises."""


class InputError(ValueError):
    """An input is wrong; the message is one line that says what is wrong, where, and what to do.

    The command line prints it and ends with exit code 2.
    """


class DamagedError(InputError):
    """A file is missing, or its contents do not match its checksum."""
