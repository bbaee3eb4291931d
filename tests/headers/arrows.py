"""Rejects an include that runs against the order of the rooms: a room uses only what stands above it, and itself.

api/ and cli/ stand side by side: neither uses the other. The measuring program is the exception: calib/device/ reaches
kernels/, nothing else does, and kernels/ uses engine/ alone.
tests, bench and docs may include anything; nothing includes them. Within models each folder has its own arrows. An
include of the project's is written from the root, and a folder with sources that is not known here is a fault, so that
no file goes unseen.

usage: arrows.py SOURCE_ROOT
"""
import pathlib
import re
import sys

ROOMS = ["engine", "models", "storage", "scenarios", "calib", "kernels", "results", "sweep", "api", "cli", "python"]
# Of a room, the folders that one of its folders may include.
WITHIN = {
    "models": {
        "machine": {"machine"},
        "schedule": {"schedule"},
        "workload": {"workload", "schedule"},
        "cost": {"cost", "machine", "workload"},
        "training": {"training", "cost", "machine", "schedule", "workload"},
        "planner": {"planner", "training", "cost", "machine", "schedule", "workload"},
    },
    "calib": {
        "fit": {"fit"},
        "profile": {"profile", "fit"},
        "import": {"import", "profile", "fit"},
        "trace": {"trace"},
        "tune": {"tune"},
        "device": {"device", "profile", "fit"},
    },
}
ANYTHING = {"tests", "bench", "docs"}
GENERATED = {"results/build_hash.h", "sweep/team_build.h", "cli/version.h"}
SOURCES = {".c", ".h", ".cc", ".cu", ".cuh", ".in"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
NAMED_BY_BUILD = re.compile(r"@\w+@")  # in a template


def may_include(path, room):
    """Whether the file may include from that room."""
    own = path.parts[0]
    if room == own:
        return True
    if room == "kernels":
        return path.parts[:2] == ("calib", "device")
    if own == "kernels":
        return room == "engine"
    if (own, room) == ("cli", "api"):
        return False
    return room in ROOMS and ROOMS.index(room) < ROOMS.index(own)


def fault_of(root, path, name):
    """What is wrong with a file's include of `name`, or None."""
    room, parts = path.parts[0], pathlib.PurePath(name).parts
    if not (root / name).is_file() and name not in GENERATED and not NAMED_BY_BUILD.search(name):
        return f"{name} is no file, seen from the root"
    if room in ANYTHING:
        return None
    if not may_include(path, parts[0]):
        return f"{room} may not include {parts[0]}/"
    if room == parts[0] and room in WITHIN and parts[1] not in WITHIN[room][path.parts[1]]:
        return f"{room}/{path.parts[1]} may not include {room}/{parts[1]}/"
    return None


def faults_in(root, path):
    found = []
    for number, line in enumerate((root / path).read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        fault = match and fault_of(root, path, match.group(1))
        if fault:
            found.append(f"{path}:{number}: {fault}")
    return found


def sources(root):
    """Those of the project, not of its build folders."""
    for room in sorted(root.iterdir()):
        if not room.is_dir() or room.name.startswith((".", "build")):
            continue
        yield from (path.relative_to(root) for path in sorted(room.rglob("*")) if path.suffix in SOURCES)


def main(root):
    root = pathlib.Path(root)
    faults, seen = [], 0
    for path in sources(root):
        seen += 1
        within = WITHIN.get(path.parts[0])
        if path.parts[0] not in {*ROOMS, *ANYTHING} or within and path.parts[1] not in within:
            faults.append(f"{path}: its folder has no arrows")
        else:
            faults += faults_in(root, path)
    print(f"{seen} files", *faults, sep="\n")
    return 1 if faults or not seen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
