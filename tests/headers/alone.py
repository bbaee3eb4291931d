"""Does every header compile alone, with nothing in front of it and all warnings as errors?

Public headers (those that are installed) do in C and in C++ by the standard, without extensions; the others in what they
are written for: C with what the project is compiled with, or C++ where they include a header of that. A public header may
include public ones only: no other is there once it is installed.

usage: alone.py public|private c|c++ SOURCE_ROOT BUILD_ROOT PUBLIC_HEADER... -- COMPILER...
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

ROOMS = ("engine", "models", "storage", "scenarios", "results", "calib", "kernels", "sweep", "api", "cli", "tests", "bench")
FLAGS = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
STANDARDS = {("public", "c"): ["-std=c17", "-Wpedantic", "-Wshadow", "-Wstrict-prototypes"],
             ("public", "c++"): ["-std=c++17", "-Wpedantic", "-Wshadow"],
             ("private", "c"): ["-std=gnu17", "-Wshadow", "-Wstrict-prototypes", "-Wvla"],
             ("private", "c++"): ["-std=c++20", "-DPC_EMULATED", "-Wno-unknown-pragmas"]}
# Pieces of one other file, cut out of it because they differ by compiler.
PIECES = {"tests/emulated/tensor_core.h": "the host's half of kernels/cuda/tensor_core.cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)


def includes(root, header):
    """Pairs of mark (< or ") and name, those of the project's headers that it includes too."""
    found, waiting = set(), [header]
    while waiting:
        for mark, name in INCLUDE.findall((root / waiting.pop()).read_text()):
            if (mark, name) not in found and mark == '"' and (root / name).is_file():
                waiting.append(name)
            found.add((mark, name))
    return found


def is_cpp(root, header):
    """Of the C++ library a header has no `.h`."""
    return any(mark == "<" and "." not in name for mark, name in includes(root, header))


def outside_folders(build):
    """Where the headers of other projects are, as the build was told."""
    words = " ".join(entry["command"] for entry in json.loads((build / "compile_commands.json").read_text()))
    return sorted(set(re.findall(r"-(?:I|isystem\s*)(/\S+)", words)))


def not_installed(root, headers, compiler, language):
    """Outside headers that the compiler does not find: CUDA's, where there is none."""
    names = sorted({name for header in headers for mark, name in includes(root, header) if mark == "<"})
    asked = "".join(f"#if !__has_include(<{name}>)\nabsent {name}\n#endif\n" for name in names)
    said = subprocess.run([*compiler, "-x", language, "-E", "-P", "-"], input=asked, capture_output=True,
                          text=True, check=True).stdout
    return {line.split()[1] for line in said.splitlines() if line.startswith("absent ")}


def private_headers(root, language, public):
    headers = [str(path.relative_to(root)) for room in ROOMS for path in sorted((root / room).rglob("*.h"))]
    return [header for header in headers
            if header not in public and header not in PIECES and is_cpp(root, header) == (language == "c++")]


def compile_alone(root, build, header, compiler, language, flags):
    """What the compiler says, or nothing. Outside headers are not ours to warn about."""
    done = subprocess.run([*compiler, "-x", language, *flags, *FLAGS, "-I", root, "-I", build, "-I", build / "cli",
                           "-include", root / header,
                           root / "tests/headers/empty.c"], capture_output=True, text=True)
    return f"{header} does not compile alone in {language}:\n{done.stderr}" if done.returncode else None


def main(which, language, root, build, *rest):
    root, build = pathlib.Path(root), pathlib.Path(build)
    public, compiler = rest[:rest.index("--")], list(rest[rest.index("--") + 1:])
    compiler += [word for folder in outside_folders(build) for word in ("-isystem", folder)]
    headers = public if which == "public" else private_headers(root, language, public)
    faults = [f"{header} is installed and includes {name}, which is not" for header in public
              for mark, name in sorted(includes(root, header)) if mark == '"' and name not in public]
    absent = not_installed(root, headers, compiler, language)
    skipped = [header for header in headers if absent & {name for _, name in includes(root, header)}]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        done = pool.map(lambda header: compile_alone(root, build, header, compiler, language,
                                                     STANDARDS[which, language]),
                        [header for header in headers if header not in skipped])
        faults += [fault for fault in done if fault]
    print(f"{len(headers) - len(skipped)} headers, left out for what they include: {', '.join(skipped) or 'none'}")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
