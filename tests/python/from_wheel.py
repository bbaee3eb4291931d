"""Builds the wheel, installs it into venvs without compiler or library, and runs the package's tests there.

    from_wheel.py SOURCE_ROOT COMMAND

Every python3.N of the path from 3.9 on is tried. Exits with 77, which meson calls skipped, where what builds a wheel
(pip, and meson-python with what it needs) is not here and cannot be fetched.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT, COMMAND = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
# What has to be in each environment: nothing of the build, so that the package must stand alone.
CLEAN = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PIPECAST_LIBRARY", "LD_LIBRARY_PATH")}


def run(*arguments, **how):
    return subprocess.run(list(map(str, arguments)), capture_output=True, text=True, env=CLEAN, **how)


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def must(done, what):
    if done.returncode:
        print(done.stdout[-4000:], done.stderr[-4000:], sep="\n")
        sys.exit(f"{what} failed")
    return done


def pythons():
    """Interpreters of the path, one a version, the newest last."""
    found = {}
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for path in sorted(pathlib.Path(folder or ".").glob("python3*")):
            if not re.fullmatch(r"python3(\.\d+)?", path.name):
                continue
            done = run(path, "-c", "import sys, venv, ensurepip; print(*sys.version_info[:2])")
            version = tuple(map(int, done.stdout.split())) if done.returncode == 0 else (0, 0)
            if version >= (3, 9):
                found.setdefault(version, path)
    return [found[version] for version in sorted(found)]


def make_venv(python, folder):
    must(run(python, "-m", "venv", folder), f"{python} -m venv")
    return folder / "bin/python"


def build_wheel(python, folder):
    """By pip as a user would; the source is copied, for it may not be written to."""
    source = folder / "source"
    shutil.copytree(ROOT, source, symlinks=True, ignore=lambda at, names: [
        name for name in names if pathlib.Path(at) == ROOT and name.startswith(("build", ".git", "reproduced"))])
    done = run(python, "-m", "pip", "wheel", "--no-deps", "-w", folder / "wheel", source, timeout=3000)
    words = done.stdout + done.stderr
    if done.returncode and re.search(r"No matching distribution|Temporary failure|Connection|ConnectTimeout|Retrying", words):
        skip("the packages that build a wheel are not to be had")
    must(done, "pip wheel")
    wheels = list((folder / "wheel").glob("*.whl"))
    assert len(wheels) == 1, wheels
    return wheels[0]


def check_wheel(wheel):
    """For every CPython 3, of this platform, with everything inside."""
    assert re.fullmatch(r"pipecast-[\d.]+-py3-none-\w+\.whl", wheel.name), wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        library = [name for name in names if pathlib.Path(name).name.startswith("libpipecast")]
        assert len(library) == 1, names
        for part in ("py.typed", "abi.txt", "timeline.js", "view.css"):
            assert any(name.endswith("/pipecast/" + part) for name in names), part
        sources = {path.name for path in (ROOT / "python/pipecast").iterdir() if path.suffix in (".py", ".js", ".css")}
        assert sources <= {pathlib.Path(name).name for name in names}, sources


def test_wheel(python, wheel, folder):
    inside = make_venv(python, folder)
    must(run(inside, "-m", "pip", "install", "--no-index", "--no-deps", wheel), "pip install")
    empty = folder / "path"  # neither compiler nor gnuplot
    empty.mkdir()
    environment = {**CLEAN, "PATH": str(empty), "PC_COMMAND": str(COMMAND), "PC_SOURCE_ROOT": str(ROOT)}
    done = subprocess.run([inside, HERE / "run.py"], capture_output=True, text=True, env=environment, cwd=folder, timeout=900)
    print(f"{python}: {done.stderr.splitlines()[-1] if done.stderr else ''}", flush=True)
    must(done, f"the tests in {python}")


def main():
    found = pythons()
    if not found:
        skip("no python3 with venv and pip on the path")
    with tempfile.TemporaryDirectory(prefix="pipecast-wheel-") as name:
        folder = pathlib.Path(name)
        wheel = build_wheel(make_venv(found[-1], folder / "builder"), folder)
        check_wheel(wheel)
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
        for number, python in enumerate(found):
            test_wheel(python, wheel, folder / f"venv{number}")


main()
