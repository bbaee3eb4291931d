"""The manual page and the completion for bash: both know every command and option that `--help` tells of, and no other.
Those for zsh and fish offer the same.

usage: test_manual.py PIPECAST SOURCE_ROOT
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import with_h5py

PIPECAST, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
PAGE, COMPLETION = ROOT / "docs/man/pipecast.1", ROOT / "docs/completion/pipecast.bash"
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z0-9-]*")


def run(*arguments):
    return subprocess.run([PIPECAST, *arguments], capture_output=True, text=True, timeout=120)


def help_of(*command):
    done = run(*command, "--help")
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def commands():
    return re.findall(r"^  ([a-z]+) ", help_of(), re.MULTILINE)


def options_in_help(command):
    """What a command says of itself: its example lines are its own, what stands in backticks may be another's."""
    return set(OPTION.findall(re.sub(r"`[^`]*`", "", help_of(command)))) - {"--help", "-h"}


def is_known(command, option):
    """Whether the command takes it; nothing is done, since `--help` ends the reading of options."""
    word = option + ("=x" if option.startswith("--") else "x")
    before = ["fit"] if command == "profile" else []
    return "unknown option" not in run(command, *before, word, "--help").stderr


class Options(unittest.TestCase):
    def check(self, command, found, where):
        """All of the help's, and beside them only such as the command takes: long and short forms of the same."""
        wanted = options_in_help(command)
        self.assertEqual(wanted - found, set(), f"{where} lacks them")
        strangers = {option for option in found - wanted if not is_known(command, option)}
        self.assertEqual(strangers, set(), f"{where} has them, and pipecast {command} does not")


def page_sections(level):
    """Title to text of the page's sections (SH) or subsections (SS), as plain text."""
    text = re.sub(r'^\.\\".*\n', "", PAGE.read_text(), flags=re.MULTILINE)
    parts = re.split(rf"^\.{level} (.*)\n", text, flags=re.MULTILINE)[1:]
    return {title.strip('"'): body.split("\n.SH ")[0] for title, body in zip(parts[::2], parts[1::2])}


def plain(roff):
    return re.sub(r"\\f[A-Z]", "", re.sub(r"\\~", " ", roff)).replace("\\-", "-").replace('"', "")


class Manual(Options):
    def test_sections(self):
        self.assertEqual(list(page_sections("SH")),
                         ["NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "SCENARIOS", "EXIT STATUS", "FILES", "ENVIRONMENT",
                          "EXAMPLES", "SEE ALSO"])

    def test_commands(self):
        self.assertEqual(list(page_sections("SS")), ["pipecast " + command for command in commands()])
        synopsis = plain(page_sections("SH")["SYNOPSIS"])
        named = re.findall(r"^\.SY pipecast\n\.B ([a-z]+)$", synopsis, re.MULTILINE)
        self.assertEqual(named, commands())

    def test_options(self):
        for command in commands():
            with self.subTest(command):
                tags = re.findall(r"^\.TP\n(.*)\n", plain(page_sections("SS")["pipecast " + command]), re.MULTILINE)
                found = [option for tag in tags for option in OPTION.findall(tag)]
                self.assertEqual(len(found), len(set(found)), "an option stands twice")
                self.check(command, set(found), "the manual page")

    def test_options_that_the_text_speaks_of_exist(self):
        known = {option for command in commands() for option in options_in_help(command)} | {"--help", "--version", "-h", "-V"}
        text = plain(PAGE.read_text())
        self.assertEqual({option for option in OPTION.findall(re.sub(r"^\.\\.*$", "", text, flags=re.MULTILINE))
                          if option not in known and not any(is_known(command, option) for command in commands())}, set())

    def test_words_of_list(self):
        """What `list` takes stands in the page's line of it, in its section, and in the completion."""
        usage = help_of("list").split("\n\n")[0]
        words = [word for what in re.findall(r"pipecast list (\S+)", usage) for word in what.split("|")]
        synopsis = re.search(r"^\.B list\n\.BR (.*)$", page_sections("SH")["SYNOPSIS"], re.MULTILINE).group(1)
        self.assertEqual(synopsis.replace("\\:", "").split(" | "), words)  # where the line may break
        for word in words:
            self.assertRegex(page_sections("SS")["pipecast list"], rf"(?m)^\.BR? {word}( ,)?$")
        done = subprocess.run(["bash", "-c", f'source "{COMPLETION}"; cur=; _pipecast_operands list 0; echo "${{COMPREPLY[*]}}"'],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.stdout.split(), words)

    def test_version(self):
        version = run("--version").stdout.split()[1]
        self.assertIn(f'"pipecast {version}"', PAGE.read_text().splitlines()[1])

    def test_environment(self):
        """Every variable that the sources read by name."""
        read = {name for path in [*ROOT.glob("cli/*.c"), *ROOT.glob("calib/*/*.c"), *ROOT.glob("sweep/*.c"), *ROOT.glob("storage/*.c"), *ROOT.glob("results/*.c")]
                for name in re.findall(r'getenv\("([A-Z_]+)"\)', path.read_text())}
        self.assertEqual({name for name in read if name not in page_sections("SH")["ENVIRONMENT"]}, set())

    def test_example_scenario_runs(self):
        scenario = re.search(r"\.EX\n(.*?)\.EE", page_sections("SH")["SCENARIOS"], re.DOTALL).group(1)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "how_to_cut.yaml"
            path.write_text(plain(scenario))
            done = run("run", str(path), "--shard", "1/16", "--format", "csv")
        self.assertIn((done.returncode, done.stderr), [(0, ""), (1, "")])
        self.assertIn("plain.1f1b.tp4.pp8", done.stdout)

    def test_formatter_has_no_complaints(self):
        tools = [["mandoc", "-T", "lint", "-W", "warning"], ["groff", "-man", "-T", "utf8", "-ww", "-z"],
                 ["man", "--warnings", "-l"]]
        found = [tool for tool in tools if shutil.which(tool[0])]
        if not found:
            self.skipTest("none of mandoc, groff and man is installed")
        for tool in found:
            done = subprocess.run([*tool, str(PAGE)], capture_output=True, text=True, timeout=120,
                                  env={**os.environ, "MANPAGER": "cat", "LC_ALL": "C.UTF-8"})
            self.assertEqual((done.returncode, done.stderr), (0, ""))


class Shell(Options):
    def setUp(self):
        if not shutil.which("bash"):
            self.skipTest("no bash")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("a.yaml", "b.h5", "c d.h5", "e.csv", "f.svg", "g.txt"):
            (self.folder / name).touch()
        (self.folder / "sub").mkdir()

    def complete(self, *words):
        """What is offered for the last word: the lines of COMPREPLY."""
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pipecast; '
                  '((${#COMPREPLY[@]})) && printf "%s\\n" "${COMPREPLY[@]}"; true')
        done = subprocess.run(["bash", "--norc", "-u", "-c", script, "bash", str(COMPLETION), PIPECAST, *words],
                              capture_output=True, text=True, timeout=120, cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()


class Completion(Shell):
    def names(self, what, column=0):
        lines = run("list", what).stdout.splitlines()[what in ("models", "machines"):]
        return sorted({line.split()[column] for line in lines})

    def test_it_is_for_pipecast(self):
        done = subprocess.run(["bash", "--norc", "-c", f'source "{COMPLETION}"; complete -p pipecast'], capture_output=True,
                              text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "complete -F _pipecast pipecast\n", ""))

    def test_commands(self):
        self.assertEqual(self.complete(""), [*commands(), "help", "version", "--help", "--version", "-h", "-V"])
        self.assertEqual(self.complete("help", ""), commands())
        self.assertEqual(self.complete("help", "ca"), ["calibrate"])
        self.assertEqual(self.complete("help", "run", ""), [])
        self.assertEqual(self.complete("c"), ["compare", "calibrate"])
        self.assertEqual(self.complete("--v"), ["--version"])
        self.assertEqual(self.complete("simulate", "-"), [])

    def test_options(self):
        for command in commands():
            with self.subTest(command):
                found = self.complete(command, "-")
                self.assertEqual(len(found), len(set(found)))
                self.assertLessEqual({"--help", "-h"}, set(found))
                self.check(command, set(found), "the completion")

    def test_options_with_values_are_those_that_take_one(self):
        for command in commands():
            said = subprocess.run(["bash", "-c", f'source "{COMPLETION}"; pipecast="{PIPECAST}"; _pipecast_options {command}'], capture_output=True,
                                  text=True, timeout=120).stdout.split()
            before = ["fit"] if command == "profile" else []
            for option in said:
                name = option.rstrip("=")
                if name.startswith("--"):
                    takes_none = "takes no value" in run(command, *before, name + "=x", "--help").stderr
                    self.assertEqual(takes_none, not option.endswith("="), (command, name))

    def test_flags_are_of_the_table(self):
        """No option that stands for a key is written down in the completion."""
        text = COMPLETION.read_text()
        flags = [line.split()[0] for line in run("list", "keys", "--format", "flags").stdout.splitlines()]
        own = {"--microbatches=", "--chunks=", "--out-of-memory=", "--engine=", "--making=", "--goal=", "--robust=", "--jitter=", "--gpu-jitter=",
               "--slow-factor=", "--slow-stage=", "--samples=", "--times="}  # of `schedule`, too
        own |= {"--profile="}  # of `profile tune`, too
        self.assertGreater(len(flags), 30)
        self.assertEqual({flag for flag in flags if " " + flag in text} - own, set())

    def test_axes_are_those_of_the_planner(self):
        done = subprocess.run([PIPECAST, "plan", "--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "8", "--global-batch", "8",
                               "--map", "none,such"], capture_output=True, text=True, timeout=60)
        axes = done.stderr.split("expected one or two of ")[1].strip().split(", ")
        for option in ("--each", "--map"):
            self.assertEqual(self.complete("plan", option, ""), axes)
            self.assertEqual(self.complete("plan", option, "tp,p"), ["tp,precision", "tp,pp"])

    def test_values(self):
        for words, expected in [
            (["run", "--format", ""], ["table", "csv", "json"]),
            (["run", "--format", "=", "c"], ["csv"]),
            (["run", "--format", "="], ["table", "csv", "json"]),
            (["run", "a.yaml", "--format", "csv", "--jo"], ["--jobs"]),
            (["schedule", "--format", "t"], ["table", "text", "torch-csv"]),
            (["schedule", "--making", "p"], ["published"]),
            (["schedule", "--robust", ""], ["none", "mean", "p95"]),
            (["run", "--robust", "p"], ["p95"]),
            (["schedule", "--goal", ""], ["span", "makespan"]),
            (["plan", "--goal", ""], ["span", "makespan", "iteration"]),
            (["compare", "--format", "j"], ["json"]),
            (["run", "--recompute", "none,s"], ["none,selective", "none,selective-op"]),
            (["run", "--set", ""], []),
            (["run", "--set", "setting.tp", "=", ""], []),
            (["run", "--network", "f"], ["flows"]),
            (["plan", "--color", ""], ["auto", "always", "never"]),
            (["run", "--columns", "mfu,tok"], ["mfu,tokens_per_s_per_gpu"]),
            (["list", "m"], ["models", "machines"]),
            (["list", "keys", "--format", ""], ["table", "json", "markdown", "flags"]),
            (["list", "models", "--format", ""], ["table", "json"]),
            (["run", "--attention", "fl"], ["flash"]),
            (["run", "--engine", ""], ["auto", "events"]),
            (["plan", "--cross-entropy", ""], ["in-place", "plain", "fused", "chunked", "torch", "compiled"]),
            (["plan", "--layout", ""], ["even", "ends", "own", "balanced", "balanced-memory", "auto"]),
            (["run", "--tp", ""], []),
            (["figure", "--style", ""], ["points", "lines", "bars"]),
            (["export", "b.h5", "--to", "c"], ["chrome", "csv", "chakra"]),
            (["list", "models", ""], []),
            (["profile", ""], ["show", "fit", "tune", "compare"]),
            (["profile", "tune", "--parameters", "gemm,o"], ["gemm,overlap", "gemm,overhead"]),
            (["profile", "fit", "--link", "n"], ["nvlink", "network"]),
            (["compare", "--exit-code", "--a"], ["--all"]),
        ]:
            with self.subTest(words):
                self.assertEqual(self.complete(*words), expected)

    def test_columns_are_those_of_the_csv(self):
        """Those that are offered, beside `all`: a part of them."""
        _, *words = self.complete("run", "--columns", "")
        done = run("run", "--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "8", "--columns", ",".join(words), "--format", "csv")
        self.assertEqual((done.returncode, done.stdout.splitlines()[0]), (0, ",".join(words)), done)

    def test_names_are_those_that_list_has(self):
        *found, last, other = self.complete("run", "--schedule", "")  # files in the order of their folder
        self.assertEqual((found, {last, other}), (self.names("schedules"), {"sub", "e.csv"}))
        self.assertEqual(self.complete("plan", "--schedule", ""), self.names("schedules"))
        self.assertEqual(self.complete("run", "--model", "gpt3"), [n for n in self.names("models") if n.startswith("gpt3")])
        self.assertEqual(self.complete("run", "--machine", "=", "dgx-"),
                         [n for n in self.names("machines") if n.startswith("dgx-")])
        self.assertEqual(self.complete("run", "--schedule", "1f1b,zb-h"), ["1f1b,zb-h1", "1f1b,zb-h2"])
        self.assertEqual(self.complete("calibrate", "--gpu", "h"), [n for n in self.names("machines", 1) if n[0] == "h"])
        self.assertEqual(self.complete("schedule", "v-"), [n for n in self.names("schedules") if n.startswith("v-")])
        self.assertEqual(self.complete("schedule", "-p", "4", "v-m"), ["v-min"])  # -p's value is no operand

    def test_what_a_results_file_has(self):
        done = run("run", "--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "4", "--pp", "4", "--microbatches", "8",
                   "--schedule", "1f1b,zb-h1", "--trace", "true", "-o", str(self.folder / "r.h5"))
        self.assertEqual(done.returncode, 0, done)
        (self.folder / "sub/t.yaml").write_text(
            "scenario: t\nsetting: {devices: 2, microbatches: 2, schedule: 1f1b, trace: true, times: {F: 1 s, BW: 1 s}}\n"
            "figures: [{name: by-batch, title: Microbatches and time, x: microbatches, y: [iteration_s]}]\n")
        done = run("run", str(self.folder / "sub/t.yaml"), "-o", str(self.folder / "titled.h5"))
        self.assertEqual(done.returncode, 0, done)
        for words, expected in [
            (["figure", "r.h5", ""], ["flags/flags.1f1b", "flags/flags.zb-h1", "memory-kinds"]),
            (["figure", "r.h5", "memory-kinds", "--run", ""], ["flags/flags.1f1b", "flags/flags.zb-h1"]),
            (["figure", "r.h5", "links", "--run", ""], []),  # which none of them has
            (["export", "r.h5", "--run", "flags/flags.z"], ["flags/flags.zb-h1"]),
            (["figure", "r.h5", "--x", "microbatch"], ["microbatch_size", "microbatches"]),
            (["figure", "r.h5", "--x", "gpus", "--y", "mfu,hf"], ["mfu,hfu"]),
            (["figure", "b.h5", "--x", ""], []),  # which is none
            (["figure", "titled.h5", ""], ["t/by-batch", "t/t.1f1b"]),  # and none of the words of a title
            (["figure", "titled.h5", "Mi"], []),
        ]:
            with self.subTest(words):
                self.assertEqual(self.complete(*words), expected)

    @unittest.skipUnless(with_h5py.PYTHON, "no Python with h5py")
    def test_runs_that_have_links(self):
        done = run("run", "--model", "gpt3-1.3b", "--machine", "dgx-a100", "--gpus", "4", "--pp", "4", "--microbatches", "8",
                   "--schedule", "1f1b,zb-h1", "--trace", "true", "-o", str(self.folder / "sub/e.h5"))
        self.assertEqual(done.returncode, 0, done)
        with_h5py.add_engine(str(self.folder / "sub/e.h5"), 2)
        for words, expected in [
            (["figure", "sub/e.h5", ""], ["flags/flags.1f1b", "flags/flags.zb-h1", "links", "memory-kinds"]),
            (["figure", "sub/e.h5", "links", "--run", ""], ["flags/flags.zb-h1"]),
            (["export", "sub/e.h5", "--run", "2", "--to", "csv", "--table", "l"], ["levels", "links", "loads"]),
        ]:
            with self.subTest(words):
                self.assertEqual(self.complete(*words), expected)

    def test_files(self):
        for words, expected in [
            (["run", ""], ["a.yaml", "sub"]),
            (["run", "a.yaml", ""], ["a.yaml", "sub"]),
            (["figure", ""], ["b.h5", "c d.h5", "sub"]),
            (["export", "b"], ["b.h5"]),
            (["compare", "b.h5", ""], ["b.h5", "c d.h5", "sub"]),
            (["compare", "b.h5", "b.h5", ""], ["sub"]),  # traces
            (["compare", "--tolerance", "0.1", "b.h5", "c"], ["c d.h5"]),
            (["run", "-o", ""], ["b.h5", "c d.h5", "sub"]),
            (["figure", "b.h5", "-o", ""], ["f.svg", "sub"]),
            (["schedule", "e"], ["eager-1f1b", "e.csv"]),
            (["calibrate", "--replay", ""], ["a.yaml", "sub"]),
            (["run", "--profile", "b"], ["b.h5", "b200", "b300"]),
        ]:
            with self.subTest(words):
                self.assertEqual(sorted(self.complete(*words)), sorted(expected))


ZSH = """compadd() { shift $@[(i)--]; (( $# )) && print -rl -- "$@" }
words=("$@[2,-1]"); CURRENT=$#words; PREFIX=${(q)words[-1]}; fpath=($1 $fpath); autoload -U _pipecast; _pipecast"""


class OtherShells(Shell):
    """What they offer is what the completion for bash does, and folders end in a slash."""

    LINES = [["r"], [""], ["help", "ca"], ["schedule", "-"], ["run", "--format="], ["run", "--format=c"], ["run", "--format", "c"],
             ["list", "m"], ["run", "--recompute=none,s"], ["figure", ""], ["compare", "b.h5", ""], ["compare", "c"], ["compare", "--sort", ""],
             ["run", "--set", ""], ["run", "--model", "gpt3"], ["simulate", "-"], ["score", "--figure=sub/"]]

    def said_by_bash(self, words):
        done = subprocess.run(["bash", "--norc", "-u", str(COMPLETION), PIPECAST, *words], capture_output=True, text=True, timeout=120,
                              cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return sorted(done.stdout.splitlines())

    def test_bash_as_a_program(self):
        """As in the shell, but for folders, and `--name=value`, which bash takes apart and others do not."""
        for words in self.LINES:
            option, equals, value = words[-1].partition("=")
            is_split = option.startswith("--") and equals
            found = self.complete(*words[:-1], *([option, "=", value] if is_split else words[-1:]))
            expected = [name + "/" * (self.folder / name).is_dir() for name in found]
            self.assertEqual(self.said_by_bash(words), sorted(option + equals + name if is_split else name for name in expected))
        self.assertEqual(self.said_by_bash([]), [])

    def check_shell(self, shell, command):
        if not shutil.which(shell):
            self.skipTest("no " + shell)
        home = tempfile.TemporaryDirectory()  # fish writes there
        self.addCleanup(home.cleanup)
        for words in self.LINES:
            with self.subTest(words):
                done = subprocess.run(command(words), capture_output=True, text=True, timeout=120, cwd=self.folder,
                                      env={**os.environ, "HOME": home.name})
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(sorted(done.stdout.splitlines()), self.said_by_bash(words))

    def test_zsh(self):
        self.check_shell("zsh", lambda words: ["zsh", "-f", "-c", ZSH + "\ntrue", "zsh", str(COMPLETION.parent), PIPECAST, *words])

    def test_fish(self):
        line = 'source $argv[1]; complete -c $argv[2] -f -a "(__pipecast_offer)"; complete -C "$argv[2..]"'
        self.check_shell("fish", lambda words: ["fish", "--no-config", "-c", line, str(COMPLETION.with_suffix(".fish")), PIPECAST, *words])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
