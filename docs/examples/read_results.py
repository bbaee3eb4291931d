#!/usr/bin/env python3
"""Prints the MFU of all runs of a results file, and the peak of activation memory of one run that kept its trace.

usage: read_results.py RESULTS.h5 RUN
"""
import sys

import h5py

with h5py.File(sys.argv[1]) as f:
    assert f.attrs["format"] == "pipecast-results" and f.attrs["format_version"] == 1
    runs = f["runs"]  # a dataset a column, a row a run
    print("run, MFU [%s]" % runs["mfu"].attrs["unit"])
    for name, mfu in zip(runs["name"].asstr(), runs["mfu"]):
        print("%s, %.17g" % (name, mfu))  # nan: not defined

    trace = f["traces"][sys.argv[2]]
    level = trace["level_bytes"]
    peak = level[:].argmax()  # the first of them, where several are as high
    print("peak of run %s: %d %s on stage %d at %d %s" % (
        sys.argv[2], level[peak], level.attrs["unit"], trace["level_device"][peak],
        trace["level_time_ps"][peak], trace["level_time_ps"].attrs["unit"]))
