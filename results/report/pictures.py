"""The pictures of a page: asked for while its text is made, drawn together, and put in place when all are done.

A stamp for every picture keeps the hashes of what it was drawn from and of what was drawn: where both still hold, it is
not drawn again.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import sys
import tempfile

import results as results_file
from failure import Failure

FORMAT = 1  # of the stamps


def hash_of(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


class Pictures:
    """For one page in `folder`. `stamps`: a file, not of the page."""

    def __init__(self, pipecast, path, folder, stamps):
        self.pipecast, self.path = str(pipecast), str(path)
        self.folder, self.stamps = pathlib.Path(folder), pathlib.Path(stamps)
        self.asked = {}  # path: arguments of `pipecast figure`
        self.staged = {}  # path: where it stands until the page is complete
        self.new_stamps = {}

    def ask(self, path, arguments):
        """Notes a picture; nothing is drawn yet."""
        parts = pathlib.PurePosixPath(path)
        if parts.is_absolute() or ".." in parts.parts or parts.suffix != ".svg":
            raise Failure(f"{path}: not a picture of the page; expected a path such as figure4.svg, relative to it")
        arguments = [str(argument) for argument in arguments]
        if self.asked.setdefault(str(parts), arguments) != arguments:
            raise Failure(f"{path}: two pictures; expected a name for each")
        return str(parts)

    def draw(self, staging):
        """Draws what has to be drawn into the folder `staging`, as many at a time as there are processors; returns how
        many that were."""
        inputs, old = self._inputs(), self._read_stamps()
        stale = [path for path in self.asked if not self._stands(path, inputs[path], old.get(path))]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            waiting = [pool.submit(self._draw_one, path, staging) for path in stale]
            try:
                for count, one in enumerate(waiting, 1):
                    one.result()
                    _progress(f"{count} of {len(stale)} pictures drawn")
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
            finally:
                _progress("")
        self.new_stamps = {path: {"inputs": inputs[path], "picture": hash_of(self.where(path))} for path in self.asked}
        return len(stale)

    def where(self, path):
        """Where the picture can be read now."""
        return self.staged.get(path, self.folder / path)

    def put_in_place(self):
        for path, staged in self.staged.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(staged, self.folder / path)
        self.staged = {}

    def write_stamps(self):
        stamps = {"format": FORMAT, "folder": str(self.folder.resolve()), "pictures": self.new_stamps}
        replace_text(self.stamps, json.dumps(stamps, indent=1, sort_keys=True) + "\n")

    def _inputs(self):
        """What each picture is made of, as one hash."""
        try:
            common = hash_of(self.path) + hash_of(shutil.which(self.pipecast) or self.pipecast)
        except OSError as error:
            raise Failure(f"{error.filename}: {error.strerror}; expected a results file and the command") from error
        return {path: hashlib.sha256(json.dumps([common, arguments]).encode()).hexdigest()
                for path, arguments in self.asked.items()}

    def _read_stamps(self):
        """Those of another folder, or unreadable ones, are as good as none."""
        try:
            stamps = json.loads(self.stamps.read_text())
            is_ours = stamps["format"] == FORMAT and stamps["folder"] == str(self.folder.resolve())
            return dict(stamps["pictures"]) if is_ours else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _stands(self, path, inputs, stamp):
        if not isinstance(stamp, dict) or stamp.get("inputs") != inputs:
            return False
        try:
            return hash_of(self.folder / path) == stamp.get("picture")
        except OSError:
            return False

    def _draw_one(self, path, staging):
        target = pathlib.Path(staging) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        results_file.run(self.pipecast, "figure", self.path, *self.asked[path], "-o", target)
        if not target.is_file():
            raise Failure(f"{path}: the command drew nothing")
        self.staged[path] = target


def _progress(text):
    """On a terminal one line that overwrites itself."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def stage_text(path, text):
    """The text in a file beside `path`, complete on the disk; os.replace() puts it in place."""
    path = pathlib.Path(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
    except BaseException:
        os.unlink(name)
        raise
    return name


def replace_text(path, text):
    os.replace(stage_text(path, text), path)


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
