"""Traces as PyTorch's profiler writes them (Kineto), made of a run that pipecast simulated: what `pipecast export --to csv`
says, with noise, a clock of its own for every rank, and all that such a trace has beside passes and messages.

Only the standard library; a module of tests.
"""
import csv
import gzip
import json
import random


class Run:
    """The passes and transfers of a run, in picoseconds, from the lines of `export --to csv`."""

    def __init__(self, text):
        rows = list(csv.DictReader(text.splitlines()))
        self.passes = [row for row in rows if row["event"] == "pass"]
        self.transfers = [row for row in rows if row["event"] == "transfer"]
        for row in self.passes + self.transfers:
            for key in ("device", "to_device", "chunk", "microbatch", "start_ps", "end_ps"):
                row[key] = int(row[key]) if row[key] else None
        self.devices = 1 + max(row["device"] for row in self.passes)
        self.chunks = 1 + max(row["chunk"] for row in self.passes)


def torch_name(row, run, placement):
    part = row["chunk"] * run.devices + row["device"]
    if placement == "v" and row["chunk"] % 2:
        part = row["chunk"] * run.devices + run.devices - 1 - row["device"]
    return "PP:%d%s%d" % (part, {"F": "F", "B": "I", "W": "W", "BW": "B"}[row["kind"]], row["microbatch"])


def own_name(row, run, _placement):
    name = row["kind"][0] + str(row["microbatch"])
    return name + ".%d" % row["chunk"] if run.chunks > 1 else name


class Rank:
    """One rank's trace on its way to a file: events as text, so that a long one needs no memory."""

    def __init__(self, stream, rank, world, clock_ns):
        self.stream, self.rank, self.clock_ns, self.is_first = stream, rank, clock_ns, True
        head = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}],
                "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world, "pg_count": 3,
                                    "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl",
                                                   "pg_size": world, "ranks": list(range(world))}],
                                    "nccl_version": "2.21.5"},
                "cuda_runtime_version": 12040, "with_stack": 1, "record_shapes": 1,
                "trace_id": "6F2C5A1E7E3B4B7C8D", "displayTimeUnit": "ms", "baseTimeNanoseconds": 1727890914000000000}
        self.stream.write(json.dumps(head, indent=2)[:-2] + ',\n  "traceEvents": [')

    def add(self, **event):
        self.stream.write(("\n  " if self.is_first else ",\n  ") + json.dumps(event))
        self.is_first = False

    def time(self, time_ps):
        """Microseconds with three digits, as Kineto has them."""
        whole = time_ps // 1000 + self.clock_ns
        return Micros(whole)

    def complete(self, cat, name, process, thread, start_ps, end_ps, **arguments):
        start, end = start_ps // 1000 + self.clock_ns, end_ps // 1000 + self.clock_ns
        text = '{"ph": "X", "cat": %s, "name": %s, "pid": %s, "tid": %s, "ts": %d.%03d, "dur": %d.%03d, "args": %s}' % (
            json.dumps(cat), json.dumps(name), json.dumps(process), json.dumps(thread), start // 1000, start % 1000,
            (end - start) // 1000, (end - start) % 1000, json.dumps(arguments))
        self.stream.write(("\n  " if self.is_first else ",\n  ") + text)
        self.is_first = False

    def end(self):
        self.add(name="process_name", ph="M", ts=0, pid=0, tid=0, args={"name": "python"})
        self.add(name="Record Window End", ph="i", s="g", pid="", tid="", ts=1)
        self.stream.write('\n  ],\n  "traceName": "/tmp/trace.json"\n}\n')


class Micros(float):
    pass


def add_kernels(rank, random_state, count, start_ps, end_ps):
    """What lies beside a pass: operators, launches, kernels, arrows."""
    step = max((end_ps - start_ps) // max(count, 1), 1)
    for k in range(count):
        at = start_ps + k * step
        name = random_state.choice(["void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>(Params)",
                                    "flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>",
                                    "void at::native::vectorized_elementwise_kernel<4, at::native::\"gelu\\n\">(int)"])
        rank.complete("cpu_op", "aten::mm", 4242, 4242, at, at + step // 2, **{
            "External id": k, "Input Dims": [[4096, 8192], [8192, 1024]], "Input type": ["c10::BFloat16", ""], "Ev Idx": k})
        rank.complete("cuda_runtime", "cudaLaunchKernel", 4242, 4242, at, at + step // 4, correlation=k, cbid=211)
        rank.complete("kernel", name, 0, 7, at, at + step - step // 20, queued=0, device=0, context=1, stream=7,
                      correlation=k, registers_per_thread=234, grid=[132, 1, 1], block=[384, 1, 1],
                      **{"shared memory": 167936, "warps per SM": 12.5, "est. achieved occupancy %": 19})
        rank.add(ph="s", id=k, pid=4242, tid=4242, ts=1, cat="ac2g", name="ac2g")


def write_rank(path, run, device, *, name=own_name, placement="linear", iterations=1, scatter=0.0, clock_ns=0, kernels=3,
               bytes_sent=33554432, activation=0, held=0, seed=1, device_times=True, unpacked=None, ranks=None):
    """A trace of the stage; returns the durations of its passes, in ns, by (chunk, kind). Of every iteration the times are
    those of the run, each pass longer or shorter by what is drawn, and none begins earlier for it."""
    state = random.Random(seed * 1000 + device)
    period_ps = 2 * max(row["end_ps"] for row in run.passes) + 10**9
    ranks = ranks or list(range(run.devices))
    drawn = {}
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "wt", **({"compresslevel": 1} if opener is gzip.open else {})) as stream:
        rank = Rank(stream, ranks[device], len(ranks), clock_ns)
        for iteration in range(iterations):
            rank.complete("user_annotation", "ProfilerStep#%d" % (iteration + 3), 4242, 4242, iteration * period_ps,
                          (iteration + 1) * period_ps - 10**8)
            total = held
            for row in (row for row in run.passes if row["device"] == device):
                start, whole = row["start_ps"] + iteration * period_ps, row["end_ps"] - row["start_ps"]
                length = max(1000, round(whole * (1 + scatter * state.gauss(0, 1)))) // 1000 * 1000
                drawn.setdefault((row["chunk"], row["kind"]), []).append(length // 1000)
                label = name(row, run, placement)
                launch = start - 10**6 if device_times else start
                rank.complete("user_annotation", label, 4242, 4242, launch, launch + (whole // 3 if device_times else length))
                if device_times:
                    rank.complete("gpu_user_annotation", label, 0, 7, start, start + length, **{"External id": 77})
                    rank.complete("gpu_user_annotation", label, 0, 20, start + length // 2, start + length // 2 + 3000)
                add_kernels(rank, state, kernels, start, start + length)
                if activation:
                    change = {"F": activation, "B": -activation // 4, "W": -(activation - activation // 4),
                              "BW": -activation}[row["kind"]]
                    if iteration == 0 and total == held:
                        add_memory(rank, launch - 10**9, held, total)
                    for share in (change // 2, change - change // 2):
                        total += share
                        add_memory(rank, launch + whole // 9, share, total)
            for row in run.transfers:
                if device not in (row["device"], row["to_device"]):
                    continue
                is_sent, shift = row["device"] == device, iteration * period_ps
                start, end = row["start_ps"] + shift, row["end_ps"] + shift
                waits = 0 if is_sent else 10 * (end - start)  # who receives is there first, and waits
                rank.complete("kernel", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 0, 20,
                              start - waits, end, device=0, stream=20, dtype="BFloat16",
                              **{"Collective name": "send" if is_sent else "recv", "In msg nelems": bytes_sent // 2,
                                 "Out msg nelems": bytes_sent // 2, "Group size": 2, "Process Group Name": "5",
                                 "Process Group Description": "PIPELINE_GROUP",
                                 "Process Group Ranks": str([ranks[row["device"]], ranks[row["to_device"]]]),
                                 **({"Dst Rank": ranks[row["to_device"]]} if is_sent else
                                    {"Src Rank": ranks[row["device"]]})})
        rank.end()
    return drawn


def add_memory(rank, time_ps, change, total):
    when = time_ps // 1000 + rank.clock_ns
    text = ('{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 4242, "tid": 4242, "ts": %d.%03d, '
            '"args": {"Total Reserved": %d, "Total Allocated": %d, "Bytes": %d, "Addr": 140737, "Device Id": 0, '
            '"Device Type": 1}}') % (when // 1000, when % 1000, total + 1000, total, change)
    rank.stream.write(("\n  " if rank.is_first else ",\n  ") + text)
    rank.is_first = False
