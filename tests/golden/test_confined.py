"""A scenario is data: what it names cannot leave its folder, unless the user says so. What the user names is free.

usage: test_confined.py PIPECAST SOURCE_ROOT
"""
import os
import pathlib
import shutil
import unittest

from command import Command, ROOT, count, run

CLUSTER = "scenario: x\nsetting:\n  model: {{from: {model}}}\n  machine: {machine}\n{more}  gpus: 8\n  tp: 1\n  pp: 8\n  schedule: 1f1b\n"
PARTS = ROOT / "tests/data/scenarios/good/parts"
HINT = "; expected a file in it, or the option --allow-outside\n"


class Confined(Command):
    """home/scenario.yaml in a folder of its own; beside it, in elsewhere/, files that it may not see."""

    def setUp(self):
        super().setUp()
        self.home, self.elsewhere = pathlib.Path(self.path("home")), pathlib.Path(self.path("elsewhere"))
        for folder in (self.home / "parts", self.elsewhere):
            shutil.copytree(PARTS, folder)
        self.refused_count = 0

    def write(self, model="parts/tiny.yaml", machine="dgx-h100", more="", name="scenario.yaml", quote=True):
        path = self.home / name
        as_text = (lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"') if quote else str
        path.write_text(CLUSTER.format(model=as_text(model), machine=as_text(machine), more=more))
        return str(path)

    def refused(self, key, line, path, *arguments, command=("run",)):
        """One line: where, which key, what; nothing of what stands in the file."""
        done = run(*command, path, *arguments)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done)
        self.assertIn(f"{path}:{line}: {key}: ", done.stderr)
        self.assertTrue(done.stderr.endswith(HINT), done.stderr)
        self.assertIn(": leads out of the folder ", done.stderr)
        self.refused_count += 1

    def tearDown(self):
        count("security.references_refused", self.refused_count)
        super().tearDown()

    def test_within(self):
        """Down, up again without leaving, absolute, and through links that stay."""
        os.symlink("parts", self.home / "link")
        os.symlink(self.home / "parts/tiny.yaml", self.home / "straight.yaml")
        for model in ("parts/tiny.yaml", "./parts/../parts//tiny.yaml", str(self.home / "parts/tiny.yaml"), "link/tiny.yaml",
                      "link/../parts/tiny.yaml", "./straight.yaml", "../home/parts/tiny.yaml"):
            with self.subTest(model=model):
                self.good("run", self.write(model))
        self.good("run", self.write(machine="parts/own-machine.yaml"))
        self.good("run", os.path.relpath(self.write(machine="parts/own-machine.yaml"), os.getcwd()))
        self.good("run", "scenario.yaml", cwd=self.home)
        os.symlink(self.home, self.path("door"))
        self.good("run", self.path("door/scenario.yaml"))

    def ways_out(self):
        os.symlink(self.elsewhere, self.home / "out")
        os.symlink("../elsewhere/tiny.yaml", self.home / "out.yaml")
        os.symlink("out.yaml", self.home / "twice.yaml")
        outside = str(self.elsewhere / "tiny.yaml")
        return ["../elsewhere/tiny.yaml", outside, "/" + outside, "//" + outside, "parts/../../elsewhere/tiny.yaml", "out/tiny.yaml",
                "./out.yaml", "./twice.yaml", "out/../elsewhere/tiny.yaml", ".//..//elsewhere/tiny.yaml", "../home-2/tiny.yaml",
                "../" * 40 + "etc/passwd", "/etc/passwd", "/dev/zero", "/proc/self/environ", "../../nothing/there.yaml", "/..", "..//",
                "parts/" + "../" * 90 + "x.yaml", "a/" * 60 + "../" * 61 + "x.yaml"]

    def test_out(self):
        shutil.copytree(self.elsewhere, self.path("home-2"))
        for path in self.ways_out():
            with self.subTest(path=path):
                self.refused("setting.model.from", 3, self.write(path))
                self.refused("setting.machine", 4, self.write(machine=path))
                self.refused("setting.profile", 5, self.write(more=f'  profile: "{path}"\n'))
                self.refused("setting.model.from", 3, self.write(path), command=("plan",))

    def test_longer_than_a_path_may_be(self):
        """Links whose names add up to more than a path may have: the kernel goes on where realpath() gives up."""
        first, second = ["d" * 200] * 10, ["e" * 200] * 11
        folder = os.open(self.home, os.O_RDONLY)
        os.symlink("/".join(first), "L", dir_fd=folder)
        for names, link, target in ((first, "M", "/".join(second)), (second, "out", self.elsewhere)):
            for name in names:
                os.mkdir(name, dir_fd=folder)
                inner = os.open(name, os.O_RDONLY, dir_fd=folder)
                os.close(folder)
                folder = inner
            os.symlink(target, link, dir_fd=folder)
        os.close(folder)
        self.assertTrue((self.home / "L/M/out/tiny.yaml").exists())
        self.refused("setting.model.from", 3, self.write("L/M/out/tiny.yaml"))

    def test_out_from_here(self):
        """A scenario in the current folder has no folder in its name."""
        self.write("../elsewhere/tiny.yaml")
        done = run("run", "scenario.yaml", cwd=self.home)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("scenario.yaml:3: setting.model.from: ../elsewhere/tiny.yaml: leads out of the folder .;", done.stderr)

    def test_other_places(self):
        """In sweeps, cases, plans, bad days, and in the files that a scenario names."""
        out = "../elsewhere/own-machine.yaml"
        path = self.write()
        text = pathlib.Path(path).read_text()
        for more, key, line in ((f"sweep:\n  machine: [dgx-a100, {out}]\n", "sweep.machine[1]", 10),
                                (f"cases:\n  - {{name: a, machine: {out}}}\n", "cases[0].machine", 10)):
            pathlib.Path(path).write_text(text + more)
            done = run("run", path)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done)
            self.assertIn(f"leads out of the folder {self.home}", done.stderr)
            self.assertTrue(done.stderr.endswith(HINT), done)
            self.refused_count += 1
        for name, text in (("from.yaml", "machine: a\nsource: x\nfrom: ../elsewhere/own-machine.yaml\n"),
                           ("gpu.yaml", "machine: a\nsource: x\nfrom: dgx-h100\ngpu: ../elsewhere/own-gpu.yaml\n"),
                           ("parts/up.yaml", "machine: b\nsource: x\nfrom: ../../elsewhere/own-machine.yaml\n"),
                           ("deep.yaml", "machine: a\nsource: x\nfrom: parts/up.yaml\n")):
            (self.home / name).write_text(text)
            done = run("run", self.write(machine="./" + name))
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done)
            self.assertIn("leads out of the folder", done.stderr)
            self.refused_count += 1

    def test_zero_byte(self):
        """Nothing behind a NUL is read, and nothing outside: whatever YAML makes of one."""
        for text in ('"parts/tiny.yaml\\0/../../../elsewhere/tiny.yaml"', '"../elsewhere/tiny.yaml\\0parts"'):
            path = self.write()
            pathlib.Path(path).write_text(pathlib.Path(path).read_text().replace('"parts/tiny.yaml"', text))
            done = run("run", path)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done)

    def test_allowed(self):
        for path in ("../elsewhere/tiny.yaml", str(self.elsewhere / "tiny.yaml")):
            self.good("run", "--allow-outside", self.write(path))
        self.good("run", self.write(machine="../elsewhere/thinner.yaml"), "--allow-outside")
        plan = self.good("plan", self.write("../elsewhere/tiny.yaml"), "--allow-outside",
                         "--set", "setting.global_batch=16", "--top", "1", "--format", "json")
        self.assertIn(" --allow-outside ", plan)

    def test_users_word(self):
        """Options and --set may name any file; what that file names stays in its folder, or in the scenario's."""
        path, machine = self.write(), str(self.elsewhere / "own-machine.yaml")
        self.good("run", path, "--machine", machine)
        self.good("run", path, "--set", f"setting.machine={machine}")
        self.good("run", "--model", "gpt3-1.3b", "--machine", "../elsewhere/thinner.yaml", "--gpus", "8", "--pp", "8", cwd=self.home)
        climber = self.elsewhere / "climber.yaml"
        climber.write_text("machine: a\nsource: x\nfrom: ../home/parts/own-machine.yaml\n")
        done = run("run", path, "--machine", str(climber))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("leads out of the folder", done.stderr)
        self.good("run", path, "--machine", str(climber), "--allow-outside")
        inside = self.home / "parts/inside.yaml"
        (self.home / "base.yaml").write_text("machine: c\nsource: x\nfrom: dgx-h100\n")
        inside.write_text("machine: b\nsource: x\nfrom: ../base.yaml\n")
        self.good("run", path, "--machine", str(inside))

    def test_label(self):
        """Beside given times a machine is but a name: nothing is opened, and nothing refused."""
        path = self.home / "label.yaml"
        path.write_text("scenario: x\nsetting:\n  machine: ../elsewhere/own-machine.yaml\n  devices: 2\n  microbatches: 2\n"
                        "  schedule: 1f1b\n  times: {F: 1 ms, B: 1 ms, W: 1 ms}\n")
        self.good("run", str(path))


if __name__ == "__main__":
    unittest.main(argv=["test_confined.py"], verbosity=2)
