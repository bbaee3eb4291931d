"""`meson install` gives the command, the library with its header, the manual page, the completion and the scenarios; and
programs of others can be built with what is there, and nothing else.

tests/data/abi.txt is what the library promises: every function with its prototype, every constant, in the order of
pipecast.h. PC_WRITE_GOLDEN=1 writes it anew; a line that goes or changes breaks programs.

usage: test_install.py BUILD_ROOT SOURCE_ROOT SANITIZED     SANITIZED: 1 or 0
"""
import atexit
import csv
import functools
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, ROOT, SANITIZED = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
FOLDERS = ("paper", "studies", "validation")
HEADER, ABI, EXAMPLES = ROOT / "api/pipecast.h", ROOT / "tests/data/abi.txt", ROOT / "docs/examples"
SCENARIO = "scenarios/paper/zero_bubble_table2.yaml"
IN_CPP = """#include <cstring>
#include <pipecast.h>
int main() { return std::strcmp(pc_version(), PC_VERSION) || PIPECAST_VERSION_NUMBER < 100; }
"""
# What those who preload or instrument a library put into it.
FOREIGN = ("_", "__asan", "__ubsan", "__odr")


def interface_of(header):
    """The lines of abi.txt that a header comes to."""
    text = re.sub(r"/\*.*?\*/", " ", header.read_text(), flags=re.DOTALL)
    functions = [" ".join(found.split()) for found in re.findall(r"^PC_PUBLIC ([^;]*);", text, flags=re.MULTILINE)]
    return functions + [" ".join(found.split()) for found in re.findall(r"\bPIPECAST_\w+ = \d+", text)]


def name_of(prototype):
    return re.search(r"(\w+)\(", prototype)[1]


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

    def test_library_and_header(self):
        version = self.version(self.only("/bin/pipecast"))
        self.only("/libpipecast.so." + version)
        self.assertEqual([path for path in self.files if path.suffix == ".h"], [self.only("/include/pipecast.h")])
        self.assertEqual(self.only("/include/pipecast.h").read_bytes(), HEADER.read_bytes())
        self.assertIn(f'"{version}"', HEADER.read_text())

    def test_manual_and_completion(self):
        self.assertEqual(self.only("/share/man/man1/pipecast.1").read_bytes(), (ROOT / "docs/man/pipecast.1").read_bytes())
        self.assertEqual(self.only("/share/bash-completion/completions/pipecast").read_bytes(),
                         (ROOT / "docs/completion/pipecast.bash").read_bytes())

    def test_completions_of_other_shells_find_that_of_bash(self):
        for name, folder in [("_pipecast", "/share/zsh/site-functions"), ("pipecast.fish", "/share/fish/vendor_completions.d")]:
            installed = self.only(f"{folder}/{name}")
            text = (ROOT / "docs/completion" / name).read_text()
            self.assertEqual(installed.read_text(), text)
            self.assertIn("/../../bash-completion/completions/pipecast", text)
            self.assertTrue((installed.parent / "../../bash-completion/completions/pipecast").is_file())

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
    """A program of others: with the flags of pkg-config, the installed header and the installed library, and no more."""

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

    def build_example(self, name):
        return self.build("cc", EXAMPLES / name, "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")

    def answer(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment, cwd=ROOT, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return done.stdout

    def test_description(self):
        command = str(self.only("/bin/pipecast"))
        self.assertEqual(self.ask("--modversion"), [self.version(command)])
        self.assertEqual([word[:2] for word in self.ask("--cflags", "--libs")], ["-I", "-L", "-l"])
        self.assertEqual(pathlib.Path(self.ask("--cflags")[0][2:]), self.only("/include/pipecast.h").parent)
        self.assertEqual(self.ask("--print-requires", "--print-requires-private"), [])
        scenarios = self.ask("--variable=scenarios")[0]
        self.assertTrue(pathlib.Path(scenarios, "paper/zero_bubble_table5.yaml").is_file(), scenarios)

    @unittest.skipIf(SANITIZED == "1", "part: programs of others are not sanitized")
    def test_example(self):
        """As many lines as a user reads, and the same numbers as the command's, to the last bit."""
        self.assertLess(len((EXAMPLES / "run_scenario.c").read_text().splitlines()), 30)
        program = self.build_example("run_scenario.c")
        mine = [line.split(",") for line in self.answer(program, SCENARIO).splitlines()]
        theirs = csv.DictReader(io.StringIO(self.answer(self.only("/bin/pipecast"), "run", SCENARIO, "--format", "csv")))
        for row, (name, schedule, iteration, mfu) in zip(theirs, mine, strict=True):
            self.assertEqual((row["name"], row["schedule"]), (name, schedule))
            self.assertEqual(float(row["iteration_s"]), float(iteration))
            self.assertEqual(row["mfu"] or "nan", "nan" if mfu == "nan" else row["mfu"])
        self.assertGreater(len(mine), 10)

    @unittest.skipIf(SANITIZED == "1", "part: programs of others are not sanitized")
    def test_other_examples(self):
        command, results = str(self.only("/bin/pipecast")), str(self.destination / "results.h5")
        rows = list(csv.DictReader(io.StringIO(self.answer(command, "run", SCENARIO, "--set", "setting.trace=true", "-o", results,
                                                           "--format", "csv"))))
        said = self.answer(self.build_example("read_results.c"), results, "1").splitlines()
        self.assertEqual([line.split(", ")[0] for line in said[1:-1]], [row["name"] for row in rows])
        self.assertRegex(said[-1], "^peak of run 1: [0-9]+ B on stage [0-9]+ at [0-9]+ ps$")
        said = self.answer(self.build_example("judge_schedule.c"), "zb-h1", "8", "24").split()
        theirs = json.loads(self.answer(command, "schedule", "zb-h1", "-p", "8", "-m", "24", "--comm", "0.1", "--format", "json"))
        self.assertEqual([float(word.rstrip(",")) for word in said[1:2] + said[4:5] + said[6:]],
                         [round(theirs["span"], 4), round(theirs["bubble_rate_span"], 4), *theirs["peak_activation"]])

    @unittest.skipIf(SANITIZED == "1", "part: programs of others are not sanitized")
    @unittest.skipUnless(shutil.which("c++"), "no c++ on the path")
    def test_header_in_cpp(self):
        source = self.destination / "all.cc"
        source.write_text(IN_CPP)
        self.answer(self.build("c++", source, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic"))

    def test_documentation_shows_an_example(self):
        shown = f"<!-- run_scenario.c -->\n```c\n{(EXAMPLES / 'run_scenario.c').read_text()}```\n<!-- end of run_scenario.c -->\n"
        self.assertIn(shown, (ROOT / "docs/library.md").read_text())

    def test_interface(self):
        """What the header says is what was promised, of a few dozen functions, each with words and an example."""
        lines = interface_of(HEADER)
        if os.environ.get("PC_WRITE_GOLDEN"):
            ABI.write_text("\n".join(lines) + "\n")
        self.assertEqual(ABI.read_text().splitlines(), lines)
        self.assertLess(len([line for line in lines if "(" in line]), 80)
        text = HEADER.read_text()
        for line in lines:
            self.assertTrue(line.startswith("PIPECAST_") or re.match(r"(pipecast_|pc_version$)", name_of(line)), line)
            if "(" in line:
                in_words = [comment for comment in re.findall(r"/\*.*?\*/", text, flags=re.DOTALL) if name_of(line) + "(" in comment]
                self.assertTrue(in_words or self.has_sibling(text, name_of(line)), f"{line}: no example")

    @staticmethod
    def has_sibling(text, name):
        """Declared right behind another, with one comment for both."""
        return re.search(r";\nPC_PUBLIC [^;]*\b" + name + r"\(", text) is not None

    @unittest.skipUnless(shutil.which("nm"), "no nm on the path")
    def test_symbols(self):
        """The library gives out the functions that abi.txt lists, all of them and nothing else."""
        shown = self.answer("nm", "--dynamic", "--defined-only", "--format=posix", str(self.library / "libpipecast.so"))
        given = sorted(line.split()[0] for line in shown.splitlines() if not line.startswith(FOREIGN))
        self.assertEqual(given, sorted(name_of(line) for line in ABI.read_text().splitlines() if "(" in line))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
