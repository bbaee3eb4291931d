#!/usr/bin/env python3
"""Puts all that bench/gpu/session.py needs into one folder, to be carried to a machine with a GPU and little else.

pipecast and test_gpu are stripped; what they load beside the C library comes along. Prints every file with its bytes, the
sum, and the C library that the machine has to have at least.

usage: carry.py SOURCE_ROOT FOLDER PIPECAST TEST_GPU
"""
import pathlib
import re
import shutil
import subprocess
import sys

OF_THE_C_LIBRARY = ("linux-vdso", "ld-linux", "libc", "libm", "libdl", "libpthread", "librt")


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def further_libraries(program):
    """Of a program, the shared libraries that are not of the C library: name, path."""
    found = re.findall(r"^\s*(\S+) => (\S+)", output_of("ldd", program), re.M)
    return [(name, path) for name, path in found if name.split(".so")[0].split("-x86")[0] not in OF_THE_C_LIBRARY]


def c_library(files):
    """The newest version of the C library's symbols that a file asks for."""
    asked = [tuple(map(int, version.split("."))) for file in files
             for version in re.findall(r"\bGLIBC_(\d+\.\d+)", output_of("objdump", "-T", file))]
    return ".".join(map(str, max(asked)))


def carry(root, folder, programs):
    if folder.exists():
        shutil.rmtree(folder)
    (folder / "models").mkdir(parents=True)
    for program in programs:
        subprocess.run(["strip", "-o", folder / pathlib.Path(program).name, program], check=True)
        for name, path in further_libraries(program):
            shutil.copy(path, folder / name)
    binary = [path for path in folder.iterdir() if path.is_file()]
    for name in ("session.py", "torch_stage.py"):
        shutil.copy(root / "bench" / "gpu" / name, folder)
    for path in (root / "scenarios" / "models").glob("*.yaml"):
        shutil.copy(path, folder / "models")
    return c_library(binary)


def main(root, folder, *programs):
    folder = pathlib.Path(folder)
    version = carry(pathlib.Path(root), folder, programs)
    total = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        print(f"{path.stat().st_size:>12,}  {path.name}")
    print(f"{total:>12,}  bytes in all, models' files too; needs glibc {version} or later")
    print(f"on a machine with a GPU: python3 {folder.name}/session.py -o results")


if __name__ == "__main__":
    main(*sys.argv[1:])
