"""Writes a header with a hash of the sources that decide a result, and what the header depends on for the build system.

Of a source its path and its bytes count, and so do those of the table that intervals come from; that of tests, figures, documents and the command does not, and neither does the
version or the commit: what is not touched need not be simulated again.

usage: build_hash.py SOURCE_ROOT HEADER DEPENDENCIES
"""
import hashlib
import pathlib
import sys

FOLDERS = ("engine", "models", "storage", "calib", "scenarios", "results", "sweep")
PICTURES, TABLE = "results/figures", "scenarios/intervals.csv"


def sources(root):
    """C sources, headers and the table, in an order that no file system decides."""
    found = (path for folder in FOLDERS for path in (root / folder).rglob("*.[ch]"))
    return sorted([*(path for path in found if not path.is_relative_to(root / PICTURES)), root / TABLE])


def main():
    root, header, dependencies = (pathlib.Path(argument) for argument in sys.argv[1:])
    paths, digest = sources(root), hashlib.sha256()
    for path in paths:
        digest.update(b"%s\0%s\0" % (path.relative_to(root).as_posix().encode(), hashlib.sha256(path.read_bytes()).digest()))
    text = f"#define PC_BUILD_HASH UINT64_C(0x{digest.hexdigest()[:16]})\n"
    header.write_text(text)
    names = " ".join(str(path).replace(" ", "\\ ") for path in paths)
    dependencies.write_text(f"{header}: {names}\n")


main()
