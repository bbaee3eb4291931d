"""The tests of the Python package, and its doctests: run.py [unittest's arguments]. It takes the package that Python
finds, which finds its library (PIPECAST_LIBRARY, or that of a wheel)."""
import doctest
import importlib
import pathlib
import pkgutil
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from common import ROOT  # noqa: E402  pylint: disable=wrong-import-position


def load_tests(loader, _tests, _pattern):  # the protocol of unittest
    import pipecast

    suite = loader.discover(str(HERE))
    names = ["pipecast", *(f"pipecast.{one.name}" for one in pkgutil.iter_modules(pipecast.__path__))]
    for name in names:
        suite.addTests(doctest.DocTestSuite(importlib.import_module(name)))
    page = ROOT / "docs/python.md"
    if page.exists():
        suite.addTests(doctest.DocFileSuite(str(page), module_relative=False))
    return suite


if __name__ == "__main__":
    if sys.version_info < (3, 9):
        sys.exit("python 3.9 or newer is needed")
    unittest.main(verbosity=2)
