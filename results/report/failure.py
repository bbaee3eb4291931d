"""What went wrong, for people: one line, and the exit status that the command would give it."""

BAD_INPUT, MACHINE = 2, 3


class Failure(Exception):
    """`status`: BAD_INPUT where what was asked for cannot be, MACHINE where the disk or a program failed."""

    def __init__(self, message, status=BAD_INPUT):
        super().__init__(" ".join(str(message).split()))
        self.status = status


def of_os_error(error):
    name = f"{error.filename}: " if error.filename else ""
    return Failure(f"{name}{error.strerror or error}", MACHINE)
