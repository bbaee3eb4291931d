"""`meson install` gives the command, the library with its headers, the manual page, the completion and the scenarios; and
programs of others can be built with what is there, and nothing else.

usage: test_install.py BUILD_ROOT SOURCE_ROOT SANITIZED HEADER...     SANITIZED: 1 or 0
"""
import atexit
import csv
import functools
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, ROOT, SANITIZED, HEADERS = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3], sys.argv[4:]
FOLDERS = ("paper", "studies", "validation")
# What the command needs of the library where it is linked with the shared one; nothing is promised of it.
COMMANDS_OWN = ("calib/device/launched.h", "storage/replace.h")
EXAMPLE = ROOT / "docs/examples/run_scenario.c"
SCENARIO = "scenarios/paper/zero_bubble_table2.yaml"
# In C++, every header at once.
ALL_HEADERS = "".join(f"#include <{header}>\n" for header in HEADERS) + "int main() { return pc_version()[0] == 0; }\n"


@functools.cache
def installation():
    """One for all tests, gone with the program; and its files."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    done = subprocess.run(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--quiet"], capture_output=True, text=True,
                          env={**os.environ, "DESTDIR": folder.name}, timeout=120)
    assert done.returncode == 0, done
    destination = pathlib.Path(folder.name)
    return destination, [path for path in destination.rglob("*") if path.is_file()]


@unittest.skipUnless(shutil.which("meson"), "no meson on the path")
class Installed(unittest.TestCase):
    def setUp(self):
        self.destination, self.files = installation()

    def only(self, ending):
        """The one installed file whose path ends so."""
        found = [path for path in self.files if str(path).endswith(ending)]
        self.assertEqual(len(found), 1, (ending, found))
        return found[0]

    @staticmethod
    def version(command):
        done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=120)
        return done.stdout.split()[1]


class Install(Installed):
    def test_command(self):
        command = self.only("/bin/pipecast")
        scenarios = self.only("/share/pipecast/scenarios/paper/zero_bubble_table5.yaml").parents[1]
        environment = {**os.environ, "PIPECAST_SCENARIOS": str(scenarios),
                       "LD_LIBRARY_PATH": str(self.only(".so." + self.version(command)).parent)}
        done = subprocess.run([command, "list", "scenarios"], capture_output=True, text=True, env=environment, timeout=120,
                              cwd=self.destination)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("does not load", done.stdout)
        listed = {line for line in done.stdout.splitlines() if not line.startswith(" ")}
        wanted = {str(scenarios / path.relative_to(ROOT / "scenarios")) for name in FOLDERS
                  for path in (ROOT / "scenarios" / name).rglob("*.yaml") if path.parent.name in FOLDERS}
        self.assertEqual(listed, wanted)

    def test_library_and_headers(self):
        self.only("/libpipecast.so." + self.version(self.only("/bin/pipecast")))
        for header in HEADERS:
            installed = self.only("/include/pipecast/" + header)
            self.assertEqual(installed.read_bytes(), (ROOT / header).read_bytes(), header)

    def test_manual_and_completion(self):
        self.assertEqual(self.only("/share/man/man1/pipecast.1").read_bytes(), (ROOT / "docs/man/pipecast.1").read_bytes())
        self.assertEqual(self.only("/share/bash-completion/completions/pipecast").read_bytes(),
                         (ROOT / "docs/completion/pipecast.bash").read_bytes())

    def test_no_folder_of_the_build_is_left(self):
        """Neither in the library nor in the command, where libraries are looked for, nor in the description."""
        found = [path for path in self.files if not path.is_symlink() and str(BUILD).encode() in self.read_plainly(path)]
        self.assertEqual(found, [])

    @staticmethod
    def read_plainly(path):
        """Of programs but what the loader reads: what is for debuggers names the sources."""
        content = path.read_bytes()
        if not content.startswith(b"\x7fELF"):
            return content
        return subprocess.run(["readelf", "--dynamic", str(path)], capture_output=True, timeout=120).stdout


@unittest.skipUnless(shutil.which("pkg-config") and shutil.which("cc"), "no pkg-config, or no cc on the path")
class Consumer(Installed):
    """A program of others: with the flags of pkg-config, the installed headers and the installed library, and no more."""

    def setUp(self):
        super().setUp()
        described = self.only("/pkgconfig/pipecast.pc")
        self.library = described.parents[1]
        self.environment = {**os.environ, "PKG_CONFIG_PATH": str(described.parent), "LD_LIBRARY_PATH": str(self.library),
                            "PKG_CONFIG_SYSROOT_DIR": str(self.destination)}

    def ask(self, *arguments):
        done = subprocess.run(["pkg-config", *arguments, "pipecast"], capture_output=True, text=True, env=self.environment, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def build(self, compiler, source, *flags):
        program = self.destination / "program"
        done = subprocess.run([compiler, *flags, *self.ask("--cflags"), str(source), *self.ask("--libs"), "-o", str(program)],
                              capture_output=True, text=True, env=self.environment, cwd=self.destination, timeout=120)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        return str(program)

    def answer(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment, cwd=ROOT, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return done.stdout

    def test_description(self):
        command = str(self.only("/bin/pipecast"))
        self.assertEqual(self.ask("--modversion"), [self.version(command)])
        self.assertEqual([word[:2] for word in self.ask("--cflags", "--libs")], ["-I", "-L", "-l"])
        self.assertEqual(self.ask("--print-requires", "--print-requires-private"), [])
        scenarios = self.ask("--variable=scenarios")[0]
        self.assertTrue(pathlib.Path(scenarios, "paper/zero_bubble_table5.yaml").is_file(), scenarios)

    @unittest.skipIf(SANITIZED == "1", "part: programs of others are not sanitized")
    def test_example(self):
        """As many lines as a user reads, and the same numbers as the command's, to the last bit."""
        self.assertLess(len(EXAMPLE.read_text().splitlines()), 30)
        program = self.build("cc", EXAMPLE, "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
        mine = [line.split(",") for line in self.answer(program, SCENARIO).splitlines()]
        theirs = csv.DictReader(io.StringIO(self.answer(self.only("/bin/pipecast"), "run", SCENARIO, "--format", "csv")))
        for row, (name, schedule, iteration, mfu) in zip(theirs, mine, strict=True):
            self.assertEqual((row["name"], row["schedule"]), (name, schedule))
            self.assertEqual(float(row["iteration_s"]), float(iteration))
            self.assertEqual(row["mfu"] or "nan", "nan" if mfu == "nan" else row["mfu"])
        self.assertGreater(len(mine), 10)

    @unittest.skipIf(SANITIZED == "1", "part: programs of others are not sanitized")
    @unittest.skipUnless(shutil.which("c++"), "no c++ on the path")
    def test_all_headers_in_cpp(self):
        source = self.destination / "all.cc"
        source.write_text(ALL_HEADERS)
        self.answer(self.build("c++", source, "-std=c++17", "-Wall", "-Wextra", "-Werror"))

    @unittest.skipUnless(shutil.which("nm"), "no nm on the path")
    def test_symbols(self):
        """The library gives out what headers declare as its interface, all of it and nothing else."""
        shown = self.answer("nm", "--dynamic", "--defined-only", "--format=posix", str(self.library / "libpipecast.so"))
        given = {line.split()[0] for line in shown.splitlines()}
        declared = set()
        for header in (*HEADERS, *COMMANDS_OWN):
            text = re.sub(r"/\*.*?\*/", " ", (ROOT / header).read_text(), flags=re.DOTALL)
            for statement in re.findall(r"\bPC_API\b([^;{]*)", text):
                declared.add(re.search(r"(\w+)\s*(?:\(|\[|$)", statement.replace("PC_MUST_USE", " "))[1])
        declared.discard("__attribute__")
        self.assertGreater(len(declared), 200)
        self.assertEqual({name for name in given if name.startswith("pc_")} ^ declared, set())
        self.assertEqual({name for name in given if not name.startswith(("pc_", "_", "__asan", "__ubsan", "__odr"))}, set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
