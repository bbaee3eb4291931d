"""Makes a page with its pictures, whole or not at all, or compares it with the one that stands there.

`build(results) -> Document` says what is on the page (paper.py).
"""
import contextlib
import itertools
import os
import pathlib
import shutil
import tempfile

import document as d
from failure import Failure, of_os_error
from markdown import to_markdown
from pictures import Pictures, stage_text
from results import Results
from webpage import to_html

PAGE = "README.md"


def make(build, pipecast, path, folder, html=None):
    """Writes FOLDER/README.md, its pictures and, where asked for, the same page as one file of HTML.
    Returns (pictures drawn, pictures)."""
    folder = pathlib.Path(folder)
    _check_targets(folder, html)
    pictures = Pictures(pipecast, path, folder, f"{path}.pictures.json")
    results = Results(pipecast, path, pictures)
    document = _built(build, results)
    _check_pictures(document, pictures)
    markdown = to_markdown(document)
    try:
        with _staging(folder) as staging:
            drawn = pictures.draw(staging)
            texts = {folder / PAGE: markdown}
            if html:
                texts[pathlib.Path(html)] = to_html(document, lambda one: _read(pictures.where(one)),
                                                    _link_to(folder, html))
            _put_in_place(pictures, texts)
    except OSError as error:
        raise of_os_error(error) from error
    return drawn, len(pictures.asked)


def check(build, pipecast, path, folder):
    """None where the page in `folder` is what these results make; otherwise the first difference, in words."""
    folder = pathlib.Path(folder)
    pictures = Pictures(pipecast, path, folder, f"{path}.pictures.json")
    document = _built(build, Results(pipecast, path, pictures))
    _check_pictures(document, pictures)
    try:
        standing = _read(folder / PAGE)
    except OSError as error:
        raise Failure(f"{folder / PAGE}: {error.strerror}; expected a page made by -o") from error
    return _first_difference(folder / PAGE, standing, to_markdown(document)) or _pictures_amiss(folder, pictures.asked)


def _built(build, results):
    try:
        return build(results)
    except d.DocumentError as error:
        raise Failure(error) from error


def _check_targets(folder, html):
    """Before any work: what will be replaced is a file, so that no device is."""
    if folder.exists() and not folder.is_dir():
        raise Failure(f"{folder}: not a folder; expected a name for one")
    for path in [folder / PAGE] + ([pathlib.Path(html)] if html else []):
        if path.exists() and not path.is_file():
            raise Failure(f"{path}: not a file; expected a name for one")


def _check_pictures(document, pictures):
    """Every figure of the page is one that was asked for, and the other way round."""
    shown = {figure.path for figure in d.figures(document)}
    for path in sorted(shown ^ set(pictures.asked)):
        raise Failure(f"{path}: " + ("a figure that nobody draws" if path in shown else "drawn, and not on the page"))


def _first_difference(name, standing, made):
    """Lines beside each other; the numbers of the page are in its lines."""
    for number, (old, new) in enumerate(itertools.zip_longest(standing.splitlines(), made.splitlines()), 1):
        if old != new:
            return f"{name}:{number}: {_quote(old)}; these results say {_quote(new)}"
    return None


def _quote(line):
    return "no such line" if line is None else f"'{line}'"


def _pictures_amiss(folder, asked):
    standing = {str(path.relative_to(folder).as_posix()) for path in folder.rglob("*.svg")}
    for path in sorted(set(asked) ^ standing):
        return f"{folder / path}: " + ("missing" if path in asked else "not of this page")
    return None


def _read(path):
    return pathlib.Path(path).read_text(encoding="utf-8")


def _link_to(folder, html):
    """A link that is relative to the page's folder, as one from the HTML file."""
    start = pathlib.Path(html).resolve().parent
    return lambda link: pathlib.Path(os.path.relpath(pathlib.Path(folder).resolve() / link, start)).as_posix()


@contextlib.contextmanager
def _staging(folder):
    """A folder within the page's, so that putting a file in place is one step; gone in the end, and the page's own
    too where it was made for nothing."""
    made = [one for one in [folder, *folder.parents] if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    staging = tempfile.mkdtemp(prefix=".new-", dir=folder)
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        with contextlib.suppress(OSError):
            for one in made:
                one.rmdir()


def _put_in_place(pictures, texts):
    """All texts are on the disk before the first file is replaced; the page itself comes last."""
    staged = {}
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            staged[path] = stage_text(path, text)
        pictures.put_in_place()
        for path in reversed(list(staged)):
            os.replace(staged[path], path)
            del staged[path]
    finally:
        for name in staged.values():
            os.unlink(name)
    pictures.write_stamps()
