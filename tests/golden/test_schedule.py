"""`pipecast schedule` from outside: what it prints, draws and refuses.

Where PC_WRITE_GOLDEN is set (to anything), the golden files of schedules are written instead of compared; look at what
changed before keeping it.

usage: test_schedule.py PIPECAST SOURCE_ROOT
"""
import json
import os
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
from command import GOLDEN, MORE, PASSES, ROOT, SEARCHED, SLICED, Command, run, full_only  # noqa: E402


class Schedule(Command):
    def file(self, name, text):
        path = self.path(name)
        pathlib.Path(path).write_text(text)
        return path

    def test_json_has_the_fields_of_the_interface(self):
        text = self.good("schedule", "1f1b", "-p", "8", "-m", "24", "--times", "18.522,18.086,9.337", "--comm", "0.601",
                         "--format", "json")
        answer = json.loads(text)
        self.assertEqual(
            list(answer),
            ["name", "devices", "microbatches", "chunks", "placement", "span", "makespan", "bubble_rate_span",
             "bubble_rate_makespan", "bound", "gap", "optimal", "interval", "interval_microbatches", "repeating_bubble",
             "idle_per_microbatch", "peak_activation", "max_peak_activation", "generate_s", "replay_s", "trace_hash", "engine",
             "goal", "block"])
        self.assertEqual(round(answer["bubble_rate_span"], 4), 0.2431)
        # What the authors' public generator gives for these times, in its microseconds: 1456749.
        self.assertEqual(answer["span"], 1456.749)
        self.assertEqual(answer["peak_activation"], [8, 7, 6, 5, 4, 3, 2, 1])
        self.assertEqual((answer["devices"], answer["microbatches"], answer["chunks"], answer["placement"]),
                         (8, 24, 1, "linear"))

    def test_bound_is_the_span_of_what_is_optimal(self):
        """1F1B of p devices idles (p-1)(F+B+W) and holds p-d microbatches: with those nothing is shorter. ZB-1P and ZB-2P
        are as short as any within p and 2p microbatches. Whoever makes one of them longer proves nothing."""
        shape = ("-p", "4", "-m", "16", "--times", "18.5,18.1,9.3", "--comm", "0.6", "--format", "json")
        for name in ("1f1b", "gpipe", "zb-1p", "zb-2p"):
            answer = json.loads(self.good("schedule", name, *shape))
            self.assertEqual((answer["bound"], answer["gap"], answer["optimal"]), (answer["span"], 0, True), name)
        # Within the memory of all microbatches 1F1B is not the shortest: what idles in it GPipe's F fill.
        answer = json.loads(self.good("schedule", "1f1b", *shape, "--memory-limit", "16"))
        self.assertIsNone(answer["optimal"])
        self.assertLess(answer["bound"], answer["span"])
        self.assertAlmostEqual(answer["gap"], answer["span"] / answer["bound"] - 1, delta=1e-12)
        # R is no pass of theirs, and Chimera's microbatches go two ways.
        for name in ("1f1b-r", "chimera"):
            answer = json.loads(self.good("schedule", name, *shape))
            self.assertEqual((answer["bound"], answer["gap"], answer["optimal"]), (None, None, None), name)
            self.assertNotIn("bound of the span", self.good("schedule", name, *shape[:-2]))
        self.assertIn("; proved optimal\n", self.good("schedule", "zb-1p", *shape[:-2]))
        self.assertIn("% longer than the shortest\n", self.good("schedule", "1f1b", *shape[:-2], "--memory-limit", "16"))

    def test_interval_of_the_middle(self):
        """V-Min as published, F and B of a chunk 1.5 and 2: an interval of six B, 12, where 9 is work, on whatever many
        devices. 1F1B waits for 2(p-1) transfers in every p microbatches. GPipe's middle turns from F to BW."""
        shape = ("-m", "48", "--times", "3,4,2", "--format", "json")
        for devices in (4, 8):
            answer = json.loads(self.good("schedule", "v-min", "--making", "published", "-p", str(devices), *shape))
            self.assertEqual((answer["interval"], answer["interval_microbatches"], answer["repeating_bubble"]), (12, 1, 0.25))
            self.assertEqual(answer["idle_per_microbatch"], [3] * devices)
        answer = json.loads(self.good("schedule", "1f1b", "-p", "4", "--comm", "0.5", *shape))
        self.assertEqual((answer["interval"], answer["idle_per_microbatch"]), (9.75, [0.75] * 4))
        answer = json.loads(self.good("schedule", "gpipe", "-p", "4", *shape))
        self.assertEqual([answer[key] for key in ("interval", "interval_microbatches", "repeating_bubble",
                                                  "idle_per_microbatch")], [None] * 4)
        text = self.good("schedule", "1f1b", "-p", "4", "--comm", "0.5", *shape[:-2])
        self.assertIn("\n  interval               9.75 a microbatch in the middle; repeating bubble 0.0769\n", text)
        self.assertNotIn("interval", self.good("schedule", "gpipe", "-p", "4", *shape[:-2]))

    def test_table_is_golden(self):
        for name in ("zb-h2", "1f1b-interleaved"):
            text = self.good("schedule", name, "-p", "4", "-m", "8", "--comm", "0.1")
            self.assertEqual(text, (GOLDEN / f"{name}_p4_m8.table.txt").read_text())

    def check_golden(self, path, text):
        if os.environ.get("PC_WRITE_GOLDEN"):
            path.write_text(text)
        self.assertEqual(text, path.read_text(), path.name)

    def test_csv_files_are_golden_and_load_again(self):
        for name in PASSES:
            text = self.good("schedule", name, "-p", "4", "-m", "8", "--format", "torch-csv")
            golden = GOLDEN / f"{name}_p4_m8.csv"
            self.check_golden(golden, text)
            # Loaded, it costs what was generated. At the times that a search was made for, so that it finds the same.
            options = [] if name in SEARCHED else ["--times", "3,2,1", "--comm", "0.25"]
            made = json.loads(self.good("schedule", name, "-p", "4", "-m", "8", *options, "--format", "json"))
            loaded = json.loads(self.good("schedule", str(golden), *options, "--format", "json"))
            self.assertIsNone(loaded["block"])
            # A name's bound is for its limit, that of a file for what it holds.
            bound = {"bound", "gap", "optimal"} if name in SEARCHED else set()
            for field in set(made) - bound - {"name", "generate_s", "replay_s", "block", "goal"}:
                self.assertEqual(made[field], loaded[field], f"{name}: {field}")

    def test_interleaved_takes_any_microbatches(self):
        """Written in PyTorch's format and loaded again, an order whose last group is smaller costs the same: of 10
        microbatches 10 + 3/3 x 3 = 33/3 x 3, and of 3 on 4 devices (3 x 4 + 3 - 1)/3 x 3."""
        for microbatches, span in ((10, 33), (9, 30), (5, 18), (3, 14)):
            shape = ["-p", "4", "-m", str(microbatches), "-v", "3"]
            made = json.loads(self.good("schedule", "1f1b-interleaved", *shape, "--format", "json"))
            self.assertAlmostEqual(made["span"], span)
            self.assertIsNotNone(made["block"])
            path = self.path("interleaved.csv")
            pathlib.Path(path).write_text(self.good("schedule", "1f1b-interleaved", *shape, "--format", "torch-csv"))
            loaded = json.loads(self.good("schedule", path, "--format", "json"))
            for field in set(made) - {"name", "generate_s", "replay_s", "block"}:
                self.assertEqual(made[field], loaded[field], f"{microbatches}: {field}")

    def test_orders_of_frameworks(self):
        """PyTorch's ZBVZeroBubble on two ranks; a shape that PyTorch refuses."""
        text = self.good("schedule", "zb-v", "-p", "2", "-m", "3", "--making", "torch", "--format", "torch-csv")
        self.assertEqual(text, "0F0,0F1,0F2,3F0,3I0,3W0,3F1,3I1,3W1,0I0,0W0,3F2,3I2,3W2,0I1,0W1,0I2,0W2\n"
                               "1F0,2F0,1F1,2F1,2I0,2W0,1F2,1I0,1W0,2F2,2I1,2W1,1I1,2I2,1I2,1W1,2W2,1W2\n")
        done = run("schedule", "1f1b-interleaved", "-p", "4", "-m", "9", "--making", "torch")
        self.assertEqual((done.returncode, done.stderr), (2, "pipecast: 1f1b-interleaved: making torch: 9 microbatches on "
                                                             "4 devices; expected a multiple of 2, PyTorch's number of "
                                                             "rounds\n"))

    def test_text_files_are_golden(self):
        for name in MORE + SLICED:
            text = self.good("schedule", name, "-p", "4", "-m", "8", "--format", "text")
            self.check_golden(GOLDEN / f"{name}_p4_m8.txt", text)

    def test_keep(self):
        # Stage d of 1F1B-R holds p-d inputs, and while it is at a backward pass the rest of one microbatch.
        for options, keep in (([], 2 / 34), (["--keep", "0.25"], 0.25), (["--keep", "0"], 0), (["--keep", "1"], 1)):
            answer = json.loads(self.good("schedule", "1f1b-r", "-p", "4", "-m", "8", *options, "--format", "json"))
            for d, peak in enumerate(answer["peak_activation"]):
                self.assertAlmostEqual(peak, (4 - d) * keep + 1 - keep, places=8)

    def test_a_chunk_of_a_replica_is_a_whole_stage(self):
        # Chimera of p = m = 4 at F, B, W = 1: m(F+B+W) and (p-2)(B+W) idle. GEMS holds one microbatch a device.
        answer = json.loads(self.good("schedule", "chimera", "-p", "4", "-m", "4", "--format", "json"))
        self.assertEqual((answer["span"], answer["placement"], answer["chunks"]), (16, "bidirectional", 2))
        self.assertEqual(answer["peak_activation"], [3, 4, 4, 3])
        answer = json.loads(self.good("schedule", "gems", "-p", "4", "-m", "4", "--format", "json"))
        self.assertEqual(answer["peak_activation"], [1, 1, 1, 1])

    def test_release_b(self):
        # ZB-H1 holds p microbatches where W frees all; where B frees all of it, as 1F1B with BW does, p too, and less
        # where B comes first: on the last stage each B directly follows its F, so that one microbatch is held.
        text = self.good("schedule", "zb-h1", "-p", "4", "-m", "8", "--release-b", "1", "--format", "json")
        self.assertEqual(json.loads(text)["peak_activation"], [4, 3, 2, 1])

    def test_any_one_unit(self):
        """The same times in seconds, hours and far beyond: the same rates, and spans in that unit."""
        for factor in (1e-9, 1e-3, 1.0, 1e6, 1e12):
            times = ",".join(repr(t * factor) for t in (18.522, 18.086, 9.337))
            text = self.good("schedule", "1f1b", "-p", "8", "-m", "24", "--times", times, "--comm", repr(0.601 * factor),
                             "--format", "json")
            answer = json.loads(text)
            self.assertAlmostEqual(answer["bubble_rate_span"], 0.2430542255391972, places=6)
            self.assertAlmostEqual(answer["span"] / factor, 1456.749, places=3)

    def test_the_limit_that_would_do_does(self):
        arguments = ["schedule", "1f1b-interleaved", "-p", "2", "-m", "4", "-v", "3", "--memory-limit"]
        least = run(*arguments, "2").stderr.split()[-1]
        self.good(*arguments, least)

    def test_memory_limit_that_is_too_small_says_the_least_that_would_do(self):
        done = run("schedule", "1f1b", "-p", "4", "-m", "8", "--memory-limit", "3.5")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "pipecast: --memory-limit: 3.5 is too little for 1f1b; expected at least 4\n")
        self.good("schedule", "1f1b", "-p", "4", "-m", "8", "--memory-limit", "4")

    def test_event_by_event(self):
        """The same answer, to the last bit, and it says how it came."""
        for arguments in (["1f1b", "-p", "8", "-m", "24", "--comm", "0.601"], ["v-half", "-p", "4", "-m", "8"]):
            paths, events = self.answer(*arguments), self.answer(*arguments, "--engine", "events")
            self.assertEqual((paths["engine"], events["engine"]), ("paths", "events"))
            for field in set(paths) - {"generate_s", "replay_s", "engine"}:
                self.assertEqual(paths[field], events[field], field)
        table = self.good("schedule", "1f1b", "-p", "4", "-m", "8")
        self.assertIn("  engine                 longest paths; nothing shares a link or waits for memory, so events "
                      "would give the same, to the picosecond\n", table)
        table = self.good("schedule", "1f1b", "-p", "4", "-m", "8", "--engine", "events")
        self.assertIn("  engine                 events for everything: passes, transfers, links and memories\n", table)
        self.bad(2, "--engine: unknown way 'event' (did you mean events?); expected auto or events",
                 "schedule", "1f1b", "-p", "4", "-m", "8", "--engine", "event")

    def test_making(self):
        """Whose order it is: V-Min's, as its authors give it, idles 0.328 of the time at these times, 1F1B 0.310, ours less. It
        does not look at the limit, so that what it holds is said, as of a schedule that does not search."""
        shape = ("-p", "8", "-m", "16", "--times", "22,24.6,17", "--comm", "0.3")
        rate = {(name, making): self.answer(name, *shape, "--making", making)["bubble_rate_span"]
                for name in ("v-min", "1f1b") for making in ("costs", "published")}
        self.assertAlmostEqual(rate["v-min", "published"], 0.3283, places=4)
        self.assertEqual(rate["1f1b", "published"], rate["1f1b", "costs"])
        self.assertLess(rate["v-min", "costs"], rate["1f1b", "costs"])
        done = run("schedule", "v-min", *shape, "--making", "published", "--memory-limit", "3.5")
        self.assertEqual((done.returncode, done.stderr),
                         (1, "pipecast: --memory-limit: 3.5 is too little for v-min; expected at least 4\n"))
        self.bad(2, "v-half: making torch: nobody gives such an order of it; expected costs, equal or published", "schedule",
                 "v-half", *shape, "--making", "torch")
        self.bad(2, "--making: unknown word 'even'; expected costs, equal, published, torch or megatron",
                 "schedule", "v-half", *shape, "--making", "even")
        self.bad(2, "x.csv: making torch: the order is the file's; expected a name", "schedule", "x.csv", "--making", "torch")

    def test_goal(self):
        """Work is 4 (2 + 2 + 8) = 48 on each of 3 devices. The first one has its first B after 3 2 + 2 0.5 + 2 2 + 2 0.5 = 12,
        and room for three F before it, 6: it cannot end before 54. Of the orders with that span the best that is found ends at
        55; one that ends at 54 is found by those that look for it."""
        shape = ("-p", "3", "-m", "4", "--times", "2,2,8", "--comm", "0.5")
        by = {goal: self.answer("zb-1p", *shape, "--goal", goal) for goal in ("span", "makespan")}
        self.assertEqual([by["span"][key] for key in ("span", "makespan", "goal")], [54, 55, "span"])
        self.assertEqual([by["makespan"][key] for key in ("span", "makespan", "goal")], [54, 54, "makespan"])
        self.assertEqual(self.answer("zb-1p", *shape)["trace_hash"], by["span"]["trace_hash"])
        self.assertIsNone(self.answer("1f1b", *shape, "--goal", "makespan")["goal"])
        self.assertIn("\n  goal                   makespan\n", self.good("schedule", "zb-1p", *shape, "--goal", "makespan"))
        self.assertNotIn("goal", self.good("schedule", "zb-1p", *shape))
        for message, arguments in (
                ("--goal: iteration: a schedule alone has no gradients or parameters to wait for; expected span or makespan",
                 ["zb-1p", *shape, "--goal", "iteration"]),
                ("--goal: unknown word 'time'; expected span or makespan", ["zb-1p", *shape, "--goal", "time"]),
                ("zb-1p: goal makespan with making equal, whose order does not go by it; expected making costs",
                 ["zb-1p", *shape, "--goal", "makespan", "--making", "equal"]),
                ("x.csv: goal makespan: the order is the file's; expected a name, or --improve",
                 ["x.csv", *shape, "--goal", "makespan"])):
            with self.subTest(arguments=arguments):
                self.bad(2, message, "schedule", *arguments)
        own = self.file("own.csv", self.good("schedule", "zb-1p", *shape, "--format", "torch-csv"))
        improved = self.answer(own, *shape, "--improve", "--goal", "makespan")
        self.assertEqual((improved["makespan"], improved["improved"]["makespan_before"], improved["goal"]), (54, 55, "makespan"))

    def test_stages_differ(self):
        """1F1B of 2 stages, of which the second takes 5 + 6 + 3 in place of 3 + 4 + 2, and 4 microbatches: the second begins
        after 3, works 4 14 = 56 and sends its last B, 9 long, to the first: 6 more, 65 in all; the first's span, from 0, is that."""
        shape = ("-p", "2", "-m", "4", "--times", "3,4,2/5,6,3")
        answer = self.answer("1f1b", *shape)
        self.assertEqual((answer["span"], answer["stage_times"]), (65, [[[3, 4, 2]], [[5, 6, 3]]]))
        self.assertEqual(self.answer("1f1b", "-p", "4", "-m", "8", "--times", "3,4,2*4")["span"],
                         self.answer("1f1b", "-p", "4", "-m", "8", "--times", "3,4,2")["span"])
        # Parts stand in the model's order: in a V of two devices the first and the last are the first device's.
        answer = self.answer("v-half", "-p", "2", "-m", "6", "--times", "1,2,3/4,5,6*2/7,8,9")
        self.assertEqual(answer["stage_times"], [[[1, 2, 3], [7, 8, 9]], [[4, 5, 6], [4, 5, 6]]])
        # Limits of their own: no longer than with the smallest everywhere, and within each.
        shape = ("v-half", "-p", "4", "-m", "12", "--times", "3.5,4,2/3,4,2*6/3,6,3", "--comm", "0.2", "--memory-limit")
        own, least = self.answer(*shape, "3,3,2.5,2.5"), self.answer(*shape, "2.5")
        self.assertEqual(own["memory_limit"], [3, 3, 2.5, 2.5])
        self.assertTrue(all(held <= limit for held, limit in zip(own["peak_activation"], own["memory_limit"])))
        self.assertLess(own["span"], least["span"])
        for message, arguments in (
                ("--times: 7 times F,B,W; expected one for all, one for each of 4 stages, or one for each of 8 parts of the model",
                 ["v-half", "-p", "4", "-m", "8", "--times", "3,4,2*7"]),
                ("--times: 3 times F,B,W; expected one for all, or one for each of 2 stages",
                 ["1f1b", "-p", "2", "-m", "4", "--times", "3,4,2/1,1,1*2"]),
                ("--times: '3,4,2/3,4'; expected three numbers F,B,W such as 18.5,18.1,9.3",
                 ["1f1b", "-p", "2", "-m", "4", "--times", "3,4,2/3,4"])):
            with self.subTest(arguments=arguments):
                self.bad(2, message, "schedule", *arguments)

    def test_passes_wait_for_memory(self):
        """GPipe with room for one microbatch a device: each goes through alone, m p (F + B + W) = 8 4 3."""
        shape = ["gpipe", "-p", "4", "-m", "8"]
        done = run("schedule", *shape, "--memory-limit", "1", "--out-of-memory", "fail")
        self.assertEqual((done.returncode, done.stderr),
                         (1, "pipecast: --memory-limit: 1 is too little for gpipe; expected at least 8\n"))
        answer = self.answer(*shape, "--memory-limit", "1", "--out-of-memory", "wait")
        self.assertEqual((answer["span"], answer["peak_activation"], answer["engine"]), (96, [1] * 4, "events"))
        enough = self.answer(*shape, "--memory-limit", "8", "--out-of-memory", "wait")
        self.assertEqual((enough["span"], enough["engine"]), (self.answer(*shape)["span"], "paths"))
        self.bad(1, "--memory-limit: 0.5 is too little for gpipe: F0 on device 0 waits for 1 where 0 are held, and nothing "
                 "else can run", "schedule", *shape, "--memory-limit", "0.5", "--out-of-memory", "wait")

    def answer(self, *arguments):
        return json.loads(self.good("schedule", *arguments, "--format", "json"))

    def test_block(self):
        """Lifespans and bounds of the V-shaped blocks by algebra, from the passes that stand beside them."""
        p = 4
        # (p+2)/3, p/2+1 and p microbatches; and of V-Min on one device a chunk more, for two lives that take turns.
        for name, bound in (("v-min", 2.5), ("v-half", 3), ("v-zb", 4)):
            block = self.answer(name, "-p", str(p), "-m", "8")["block"]
            self.assertEqual(list(block), ["microbatches", "interval", "passes", "lifespan", "peak_bound", "peak"])
            self.assertEqual((block["microbatches"], len(block["passes"])), (1, 6 * p))
            start = {(x["device"], x["chunk"], x["kind"]): x["start"] for x in block["passes"]}
            self.assertEqual({x["duration"] for x in block["passes"]}, {1})
            lifespan = [[start[d, c, "W"] + 1 - start[d, c, "F"] for c in (0, 1)] for d in range(p)]
            self.assertEqual(block["lifespan"], lifespan)
            interval = block["interval"]
            self.assertEqual(block["peak_bound"], [sum(-(-span // interval) for span in spans) / 2 for spans in lifespan])
            self.assertEqual(max(block["peak_bound"]), bound)
            for d in range(p):  # no two passes in one cell when the block is repeated
                self.assertEqual(len({t % interval for (device, *_), t in start.items() if device == d}), 6)
            way = [(d, 0) for d in range(p)] + [(d, 1) for d in reversed(range(p))]
            steps = [(*stop, "F") for stop in way] + [(*stop, "B") for stop in reversed(way)]
            for before, after in list(zip(steps, steps[1:])) + [((*stop, "B"), (*stop, "W")) for stop in way]:
                self.assertLess(start[before], start[after])

    def test_block_of_1f1b(self):
        # Stage d holds a microbatch until it comes back: p-d F of one cell, its own among them, and p-d BW of two.
        block = self.answer("1f1b", "-p", "4", "-m", "8")["block"]
        self.assertEqual(block["lifespan"], [[12], [9], [6], [3]])
        self.assertEqual((block["interval"], block["peak_bound"]), (3, [4, 3, 2, 1]))

    def test_block_of_two_replicas(self):
        # GEMS: a microbatch lives 4p-1 - 4d cells on its way down and 4d+3 up; each visits one chunk, a whole stage.
        answer = self.answer("gems", "-p", "4", "-m", "8")
        block = answer["block"]
        self.assertEqual((block["microbatches"], block["interval"], len(block["passes"])), (2, 18, 2 * 2 * 4))
        self.assertEqual(block["lifespan"], [[15, 3], [11, 7], [7, 11], [3, 15]])
        self.assertEqual((block["peak_bound"], answer["peak_activation"]), ([2] * 4, [1] * 4))

    def test_every_schedule_has_a_block(self):
        """But for one whose backward passes are not all of one kind. What is searched over interleaved chunks need not repeat
        anything."""
        for name in set(PASSES + MORE) - {"interleaved-adaptive"}:
            self.assertEqual(self.answer(name, "-p", "4", "-m", "8")["block"] is None, name.startswith("dualpipe"), name)

    @full_only
    def test_memory_limit_is_kept_by_searches(self):
        """One number for all devices or one a device: never more is held, and more memory never takes longer."""
        shape = ["-p", "4", "-m", "8", "--times", "3,4,2", "--comm", "0.25"]
        for name in ("v-adaptive", "zb-1p", "v-min", "1f1b-v", "v-adaptive -v 3", "v-adaptive -v 4", "interleaved-adaptive -v 3"):
            spans = []
            for limit in ("1", "1,1,1,2", "2,1.5,1.5,2", "2", "2.5,3,3,4", "4"):
                answer = self.answer(*name.split(), *shape, "--memory-limit", limit)
                limits = [float(number) for number in limit.split(",")]
                for peak, most in zip(answer["peak_activation"], limits * (4 // len(limits)), strict=True):
                    self.assertLessEqual(peak, most, (name, limit))
                spans.append(answer["span"])
            self.assertEqual(spans, sorted(spans, reverse=True), name)
            same = [self.answer(*name.split(), *shape, "--memory-limit", limit)["trace_hash"] for limit in ("2", "2,2,2,2.0")]
            self.assertEqual(same[0], same[1])

    def test_memory_limit_that_no_schedule_keeps(self):
        shape = ["-p", "4", "-m", "8"]
        for message, arguments in [
            ("0.5 is too little for v-adaptive; expected at least 1", ["v-adaptive", *shape, "--memory-limit", "0.5"]),
            ("0 is too little for zb-1p; expected at least 1", ["zb-1p", *shape, "--memory-limit", "0"]),
            ("0.4 is too little for v-min on device 3; expected at least 1",
             ["v-min", *shape, "--memory-limit", "1,2,1,0.4"]),
        ]:
            self.bad(1, "--memory-limit: " + message, "schedule", *arguments)
        # A schedule that does not search is what it is; what it needs is an answer, and does not fit.
        done = run("schedule", "1f1b", *shape, "--memory-limit", "4,2,1,1", "--format", "json")
        self.assertEqual((done.returncode, json.loads(done.stdout)["peak_activation"]), (1, [4, 3, 2, 1]))
        self.assertEqual(done.stderr,
                         "pipecast: --memory-limit: 2 is too little for 1f1b on device 1; expected at least 3\n")

    def test_improve(self):
        """GPipe of two microbatches on two devices with B and W apart: 3F + 3B + 2W. With B0 of the last device before
        its F1, 2F + 3B + 2W, and nothing is shorter where W >= F (tests/test_improve.c)."""
        path = self.file("two.csv", "0F0,0F1,0I0,0I1,0W0,0W1\n1F0,1F1,1I0,1I1,1W0,1W1\n")
        times = ("--times", "3,4,5", "--improve")
        answer = self.answer(path, *times)
        self.assertEqual((answer["span"], answer["peak_activation"]), (28, [2, 2]))
        self.assertEqual(answer["improved"], {"changed": True, "span_before": 31, "makespan_before": 31,
                                              "peak_activation_before": [2, 2]})
        self.assertEqual((answer["bound"], answer["gap"], answer["optimal"]), (28, 0, True))
        table = self.good("schedule", path, *times)
        self.assertIn("  bound of the span      28; proved optimal\n"
                      "  improved from          span 31, makespan 31, peak activation 2\n", table)
        self.assertEqual(self.good("schedule", path, *times, "--format", "text"), "F0 F1 B0 W0 B1 W1\nF0 B0 F1 B1 W0 W1\n")
        # What comes out as a file is what was said, and cannot be improved again.
        better = self.file("better.csv", self.good("schedule", path, *times, "--format", "torch-csv"))
        again = self.answer(better, *times)
        self.assertEqual((again["span"], again["trace_hash"]), (28, answer["trace_hash"]))
        self.assertEqual((again["improved"]["changed"], again["improved"]["span_before"]), (False, 28))
        self.assertEqual(self.good("schedule", better, *times, "--format", "torch-csv"), pathlib.Path(better).read_text())
        self.assertNotIn("improved", self.answer(better, *times[:2]))
        picture = self.path("better.svg")
        self.good("schedule", path, *times, "--figure", picture)
        self.assertIn("<svg", pathlib.Path(picture).read_text())

    def test_improve_within_a_limit(self):
        """GPipe in the memory of 1F1B is 1F1B, (m+p-1)(F+B+W) = 11 3; a block of one's own is improved as a name is."""
        shape = ["gpipe", "-p", "4", "-m", "8", "--improve"]
        answer = self.answer(*shape, "--memory-limit", "4,3,2,1")
        self.assertEqual((answer["span"], answer["peak_activation"]), (33, [4, 3, 2, 1]))
        self.assertEqual(answer["improved"]["peak_activation_before"], [8] * 4)
        self.assertIs(answer["optimal"], True)
        block = str(ROOT / "docs/examples/blocks/v-min.yaml")
        made = self.answer("--block", block, "-p", "4", "-m", "8", "--times", "3,4,2", "--block-steps", "squeeze", "--improve")
        self.assertLess(made["span"], made["improved"]["span_before"])
        self.assertLessEqual(max(made["peak_activation"]), max(made["improved"]["peak_activation_before"]))
        done = run("schedule", *shape, "--memory-limit", "4,3,2,0.5")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (1, "", "pipecast: --memory-limit: 0.5 is too little for gpipe on device 3; expected at least 1\n"))

    def test_what_cannot_be_improved(self):
        shape = ["-p", "4", "-m", "8", "--improve"]
        block = str(ROOT / "docs/examples/blocks/v-min.yaml")
        for message, arguments in (
                ("1f1b-r recomputes; expected a schedule of F, B, W and BW alone, where it is to be improved", ["1f1b-r", *shape]),
                ("chimera has two replicas; expected placement linear, interleaved or v, where it is to be improved",
                 ["chimera", *shape]),
                ("--improve: what keeps --memory-limit waits for nothing; expected no --out-of-memory wait",
                 ["1f1b", *shape, "--out-of-memory", "wait"]),
                ("--improve, of a block with steps none, whose passes start where their cells do; expected --block-steps "
                 "squeeze or reorder", ["--block", block, *shape, "--block-steps", "none"]),
                ("schedule: --improve takes no value, and got 'now'; expected --improve alone", ["1f1b", *shape[:4], "--improve=now"])):
            with self.subTest(arguments=arguments):
                self.bad(2, message, "schedule", *arguments)
        path = self.file("stuck.csv", "0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n")
        done = run("schedule", path, "--improve")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
        self.assertIn("stuck.csv:", done.stderr)
        done = run("schedule", path, "--improve", "--making", "torch")
        self.assertEqual(done.stderr, f"pipecast: {path}: making torch: the order is the file's; expected a name\n")

    def test_samples(self):
        """One device with three microbatches takes 3 (F + B + W) = 27; in every sample twice that where it is slow. Nothing
        else is drawn, so that there is no error, and an order cannot help."""
        shape = ["1f1b", "-p", "1", "-m", "3", "--times", "3,4,2", "--slow-factor", "2"]
        answer = self.answer(*shape, "--samples", "50")
        self.assertEqual(answer["span"], 27)
        self.assertEqual(answer["samples"], {"count": 50, "mean": 54, "mean_error": 0, "p95": 54, "p95_low": 54, "p95_high": None})
        self.assertNotIn("robust", answer)
        robust = self.answer(*shape, "--robust", "p95")["robust"]
        self.assertEqual(robust, {"goal": "p95", "changed": False, "span_before": 27, "mean_before": 54, "p95_before": 54,
                                  "gain": 0, "gain_error": 0})
        self.assertIn("  span, sampled          mean 54, standard error 0; 95% 54, from 54 to 54; 1000 samples\n"
                      "  robust                 nothing better was found\n",
                      self.good("schedule", *shape, "--robust", "mean"))
        self.assertNotIn("samples", self.answer(*shape[:7]))
        # What does not fit is said as ever, beside what it would take.
        done = run("schedule", "1f1b", "-p", "4", "-m", "8", "--jitter", "0.1", "--memory-limit", "3")
        self.assertEqual((done.returncode, done.stderr), (1, "pipecast: --memory-limit: 3 is too little for 1f1b; expected at least 4\n"))
        self.assertIn("  span, sampled ", done.stdout)

    def test_robust(self):
        """Shorter in the mean of the same draws, within the name's memory; the same bytes again, others with another seed;
        what comes out as a file is what was said."""
        shape = ["zb-1p", "-p", "4", "-m", "8", "--times", "3,4,2", "--comm", "0.5"]
        scatter = ["--jitter", "0.05", "--samples", "400"]
        given, answer = (self.answer(*shape, *scatter, *more) for more in ([], ["--robust", "mean"]))
        self.assertEqual((answer["robust"]["mean_before"], answer["robust"]["span_before"]),
                         (given["samples"]["mean"], given["span"]))
        self.assertIs(answer["robust"]["changed"], True)
        self.assertAlmostEqual(given["samples"]["mean"] - answer["samples"]["mean"], answer["robust"]["gain"], 9)
        self.assertGreater(answer["robust"]["gain"], 5 * answer["robust"]["gain_error"])
        self.assertLessEqual(max(answer["peak_activation"]), 4)
        self.assertIn("  the order before       span ", self.good("schedule", *shape, *scatter, "--robust", "mean"))
        order, again = (self.good("schedule", *shape, *scatter, "--robust", "mean", "--format", "torch-csv") for _ in range(2))
        self.assertEqual(order, again)
        path = self.file("robust.csv", order)
        self.assertEqual(self.answer(path, *shape[5:])["trace_hash"], answer["trace_hash"])
        other = self.answer(*shape, *scatter, "--seed", "7")
        self.assertNotEqual(other["samples"]["mean"], given["samples"]["mean"])

    def test_what_cannot_be_sampled(self):
        shape = ["1f1b", "-p", "4", "-m", "8"]
        block = str(ROOT / "docs/examples/blocks/v-min.yaml")
        nothing = ("--robust, --samples, --seed: nothing scatters; expected --jitter, --gpu-jitter, --link-jitter or "
                   "--slow-factor")
        for message, arguments in (
                (nothing, [*shape, "--robust", "p95"]), (nothing, [*shape, "--samples", "10"]), (nothing, [*shape, "--seed", "1"]),
                ("--slow-stage: means nothing alone; expected --slow-factor beside it", [*shape, "--slow-stage", "1"]),
                ("--slow-stage: 4 of 4 devices; expected at most 3", [*shape, "--slow-stage", "4", "--slow-factor", "2"]),
                ("--slow-factor: 0.5; expected a number from 1 to 1000000, such as 1.1", [*shape, "--slow-factor", "0.5"]),
                ("--jitter: 11; expected a standard deviation from 0 to 10, such as 0.02", [*shape, "--jitter", "11"]),
                ("--robust: unknown word 'best'; expected none, mean or p95", [*shape, "--robust", "best"]),
                ("--robust: looks for another order itself; expected no --improve beside it",
                 [*shape, "--robust", "mean", "--jitter", "0.1", "--improve"]),
                ("--robust, --jitter, ...: what keeps --memory-limit waits for nothing; expected no --out-of-memory wait",
                 [*shape, "--jitter", "0.1", "--out-of-memory", "wait"]),
                ("1f1b-r recomputes, or has replicas, slices or too many chunks; expected F, B, W and BW alone, and every microbatch "
                 "in every chunk, where times are drawn", ["1f1b-r", *shape[1:], "--jitter", "0.1"]),
                ("times that are drawn, of a block with steps none, whose passes start where their cells do; expected "
                 "--block-steps squeeze or reorder", ["--block", block, *shape[1:], "--jitter", "0.1", "--block-steps", "none"])):
            with self.subTest(arguments=arguments):
                self.bad(2, message, "schedule", *arguments)

    def test_slices(self):
        """Units of a quarter: (m k + p-1)(F + B + W)/k is 35 x 3/4, and stage d holds p-d + k-1 of them. Slices of 1 to 4
        tenths are as much work, and the longest is waited for."""
        shape = ("seq-1f1b", "-p", "4", "-m", "8", "--slices", "4")
        answer = json.loads(self.good("schedule", *shape, "--format", "json"))
        self.assertEqual((answer["span"], answer["bound"], answer["placement"]), (26.25, 26.25, "slices"))
        self.assertEqual(answer["peak_activation"], [1.75, 1.5, 1.25, 1])
        uneven = json.loads(self.good("schedule", *shape, "--slice-times", "1,2,3,4", "--format", "json"))
        self.assertEqual((uneven["span"], uneven["peak_activation"]), (40.2, answer["peak_activation"]))
        self.assertIn("4 slices a microbatch, placement slices", self.good("schedule", *shape))
        parts = ["seq-1f1b-interleaved", *shape[1:], "-v", "2"]
        text = self.good("schedule", *parts)
        self.assertIn("8 microbatches, 2 chunks a device, 4 slices a microbatch, placement slices", text)
        self.assertIn("bound of the span      24.375; at most 3.08% longer than the shortest", text)
        answer = json.loads(self.good("schedule", *parts, "--format", "json"))
        self.assertEqual((answer["chunks"], answer["slices"], answer["span"]), (8, 4, 25.125))
        self.assertEqual(json.loads(self.good("schedule", *parts[:5], "--format", "json"))["chunks"], 8)
        for message, arguments in (
                ("-v: seq-1f1b cuts microbatches into slices, and has one chunk a device; expected --slices 2", [*shape[:5], "-v", "2"]),
                ("--slices: 1f1b has whole microbatches; expected it with seq-1f1b or another seq-...", ["1f1b", *shape[1:]]),
                ("--slices: 400 of each of 3 chunks a device; expected at most 1024 of all together", [*parts[:-3], "400", "-v", "3"]),
                ("--times: 3 times F,B,W; expected one for all, one for each of 4 stages, or one for each of 8 parts of the model", [*parts, "--times", "1,1,1*3"]),
                ("--slice-times: '1,2,3'; expected 4 numbers above zero, one a slice, such as 1,1.2,1.4,1.6 of four", [*shape, "--slice-times", "1,2,3"]),
                ("--slice-times: '1,2,3,0'; expected 4 numbers above zero, one a slice, such as 1,1.2,1.4,1.6 of four", [*shape, "--slice-times", "1,2,3,0"]),
                ("seq-1f1b: has slices of microbatches; expected whole ones, which PyTorch's runtime knows", [*shape, "--format", "torch-csv"]),
                ("seq-1f1b: has slices of microbatches, whose order no block keeps; expected whole ones", [*shape, "--format", "block"]),
                ("seq-1f1b cuts microbatches into slices; expected placement linear, interleaved or v, where it is to be improved", [*shape, "--improve"])):
            with self.subTest(arguments=arguments):
                self.bad(2, message, "schedule", *arguments)

    def test_figure(self):
        for ending in ("svg", "png", "pdf"):
            path = self.path("f." + ending)
            self.good("schedule", "zb-h1", "-p", "4", "-m", "8", "--figure", path)
            self.assertGreater(os.path.getsize(path), 2000)

    def test_dark_figure(self):
        """The page is dark, and not if nobody says so."""
        pages = []
        for option in ([], ["--dark"]):
            path = pathlib.Path(self.path("d.svg"))
            self.good("schedule", "1f1b", "-p", "2", "-m", "2", "--figure", str(path), *option)
            pages.append("#171717" in path.read_text().lower())
            path.unlink()
        self.assertEqual(pages, [False, True])
        self.bad(2, "--dark: nothing is drawn; expected it with --figure FILE", "schedule", "1f1b", "-p", "2", "-m", "2", "--dark")

    def test_bad_input(self):
        shape = ["-p", "4", "-m", "8"]
        cases = [
            ("schedule: no name; expected NAME, FILE.csv or --block FILE (pipecast list schedules)", []),
            ("unknown schedule '2f2b'; expected gpipe, 1f1b, 1f1b-r, eager-1f1b, 1f1b-interleaved, "
             "1f1b-interleaved-overlap, 1f1b-interleaved-low-memory, looped-bfs, 1f1b-v, zb-h1, zb-h2, zb-interleaved, gis, gis-h, gis-uniform, gis-h-uniform, interleaved-adaptive, zb-1p, zb-2p, zb-two-thirds, "
             "v-min, v-half, v-zb, zb-v, v-adaptive, dualpipe-v, dualpipe, gems, chimera, seq-gpipe, seq-1f1b, seq-zb-h1, seq-1f1b-interleaved, seq-zb-interleaved, 1f1b-vocab-1, 1f1b-vocab-2, v-half-vocab-1, v-half-vocab-2, a FILE.csv, or --block FILE",
             ["2f2b", *shape]),
            ("schedule: -p is missing; expected -p DEVICES", ["1f1b", "-m", "8"]),
            ("-p: 0: out of range; expected a whole number from 1 to 65536", ["1f1b", "-p", "0", "-m", "8"]),
            ("-p: 1000000000: out of range; expected a whole number from 1 to 65536",
             ["1f1b", "-p", "1000000000", "-m", "8"]),
            ("-m: 0: out of range; expected a whole number from 1 to 16777216", ["1f1b", "-p", "4", "-m", "0"]),
            ("-m: 4.5: not a whole number; expected a whole number from 1 to 16777216",
             ["1f1b", "-p", "4", "-m", "4.5"]),
            ("--times: '1,2'; expected three numbers F,B,W such as 18.5,18.1,9.3", ["1f1b", *shape, "--times", "1,2"]),
            ("--times: 024: begins with a zero; expected a number of at least zero, without a unit",
             ["1f1b", *shape, "--times", "1,024,3"]),
            ("--times: '1,2,3,4'; expected three numbers F,B,W such as 18.5,18.1,9.3",
             ["1f1b", *shape, "--times", "1,2,3,4"]),
            ("--times: nan: not a number; expected a number of at least zero, without a unit",
             ["1f1b", *shape, "--times", "1,2,nan"]),
            ("--times: -2: negative; expected a number of at least zero, without a unit",
             ["1f1b", *shape, "--times", "1,-2,1"]),
            ("--times, --comm: too large or too far apart; expected all passes together to last less than 10^18 times the "
             "shortest of them", ["1f1b", *shape, "--times", "1e300,1,1"]),
            ("--release-b: 2 is more than all; expected a fraction from 0 to 1", ["1f1b", *shape, "--release-b", "2"]),
            ("--memory-limit: 2 numbers; expected one, or one for each of 4 devices",
             ["v-adaptive", *shape, "--memory-limit", "1,1"]),
            ("--memory-limit: 5 numbers; expected one, or one for each of 4 devices",
             ["1f1b", *shape, "--memory-limit", "4,4,4,4,4"]),
            *((f"--memory-limit: '{word}'; expected a number from 0 up, or one a device",
               ["v-adaptive", *shape, "--memory-limit", limit])
              for word, limit in [("x", "x"), ("-1", "-1"), ("nan", "nan"), ("", ""), ("", "4,"), ("2GiB", "1,2GiB,3,4"),
                                  ("-nan", "4,4,-nan,4")]),
            ("--keep: 1.5 is more than all; expected a fraction from 0 to 1", ["1f1b-r", *shape, "--keep", "1.5"]),
            ("1f1b-r: has recompute passes; expected only F, B, W and BW, which PyTorch's runtime knows",
             ["1f1b-r", *shape, "--format", "torch-csv"]),
            ("chimera: has two replicas of the model; expected one, which PyTorch's runtime knows",
             ["chimera", *shape, "--format", "torch-csv"]),
            ("--format: unknown format 'xml'; expected table, json, text, torch-csv or block",
             ["1f1b", *shape, "--format", "xml"]),
            ("schedule: unknown option '--frmat' (did you mean --format?); expected one that `pipecast schedule --help` lists",
             ["1f1b", *shape, "--frmat", "json"]),
            ("schedule: --comm: no value; expected --comm T", ["1f1b", *shape, "--comm"]),
            ("x.gif: unknown ending; expected a file name that ends in .svg, .png or .pdf", ["1f1b", *shape, "--figure", "x.gif"]),
            ("x.svg: 1200000 passes are too many to draw, at most 1000000 can be",
             ["zb-h1", "-p", "400", "-m", "1000", "--figure", "x.svg"]),
            ("/nowhere/x.svg: there is no folder '/nowhere'; expected one that is there", ["1f1b", *shape, "--figure", "/nowhere/x.svg"]),
            ("missing.csv: No such file or directory; expected a CSV file", ["missing.csv", *shape]),
        ]
        for message, arguments in cases:
            with self.subTest(arguments=arguments):
                self.bad(2, message, "schedule", *arguments)

    def test_csv_that_is_wrong_is_named(self):
        path = self.path("x.csv")
        pathlib.Path(path).write_text("0F0,0B0\n1F0,1B0,1B0\n")
        done = run("schedule", path)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, f"pipecast: {path}:2: schedule: stage 1, place 2: BW0 stands at place 1 already; "
                                      "expected every pass once\n")
        done = run("schedule", str(GOLDEN / "1f1b_p4_m8.csv"), "-p", "8", "-m", "8")
        self.assertIn("1f1b_p4_m8.csv: 4 devices; expected the 8 that the command line says", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
