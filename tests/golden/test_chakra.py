"""`export --to chakra`: traces that Chakra's schema reads, in which every send has its receive; and run as ASTRA-sim would, each
node when those it depends on are done, they take what pipecast says.

usage: test_chakra.py PIPECAST SOURCE_ROOT
"""
import csv
import pathlib
import sys
import tempfile
import unittest

import chakra
from command import run

GIVEN = """scenario: given
setting: {devices: 4, microbatches: 6, times: {F: 3 ms, B: 4 ms, W: 2 ms}, transfer: {time: 0.5 ms}, trace: true}
sweep: {schedule: [1f1b, zb-h1, 1f1b-interleaved, v-half, gems, seq-1f1b]}
"""
CLUSTER = """scenario: cluster
setting: {model: {from: llama3-8b}, machine: dgx-h100, tp: 2, pp: 4, dp: 1, global_batch: 8, trace: true, engine: events, schedule: 1f1b}
"""


class Chakra(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        keeper = tempfile.TemporaryDirectory()
        cls.addClassCleanup(keeper.cleanup)
        cls.folder = pathlib.Path(keeper.name)
        for name, text in (("given", GIVEN), ("cluster", CLUSTER)):
            (cls.folder / f"{name}.yaml").write_text(text)
            done = run("run", str(cls.folder / f"{name}.yaml"), "-q", "-o", str(cls.folder / f"{name}.h5"))
            assert done.returncode == 0, done.stderr

    def export(self, scenario, name, *options):
        done = run("export", str(self.folder / f"{scenario}.h5"), "--run", name, "--to", "chakra", "-o",
                   str(self.folder / "trace"), *options)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        return [chakra.read((self.folder / f"trace.{d}.et").read_bytes()) for d in range(4)]

    def rows(self, scenario, name):
        done = run("export", str(self.folder / f"{scenario}.h5"), "--run", name, "--to", "csv")
        return list(csv.DictReader(done.stdout.splitlines()))

    def check(self, files):
        """What a reader relies on."""
        sent, received = {}, {}
        for rank, (head, nodes) in enumerate(files):
            self.assertEqual((head["version"], head["attr"]["rank"]), ("0.0.4", rank))
            ids = {node["id"] for node in nodes}
            self.assertEqual(len(ids), len(nodes))
            for node in nodes:
                self.assertLessEqual(set(node["data_deps"]), ids)
                self.assertIs(node["attr"]["is_cpu_op"], False)
                if node["type"] == "COMP_NODE":
                    continue
                attr, ends = node["attr"], sent if node["type"] == "COMM_SEND_NODE" else received
                self.assertEqual(attr["comm_src" if ends is sent else "comm_dst"], rank)
                key = attr["comm_src"], attr["comm_dst"], attr["comm_tag"], attr["comm_size"]
                self.assertNotIn(key, ends)
                ends[key] = node
                self.assertGreater(attr["comm_size"], 0)
        self.assertEqual(set(sent), set(received))
        self.assertGreater(len(sent), 0)

    def replay(self, files, delay_us):
        """The end of the last pass: a node starts when those it depends on have ended, a receive ends with its send."""
        nodes = {(rank, node["id"]): node for rank, (_, list_) in enumerate(files) for node in list_}
        sends = {node["attr"]["comm_tag"]: key for key, node in nodes.items() if node["type"] == "COMM_SEND_NODE"}
        ends = {}

        def end_of(key):
            stack = [key]
            while stack:
                here = stack[-1]
                node, rank = nodes[here], here[0]
                needs = [(rank, need) for need in node["data_deps"]]
                if node["type"] == "COMM_RECV_NODE":
                    needs.append(sends[node["attr"]["comm_tag"]])
                missing = [need for need in needs if need not in ends]
                if missing:
                    self.assertLess(len(stack), len(nodes) + 1, "a circle")
                    stack += missing[:1]
                    continue
                start = max((ends[need] for need in needs), default=0)
                takes = {"COMP_NODE": node["attr"].get("duration_ps", 0) / 1e6, "COMM_SEND_NODE": delay_us,
                         "COMM_RECV_NODE": 0}[node["type"]]
                ends[here] = start + takes
                stack.pop()
            return ends[key]
        return max(end_of(key) for key in nodes if nodes[key]["type"] == "COMP_NODE")

    def test_given_times(self):
        for name in ("1f1b", "zb-h1", "1f1b-interleaved", "v-half", "gems", "seq-1f1b"):
            with self.subTest(name):
                files = self.export("given", "given." + name, "--message-size", "32MiB")
                self.check(files)
                passes = [row for row in self.rows("given", "given." + name) if row["event"] == "pass"]
                made = [node for _, nodes in files for node in nodes if node["type"] == "COMP_NODE"]
                self.assertEqual(len(made), len(passes))
                self.assertEqual({(node["attr"]["kind"], node["attr"]["microbatch"], node["attr"]["chunk"]) for node in made},
                                 {(row["kind"], int(row["microbatch"]), int(row["chunk"])) for row in passes})
                self.assertEqual({node["attr"]["comm_size"] for _, nodes in files for node in nodes
                                  if node["type"] != "COMP_NODE"}, {2**25})
                self.assertAlmostEqual(self.replay(files, 500), max(int(row["end_ps"]) for row in passes) / 1e6, places=3)

    def test_cluster_says_what_is_sent(self):
        """Activations of a microbatch of 8192 tokens by 4096 in bf16, of which tensor parallelism's two ranks have half."""
        files = self.export("cluster", "cluster.1f1b")
        self.check(files)
        sizes = {node["attr"]["comm_size"] for _, nodes in files for node in nodes if node["type"] != "COMP_NODE"}
        self.assertEqual(sizes, {8192 * 4096 * 2 // 2})

    def test_schema_of_python(self):
        """Where Python has protobuf the same bytes are read by a message that is made of the schema's fields."""
        try:
            from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
        except ImportError:
            self.skipTest("Python has no protobuf")
        kinds = {"v": 4, "s": 9, "p": 4, "m": 11, "d": 1}
        file = descriptor_pb2.FileDescriptorProto(name="et.proto", package="chakra", syntax="proto3")
        for title, known in (("AttributeProto", chakra.ATTRIBUTE), ("Node", chakra.NODE)):
            message = file.message_type.add(name=title)
            for number, (name, form) in known.items():
                message.field.add(name=name, number=number, type=kinds[form], label=3 if form in "pm" else 1,
                                  type_name=".chakra.AttributeProto" if form == "m" else None)
        pool = descriptor_pool.DescriptorPool()
        pool.Add(file)
        node_type = message_factory.GetMessageClass(pool.FindMessageTypeByName("chakra.Node"))
        self.export("given", "given.1f1b", "--message-size", "1MiB")
        data = (self.folder / "trace.1.et").read_bytes()
        _, nodes = chakra.read(data)
        at, read = 0, []
        while at < len(data):
            size, at = chakra.varint(data, at)
            read.append(data[at:at + size])
            at += size
        for raw, node in zip(read[1:], nodes):
            found = node_type.FromString(raw)
            self.assertEqual((found.id, found.name, list(found.data_deps), found.duration_micros),
                             (node["id"], node["name"], node["data_deps"], node["duration_micros"]))
            self.assertEqual(len(found.attr), len(node["attr"]))

    def test_refusals(self):
        path = str(self.folder / "given.h5")
        for arguments, says in ((["--run", "given.1f1b", "--to", "chakra"], "expected -o PREFIX"),
                                (["--to", "chakra", "-o", "x"], "expected --run RUN beside it"),
                                (["--run", "given.1f1b", "--to", "csv", "--message-size", "1MiB"], "expected --to chakra"),
                                (["--run", "given.1f1b", "--to", "chakra", "-o", "x", "--message-size", "1"], "no unit"),
                                (["--run", "given.1f1b", "--to", "chakra", "-o", str(self.folder / "y")],
                                 "does not say how many bytes go between stages")):
            done = run("export", path, *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(says, done.stderr)
        self.assertFalse((self.folder / "y.0.et").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
