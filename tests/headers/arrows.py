"""Rejects an include that runs against the arrows: cli -> {scenarios, calib -> results} -> models -> engine.

calib writes files and figures with what results has for that. kernels is reached from calib only; tests and bench may include anything; nothing includes them.
"""
import pathlib
import re
import sys

ALLOWED = {
    "engine": {"engine"},
    "models": {"models", "engine"},
    "scenarios": {"scenarios", "models", "engine"},
    "results": {"results", "models", "engine"},
    "calib": {"calib", "kernels", "results", "models", "engine"},
    "kernels": {"kernels", "engine"},
    "cli": {"cli", "scenarios", "results", "calib", "models", "engine"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"/]+)/')


def main(root):
    faults = []
    for room, allowed in ALLOWED.items():
        for path in sorted(pathlib.Path(root, room).rglob("*")):
            if path.suffix not in {".c", ".h", ".cc", ".cu", ".cuh"}:
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                if match and match.group(1) not in allowed:
                    faults.append(f"{path}:{number}: {room} may not include {match.group(1)}/")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
