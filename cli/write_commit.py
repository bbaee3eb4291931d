"""Run by `meson dist`: a tarball knows its commit, since there is no git where it is unpacked.

usage: write_commit.py, with MESON_PROJECT_DIST_ROOT and MESON_PROJECT_SOURCE_ROOT in the environment
"""
import os
import pathlib
import subprocess

described = subprocess.run(["git", "describe", "--always", "--abbrev=12", "HEAD"], capture_output=True, text=True, check=True,
                           cwd=os.environ["MESON_PROJECT_SOURCE_ROOT"])
pathlib.Path(os.environ["MESON_PROJECT_DIST_ROOT"], "cli/commit.txt").write_text(described.stdout)
