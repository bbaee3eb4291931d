"""The documents for users are true: their commands print what they show, and what they point to is there.

README.md, CONTRIBUTING.md and docs/*.md. Commands: a console block is one, indented or fenced, with a line that begins
with `$ pipecast `. Those lines are run, document by document and in order, by a shell in a scratch folder with a link
to scenarios/, and what they print is compared with the lines that follow. A line of `...` stands for any lines, blanks
at the ends of lines do not count, and other lines that begin with `$ ` are passed over with what follows them. A fenced
block whose first line is `# file: NAME` is written there as NAME before. Where PC_WRITE_GOLDEN is set (to anything),
output that differs is written into the document, cut as it was cut; look at what changed before keeping it.

usage: test_docs.py PIPECAST SOURCE_ROOT [DOCUMENT...]
"""
import dataclasses
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from command import IS_QUICK  # noqa: E402

PIPECAST, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
DOCUMENTS = [ROOT / name for name in sys.argv[3:]] or [ROOT / "README.md", ROOT / "CONTRIBUTING.md",
                                                       *sorted((ROOT / "docs").glob("*.md"))]
SHOWN = DOCUMENTS  # those whose commands are run
if IS_QUICK and not sys.argv[3:]:  # whose commands take a moment
    SHOWN = [path for path in DOCUMENTS if path.name in ("guide.md", "results-format.md")]
CUT = "..."
ROOMS = ("engine", "models", "storage", "scenarios", "results", "calib", "kernels", "sweep", "api", "cli", "tests", "bench", "docs")


# ---- reading a document ----

@dataclasses.dataclass
class Block:
    """A code block: the number of its first line, its lines without indentation, and what stood before each."""
    line: int
    lines: list
    indent: str
    is_fenced: bool


@dataclasses.dataclass
class Command:
    """A line to run (continuation lines joined) and the lines that it is to print; both with their line numbers."""
    line: int
    text: str
    output_line: int
    output: list
    indent: str


def blocks_of(lines):
    """Fenced blocks, and indented ones: four blanks behind an empty line, to the next line with fewer."""
    blocks, at = [], 0
    while at < len(lines):
        fence = re.match(r"( *)(`{3,})", lines[at])
        first = at
        if fence:
            at += 1
            while at < len(lines) and lines[at].strip() != fence[2]:
                at += 1
            inside = [line.removeprefix(fence[1]) for line in lines[first + 1:at]]
            blocks.append(Block(first + 2, inside, fence[1], True))
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at].strip()):
                at += 1
            blocks.append(Block(first + 1, [line[4:] for line in lines[first:at]], "    ", False))
            at -= 1
        at += 1
    return blocks


def without_blank_ends(first, lines):
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    while lines and not lines[0].strip():
        first, lines = first + 1, lines[1:]
    return first, lines


def commands_of(block):
    """The commands of a console block, and what each is to print: all up to the next line that begins with `$ `."""
    starts = [i for i, line in enumerate(block.lines) if line.startswith("$ ")] + [len(block.lines)]
    commands = []
    for start, end in zip(starts, starts[1:]):
        last = start
        while block.lines[last].endswith("\\") and last + 1 < end:
            last += 1
        text = "\n".join(block.lines[start:last + 1])[2:]
        if text.startswith("pipecast "):
            first, output = without_blank_ends(last + 1, block.lines[last + 1:end])
            commands.append(Command(block.line + start, text, block.line + first, output, block.indent))
    return commands


def file_of(block):
    """The name of the file that a block shows, or None."""
    match = re.fullmatch(r"# file: ([\w.-]+)", block.lines[0]) if block.is_fenced and block.lines else None
    return match and match[1]


# ---- prose ----

WORDS_MAX = 40  # of a sentence


def paragraphs_of(lines):
    """The number of the first line of each paragraph or entry of a list, and its text: no code, no tables, no headings."""
    inside, out, is_fenced = None, [], False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        is_fence = text.startswith("```")
        is_fenced ^= is_fence
        is_entry = re.match(r"(?:[-*]|\d+\.) ", text) is not None
        is_code = is_fenced or is_fence or (line.startswith("    ") and not inside)
        if is_code or not text or is_entry or text[0] in "|<#!":
            inside = None
        if is_code or not text or text[0] in "|<#!":
            continue
        if not inside:
            inside = [number, ""]
            out.append(inside)
        inside[1] += text + " "
    return out


def sentences_of(lines):
    """Of each sentence the number of the line where its paragraph begins, and its words: what stands between backquotes is
    one, a number is none."""
    for number, text in paragraphs_of(lines):
        plain = re.sub(r"`[^`]*`", "`x`", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text))
        for sentence in re.split(r"(?<=[.!?:])[)*\"]*\s+(?=[A-Z`*(\"'])", plain):
            yield number, [word for word in sentence.split() if re.search(r"[A-Za-z`]", word)]


def comments_of(text):
    """Of each comment in C the number of its first line, and its lines; what stands indented, as tables do, is left out."""
    for match in re.finditer(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", text, re.S):
        if match[0][0] == "/":
            lines = [re.sub(r"^\s*(?:/\*+|//+|\*(?!/))", "", line).removesuffix("*/") for line in match[0].split("\n")]
            yield text.count("\n", 0, match.start()) + 1, ["" if line.startswith("   ") else line for line in lines]


# ---- comparing ----

def difference_in_place(first, piece, got):
    """None, or the number of the first expected line that is not there, and what is."""
    for i, text in enumerate(piece):
        if i >= len(got) or got[i] != text:
            return first + i, got[i] if i < len(got) else "(nothing more)"
    return None


def pieces_of(lines):
    """What stands between cuts: the number of each piece's first line, and its lines."""
    cuts = [-1] + [i for i, line in enumerate(lines) if line == CUT] + [len(lines)]
    return [(a + 1, lines[a + 1:b]) for a, b in zip(cuts, cuts[1:])]


def most_alike(piece, got, at):
    """Where in `got`, from `at` on, as many lines stand that are most like the piece's."""
    def likeness(place):
        texts = "\n".join(piece), "\n".join(got[place:place + len(piece)])
        return difflib.SequenceMatcher(None, *texts, autojunk=False).ratio()
    return max(range(at, max(at, len(got) - len(piece)) + 1), key=likeness)


def first_difference(expected, got):
    """None where `got` is as `expected` says; else the number of the expected line that is not there, and what is."""
    expected, got = [line.rstrip() for line in expected], [line.rstrip() for line in got]
    (first, head), *others = pieces_of(expected)
    wrong = difference_in_place(first, head, got)
    if wrong or not others:
        return wrong or ((len(head), got[len(head)]) if len(got) > len(head) else None)
    at = len(head)
    for first, piece in others[:-1]:
        places = [i for i in range(at, len(got) - len(piece) + 1) if got[i:i + len(piece)] == piece]
        if not places:
            return difference_in_place(first, piece, got[most_alike(piece, got, at):])
        at = places[0] + len(piece)
    first, tail = others[-1]
    return difference_in_place(first, tail, got[max(at, len(got) - len(tail)):])


def cut_as(expected, got):
    """New lines with the cuts of the old ones: of what stands between two cuts as many lines as there were, where they
    are most alike."""
    (_, head), *others = pieces_of([line.rstrip() for line in expected])
    if not others:
        return got
    made, at = got[:len(head)], len(head)
    for number, (_, piece) in enumerate(others):
        is_last = number == len(others) - 1
        place = max(at, len(got) - len(piece)) if is_last else most_alike(piece, got, at)
        made += ([CUT] if place > at or not piece else []) + got[place:place + len(piece)]
        at = place + len(piece)
    return made


def run(command, folder, environment):
    done = subprocess.run(command.text, shell=True, cwd=folder, env=environment, text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    _, lines = without_blank_ends(0, done.stdout.splitlines())
    return done.returncode, lines


def complaint(path, command, status, got):
    """None, or in words where the document says something else than what was printed."""
    shows_error = any(line.startswith("pipecast: ") for line in command.output)
    if status not in (0, 1) and not shows_error:
        return f"{path}:{command.line}: $ {command.text}: exit status {status}: {' / '.join(got)}"
    wrong = first_difference(command.output, got)
    if not wrong:
        return None
    number, instead = wrong
    expected = command.output[number] if number < len(command.output) else "(nothing more)"
    return f"{path}:{command.output_line + number}: $ {command.text}\n    expected: {expected}\n    got:      {instead}"


def run_document(path, folder, environment, write=False):
    """Runs a document's commands in a folder of their own. Returns complaints; with `write` mends the document."""
    lines, complaints, changes = path.read_text().splitlines(), [], []
    for block in blocks_of(lines):
        name = file_of(block)
        if name:
            pathlib.Path(folder, name).write_text("\n".join(block.lines) + "\n")
        for command in commands_of(block):
            status, got = run(command, folder, environment)
            wrong = complaint(path.name, command, status, got)
            if wrong and write and status in (0, 1):
                changes.append((command, cut_as(command.output, got)))
            elif wrong:
                complaints.append(wrong)
    for command, new in reversed(changes):
        first = command.output_line - 1
        lines[first:first + len(command.output)] = [(command.indent + line).rstrip() for line in new]
    if changes:
        path.write_text("\n".join(lines) + "\n")
    return complaints


# ---- links ----

def without_code(lines):
    """The lines with those of code blocks emptied, and without `code` in the line."""
    lines = list(lines)
    for block in blocks_of(lines):
        first = block.line - 1
        lines[first:first + len(block.lines)] = [""] * len(block.lines)
    return [re.sub(r"`[^`]*`", "", line) for line in lines]


def anchors_of(path):
    """The anchors that GitHub gives the headings of a document."""
    lines, anchors = path.read_text().splitlines(), {}
    code = {block.line - 1 + i for block in blocks_of(lines) for i in range(len(block.lines))}
    for i, line in enumerate(lines):
        heading = re.match(r"#{1,6} +(.*?)[ #]*$", line)
        if heading and i not in code:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            anchors[slug] = anchors.get(slug, -1) + 1
    return {slug if i == 0 else f"{slug}-{i}" for slug, last in anchors.items() for i in range(last + 1)}


def links_of(path):
    """The relative links and images of a document, with their line numbers."""
    for number, line in enumerate(without_code(path.read_text().splitlines()), 1):
        for target in re.findall(r"\]\(([^)\s]+)[^)]*\)|src=\"([^\"]+)\"", line):
            target = target[0] or target[1]
            if not re.match(r"[a-z]+:", target):
                yield number, target


def broken_link(path, target):
    """None, or what is wrong with a relative link."""
    file, _, anchor = target.partition("#")
    to = (path.parent / file).resolve() if file else path
    if not to.exists():
        return "no such file"
    if anchor and anchor not in anchors_of(to):
        return f"no such heading; expected one of {', '.join(sorted(anchors_of(to)))}"
    return None


# ---- the source ----

def named_paths(path):
    """Files of the source tree that a document names in code: with a folder in front and an ending."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for name in re.findall(rf"`((?:{'|'.join(ROOMS)})/[\w./-]+\.\w+)`", line):
            yield number, name


def named_functions(path):
    """Functions that a document names, with line and file: `name` (`folder/file.c`); and `pc_...` alone, file None."""
    text = path.read_text()
    for match in re.finditer(r"`(\w+)`\s\(`([\w./-]+\.[ch])`\)|`(pc_\w+)(?:\(\))?`", text):
        yield text.count("\n", 0, match.start()) + 1, match[1] or match[3], match[2]


def source_text():
    return "\n".join(file.read_text() for room in ROOMS for file in sorted((ROOT / room).rglob("*.[ch]")))


# ---- tables of the library ----

def rows_under(text, heading):
    """The rows of the first table below a heading, each of cells. `mpt-1b, 3b` are two rows, of whose cells each may be said for both."""
    part = text.split(f"\n{heading}\n")[1].split("\n#")[0]
    rows = []
    for line in re.search(r"^\|[-|]+\|\n((?:\|.*\n)+)", part, re.M)[1].splitlines():
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        first, *others = name.split(", ")
        names = [first] + [f"{first.rpartition('-')[0]}-{other}" for other in others]
        parts = [cell.split(", ") if cell.count(", ") == len(others) else [cell] * len(names) for cell in cells]
        rows += zip(names, *parts)
    return rows


def listed(kind):
    done = subprocess.run([PIPECAST, "list", kind, "--format", "json"], capture_output=True, text=True, check=True)
    return {entry["name"]: entry for entry in json.loads(done.stdout)}


# ---- the tests ----

class Documents(unittest.TestCase):
    def test_commands_print_what_the_documents_show(self):
        for path in SHOWN:
            with self.subTest(document=path.name), tempfile.TemporaryDirectory() as folder:
                work, programs = pathlib.Path(folder, "work"), pathlib.Path(folder, "bin")
                work.mkdir()
                programs.mkdir()
                (work / "scenarios").symlink_to(ROOT / "scenarios")
                (programs / "pipecast").symlink_to(PIPECAST)
                environment = os.environ | {"PATH": f"{programs}:{os.environ.get('PATH', '')}", "LC_ALL": "C.UTF-8"}
                complaints = run_document(path, work, environment, "PC_WRITE_GOLDEN" in os.environ)
                if complaints:
                    self.fail("\n" + "\n".join(complaints))

    def test_relative_links_point_to_something(self):
        broken = [f"{path.name}:{number}: {target}: {wrong}" for path in DOCUMENTS for number, target in links_of(path)
                  if (wrong := broken_link(path, target))]
        self.assertFalse(broken, "\n" + "\n".join(broken))

    def test_files_of_the_source_that_are_named_are_there(self):
        missing = [f"{path.name}:{number}: {name}: no such file" for path in DOCUMENTS
                   for number, name in named_paths(path) if not (ROOT / name).exists()]
        self.assertFalse(missing, "\n" + "\n".join(missing))

    def test_functions_that_are_named_are_there(self):
        source, missing = source_text(), []
        for path in DOCUMENTS:
            for number, name, file in named_functions(path):
                text = (ROOT / file).read_text() if file and (ROOT / file).exists() else source if not file else ""
                if not re.search(rf"\b{name}\b" + (r"\s*\(" if file else ""), text):
                    missing.append(f"{path.name}:{number}: {name}: not in {file or 'the source'}")
        self.assertFalse(missing, "\n" + "\n".join(missing))

    def test_the_page_of_reliability_is_its_records(self):
        page = subprocess.run([sys.executable, ROOT / "tests/reliability/page.py"], capture_output=True, text=True, check=True).stdout
        self.assertEqual((ROOT / "docs/reliability.md").read_text(), page)

    def test_the_tables_of_the_library_are_what_it_has(self):
        text = (ROOT / "docs/models-and-machines.md").read_text()
        models = [row[:6] for row in rows_under(text, "## Models")]
        self.assertEqual(sorted(models), sorted(
            (name, f"{model['parameters'] / 1e9:.2f}B", *(f"{model[key]:,}" for key in ("layers", "hidden", "heads", "seq_len")))
            for name, model in listed("models").items()))
        for kind in ("machines", "software"):
            names = [row[0] for row in rows_under(text, f"## {kind.capitalize()}")]
            self.assertEqual(sorted(names), sorted(listed(kind)))
        names = [row[0] for row in rows_under(text, "## GPUs")]
        self.assertEqual(sorted(names), sorted(path.stem for path in (ROOT / "scenarios/machines/gpus").glob("*.yaml")))

    def test_every_document_stands_in_the_index(self):
        index = (ROOT / "docs/README.md").read_text()
        left_out = [path.name for path in DOCUMENTS if path.parent.name == "docs" and path.name != "README.md"
                    and f"]({path.name})" not in index]
        self.assertFalse(left_out, f"docs/README.md does not link to {left_out}")


class Prose(unittest.TestCase):
    """What can be counted of plain English, and the README's promises."""

    def test_no_sentence_is_long(self):
        long = [f"{path.name}:{number}: {len(words)} words: {' '.join(words[:12])} ..."
                for path in [*DOCUMENTS, ROOT / "SECURITY.md", ROOT / "CHANGELOG.md"] if path.name != "reliability.md"
                for number, words in sentences_of(path.read_text().splitlines()) if len(words) > WORDS_MAX]
        self.assertFalse(long, "\n" + "\n".join(long))

    def test_no_sentence_of_a_comment_is_long(self):
        files = [path for room in ROOMS for ending in ("[ch]", "cu", "cuh", "def") for path in (ROOT / room).rglob(f"*.{ending}")]
        self.assertGreater(len(files), 500)
        long = [f"{path.relative_to(ROOT)}:{first + number - 1}: {len(words)} words: {' '.join(words[:12])} ..."
                for path in files for first, lines in comments_of(path.read_text())
                for number, words in sentences_of(lines) if len(words) > WORDS_MAX]
        self.assertFalse(long, "\n" + "\n".join(long))

    def test_the_readme_is_short_and_says_what_accuracy_says(self):
        readme, accuracy = (ROOT / "README.md").read_text(), (ROOT / "docs/accuracy.md").read_text()
        self.assertLess(len(readme.splitlines()), 120)
        for bar, row in (("SC'21, ten models, mean", "Megatron"), ("SC'21, worst", "Megatron"),
                         ("Korthikanti 22B and 175B, worst of four", "Korthikanti"),
                         ("Korthikanti 530B and 1T (looked at while fitting), worst of five", "Korthikanti"),
                         ("H100 scaling, worst of five", "GPT-3 175B"),
                         ("measured iterations on 64 to 256 A100 (vTrain, MICRO 2024), mean", "iterations on 64 to 256")):
            found = re.search(rf"^\| {re.escape(bar)} \| ([^|]+) \|", accuracy, re.M)[1]
            said = re.search(rf"^\| {re.escape(row)}.*$", readme, re.M)[0]
            self.assertIn(found, said, bar)


class Machinery(unittest.TestCase):
    """The parts above on small texts: they find what is wrong."""

    def test_cuts_stand_for_any_lines(self):
        got = ["a", "b ", "c", "d", "e"]
        for expected in (["a", "b", "c", "d", "e"], ["..."], ["a", "...", "e"], ["...", "c", "...", "e"],
                         ["...", "d", "e"], ["a", "b", "..."], ["a", "b", "c", "d", "e", "..."]):
            self.assertIsNone(first_difference(expected, got), expected)

    def test_differences_are_found_at_their_line(self):
        got = ["a", "b", "c"]
        for expected, wrong in ((["a", "x", "c"], (1, "b")), (["a", "b"], (2, "c")), (["...", "b"], (1, "c")),
                                (["a", "b", "c", "d"], (3, "(nothing more)")), ([], (0, "a")),
                                (["a", "...", "x", "...", "c"], (2, "b")),
                                (["a", "b", "c", "...", "c"], (4, "(nothing more)"))):
            self.assertEqual(first_difference(expected, got), wrong, expected)

    def test_new_lines_are_cut_as_the_old_ones(self):
        got = ["first", "second", "x = 2", "y = 3", "fifth", "last"]
        for old, new in ((["a", "..."], ["first", "..."]), (["...", "b"], ["...", "last"]), (["a", "b"], got),
                         (["...", "x = 2", "y = 9", "...", "z"], ["...", "x = 2", "y = 3", "...", "last"])):
            self.assertEqual(cut_as(old, got), new)
            self.assertIsNone(first_difference(new, got))

    def test_blocks_commands_and_files(self):
        text = ("x\n\n    $ pipecast a \\\n      -b\n\n    1\n    $ other\n    2\n\n"
                "y\n```yaml\n# file: m.yaml\nk: v\n```\n")
        indented, fenced = blocks_of(text.splitlines())
        (command,) = commands_of(indented)
        self.assertEqual((command.line, command.text, command.output_line, command.output),
                         (3, "pipecast a \\\n  -b", 6, ["1"]))
        self.assertEqual((file_of(fenced), fenced.line, file_of(indented)), ("m.yaml", 12, None))

    def test_comments_are_found(self):
        text = 'int a; /* One. Two\n        * and more. */\nchar *s = "/* none */";\n/*   table\n *\n * Behind it. */ // Last.'
        self.assertEqual([(first + number - 1, len(words)) for first, lines in comments_of(text)
                          for number, words in sentences_of(lines)], [(1, 1), (1, 3), (6, 2), (6, 1)])

    def test_a_document_that_is_wrong_is_told_and_mended(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "x.md")
            path.write_text("    $ pipecast a\n    one\n    ...\n    four\n")
            stand_in = pathlib.Path(folder, "pipecast")
            stand_in.write_text("#!/bin/sh\nprintf 'one\\ntwo\\nthree\\n'\n")
            stand_in.chmod(0o755)
            environment = os.environ | {"PATH": f"{folder}:{os.environ.get('PATH', '')}"}
            (wrong,) = run_document(path, folder, environment)
            self.assertEqual(wrong, "x.md:4: $ pipecast a\n    expected: four\n    got:      three")
            self.assertEqual(run_document(path, folder, environment, write=True), [])
            self.assertEqual(path.read_text(), "    $ pipecast a\n    one\n    ...\n    three\n")

    def test_links_and_anchors(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "x.md")
            path.write_text("# One `two`, three\n# Same\n# Same\n[a](#one-two-three) [b](#same-1) `[c](no.md)`"
                            " [d](no.md)\n[e](https://no.where) [f](x.md#nothing)\n")
            broken = [(number, target) for number, target in links_of(path) if broken_link(path, target)]
            self.assertEqual(broken, [(4, "no.md"), (5, "x.md#nothing")])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
