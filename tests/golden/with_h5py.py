"""Changes and looks at HDF5 files through h5py, which Debian has for its own Python alone: that need not be the first one
on the path."""
import atexit
import json
import subprocess

# One process does all: to start Python and load h5py takes longer than most of the work.
WORKER = """
import contextlib, io, json, sys, traceback
import h5py
answers = sys.stdout
print("ready", flush=True)
for line in sys.stdin:
    path, mode, code = json.loads(line)
    said, fault = io.StringIO(), ""
    try:
        with contextlib.redirect_stdout(said), h5py.File(path, mode) as f:
            exec(code, {"h5py": h5py, "sys": sys, "f": f})
    except BaseException:
        fault = traceback.format_exc()
    print(json.dumps([said.getvalue(), fault]), file=answers, flush=True)
"""


def start():
    """The name of a Python that has h5py, and the process that works with it; None where there is none."""
    for name in ("python3", "/usr/bin/python3"):
        process = subprocess.Popen([name, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True)
        if process.stdout.readline() == "ready\n":
            atexit.register(process.communicate)
            return name, process
        process.communicate()
    return None, None


PYTHON, PROCESS = start()


def work_on(path, code, mode="r+"):
    """Runs `code` with the open file as `f`, and returns what it prints."""
    PROCESS.stdin.write(json.dumps([str(path), mode, code]) + "\n")
    PROCESS.stdin.flush()
    said, fault = json.loads(PROCESS.stdout.readline())
    assert not fault, fault
    return said


ADD_ENGINE = """
t = f['traces/%s']
number = lambda name: [int(x) for x in t['transfer_' + name]]
sent = sorted(zip(number('start_ps'), number('end_ps'), number('from'), number('to'), number('microbatch')))
pairs = sorted({s[2:4] for s in sent})
links = len(pairs) + 2  # and the NICs of stage 0, both ways, where nothing is shared
last = max(int(x) for x in t['pass_end_ps'])
flows = [(start, end, 0, a, b, 0, m, pairs.index((a, b)), -1, 40000.) for start, end, a, b, m in sent]
flows += [(last, last + 10**6, 3, 0, 0, 0, -1, links - 2, links - 1, 50000.),
          (last, last + 10**5, 5, 1, 0, -1, -1, -1, -1, 0.),  # takes a given time, over no link
          (last + 5 * 10**5, last + 2 * 10**6, 4, 0, 0, -1, -1, links - 2, links - 1, 30000.)]
times = sorted({x for flow in flows for x in flow[:2]})
loads, load = [], [0.] * links
for time in times:
    for link in range(links):
        now = sum(flow[9] / ((flow[1] - flow[0]) * 1e-12) for flow in flows
                  if link in flow[7:9] and flow[0] <= time < flow[1])
        if now != load[link]: loads.append((link, time, now))
        load[link] = now
devices = int(t.attrs['devices'])
queue = [max(0, int(x) - 1000 * (i %% 7)) for i, x in enumerate(t['pass_start_ps'])]
columns = dict(
    link_replica=[0] * links, link_device=[a for a, b in pairs] + [0, 0], link_peer=[b for a, b in pairs] + [-1, -1],
    link_sort=[0] * len(pairs) + [2, 2], link_is_in=[0] * (links - 1) + [1], link_shared=[1] * len(pairs) + [0, 0],
    link_bytes_per_s=[5e10] * links,
    load_link=[x[0] for x in loads], load_time_ps=[x[1] for x in loads], load_bytes_per_s=[x[2] for x in loads],
    flow_sort=[x[2] for x in flows], flow_replica=[0] * len(flows), flow_from=[x[3] for x in flows],
    flow_to=[x[4] for x in flows], flow_chunk=[x[5] for x in flows], flow_microbatch=[x[6] for x in flows],
    flow_out=[x[7] for x in flows], flow_in=[x[8] for x in flows], flow_bytes=[x[9] for x in flows],
    flow_ready_ps=[max(0, x[0] - 100) for x in flows], flow_start_ps=[x[0] for x in flows],
    flow_end_ps=[x[1] for x in flows], flow_alone_ps=[1800000] * len(flows),
    queue_ready_ps=queue,
    memory_device=[d for d in range(devices) for i in range(3)], memory_time_ps=[0, 10**6, 10**7] * devices,
    memory_bytes=[2**30, 3 * 2**30, 2**30] * devices, memory_capacity_bytes=[2**32, 0] * (devices // 2),
    work_sort=[0] * devices + [1], work_replica=[0] * (devices + 1), work_device=list(range(devices)) + [0],
    work_start_ps=[last] * devices + [last + 10**6], work_end_ps=[last + 10**6] * devices + [last + 2 * 10**6])
names = {'link_sort': 'stages domain nic uplink', 'flow_sort': 'message tensor gather reduce tied loss norm',
         'work_sort': 'optimizer overhead'}
if 'engine' in t: del t['engine']
g = t.create_group('engine')
g.attrs['event_count'] = 7
for name, values in columns.items():
    kind = 'f8' if name.endswith('bytes_per_s') or name == 'flow_bytes' else 'i8'
    if name in names:
        kind = h5py.enum_dtype({word: i for i, word in enumerate(names[name].split())}, basetype='u1')
    g.create_dataset(name, data=values, dtype=kind)
"""


def add_engine(path, run):
    """Gives the trace of that run, of an even number of stages, what the engine might have seen, from its transfers:
    messages of 40 kB, each over the link of its stages, and at the end two flows of gradients over the NICs of stage 0."""
    work_on(path, ADD_ENGINE % run)
