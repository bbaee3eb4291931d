"""`meson install` gives the command, the library with its headers, the manual page, the completion and the scenarios.

usage: test_install.py BUILD_ROOT SOURCE_ROOT HEADER...
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, ROOT, HEADERS = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]
FOLDERS = ("paper", "studies", "validation")


@unittest.skipUnless(shutil.which("meson"), "no meson on the path")
class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.destination = pathlib.Path(folder.name)
        done = subprocess.run(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--quiet"], capture_output=True, text=True,
                              env={**os.environ, "DESTDIR": folder.name}, timeout=120)
        assert done.returncode == 0, done

    def only(self, ending):
        """The one installed file whose path ends so."""
        found = [path for path in self.destination.rglob("*") if path.is_file() and str(path).endswith(ending)]
        self.assertEqual(len(found), 1, (ending, found))
        return found[0]

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

    @staticmethod
    def version(command):
        done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=120)
        return done.stdout.split()[1]

    def test_library_and_headers(self):
        self.only("/libpipecast.so." + self.version(self.only("/bin/pipecast")))
        for header in HEADERS:
            installed = self.only("/include/pipecast/" + header)
            self.assertEqual(installed.read_bytes(), (ROOT / header).read_bytes(), header)

    def test_manual_and_completion(self):
        self.assertEqual(self.only("/share/man/man1/pipecast.1").read_bytes(), (ROOT / "docs/man/pipecast.1").read_bytes())
        self.assertEqual(self.only("/share/bash-completion/completions/pipecast").read_bytes(),
                         (ROOT / "docs/completion/pipecast.bash").read_bytes())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
