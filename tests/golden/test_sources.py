"""What the sources never do: start a shell, guess at names of temporary files, copy without a bound, reach for a network.

usage: test_sources.py SOURCE_ROOT
"""
import ast
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
ROOMS = ("engine", "models", "storage", "scenarios", "results", "calib", "kernels", "sweep", "api", "cli")
# Function: why no source calls it.
NEVER = {
    "a shell, or a program found by one": ("system", "popen", "execl", "execlp", "execle", "execv", "execvp", "execvpe", "execve",
                                            "wordexp", "fork", "vfork"),
    "a name that others can guess": ("tmpnam", "tempnam", "mktemp", "tmpfile"),
    "no bound": ("gets", "strcat", "vsprintf", "alloca"),
    "a network": ("socket", "connect", "bind", "accept", "getaddrinfo", "gethostbyname"),
    "rights": ("setuid", "seteuid", "setgid", "umask", "chmod", "chown"),
}
# Who starts a program, each without a shell and with words of its own: gnuplot; the command itself, as ranks.
STARTERS = {"posix_spawnp": ["results/figures/gnuplot.c"], "posix_spawn": ["calib/device/transfers.c"]}
# Who makes a file by name without O_EXCL: the journal, beside the results and by the user's word; a log in a folder of our own.
MAKERS = ["calib/device/transfers.c", "sweep/journal.c"]


def sources():
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix in (".c", ".h", ".cc", ".cu", ".cuh"):
                yield path


def code_of(path):
    """Without comments and texts."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, lambda found: " " if found[0].startswith("/") else '""', path.read_text(), flags=re.DOTALL)


def called(code):
    """The names of all functions, not of members, before an opening bracket."""
    return set(re.findall(r"(?<![\w.>])([A-Za-z_]\w*)\s*\(", code))


class Sources(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.code = {str(path.relative_to(ROOT)): code_of(path) for path in sources()}
        cls.calls = {path: called(code) for path, code in cls.code.items()}

    def test_all_are_read(self):
        self.assertGreater(len(self.code), 250)

    def test_never(self):
        for why, names in NEVER.items():
            for name in names:
                found = [path for path, own in self.calls.items() if name in own]
                self.assertEqual(found, [], f"{name}: {why}")

    def test_starters(self):
        for name, wanted in STARTERS.items():
            self.assertEqual([path for path, own in self.calls.items() if name in own], wanted, name)

    def test_files_are_made_anew(self):
        found = [path for path, code in self.code.items()
                 for statement in re.split(r"[;{}]", code) if "O_CREAT" in statement and "O_EXCL" not in statement]
        self.assertEqual(sorted(set(found)), MAKERS)

    def test_the_test_can_fail(self):
        self.assertIn("system", called('if (system ("ls"))'))
        self.assertNotIn("system", called("file_system(x); x.system(y); x->system(y)"))


class Python(unittest.TestCase):
    """The report and what runs at build time: no shell, no code from data."""

    def test_calls(self):
        paths = sorted((ROOT / "results").rglob("*.py")) + sorted((ROOT / "scenarios").rglob("*.py"))
        self.assertGreater(len(paths), 5)
        for path in paths:
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.Call):
                    continue
                name = ast.unparse(node.func)
                self.assertNotIn(name, ("os.system", "os.popen", "eval", "exec", "pickle.load", "pickle.loads", "tempfile.mktemp"),
                                 f"{path}:{node.lineno}")
                shell = [word for word in node.keywords if word.arg == "shell"]
                self.assertEqual(shell, [], f"{path}:{node.lineno}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
