"""The figures of docs/reliability.md: the key that the runs count, the bar, and the command that gives it."""
import collections

Figure = collections.namedtuple("Figure", "section what key least command percent", defaults=(False,))

SECTIONS = {
    "Fuzzing": "Every parser of outside data under libFuzzer with the address and undefined-behaviour sanitizers. What is checked beside crashes,\n"
               "and how to repeat a finding: [tests/fuzz](../tests/fuzz/README.md). In one `./test --full`, five seconds of each:",
    "Independent solutions": "The program against another way to the same answer, written for the test.",
    "Faults": "One fault at a time is put into a run of the command; it ends with the right output, or with one line, status 3 (a\n"
              "signal: its own; a failed read also 2) and every file as it was. Calls are a sample: sixteen of each kind and command.",
    "Determinism": "The same trace hashes and results, to the last bit, from every build. Equal numbers need the same log, log1p and exp of the C\n"
                   "library and the same GSL: these are used for noise; everything else is correctly rounded everywhere.",
    "Checks": "",
    "Security": "What is promised: [SECURITY.md](../SECURITY.md).",
}

TARGETS = ("command_line", "journal", "kernel_csv", "launch", "library", "nccl_tests", "plan", "profile_hdf5", "results_hdf5", "scenario",
           "schedule_csv", "sealed", "units")
EXECUTIONS = 10_000_000  # of each in long runs, with sanitizers

FIGURES = [
    *(Figure("Fuzzing", f"executions of `{name}`", f"fuzz.{name}.executions", 1, f"tests/fuzz/run --seconds 5 {name}")
      for name in TARGETS),
    Figure("Independent solutions", "random programs: the engine and the longest path", "programs.compared", 100_000,
           "meson test -C build --setup full programs"),
    Figure("Independent solutions", "their memory curves, recounted", "memory.recounted", 100_000, "meson test -C build --setup full programs"),
    Figure("Independent solutions", "flows that share links: ends against rising water", "flows.compared", 500_000,
           "meson test -C build --setup full sharing"),
    Figure("Independent solutions", "schedules replayed and timed by the longest path", "schedules.compared", 20_000,
           "meson test -C build --setup full replay"),
    Figure("Independent solutions", "random plans against simulating every point", "plans.searched", 1_000,
           "meson test -C build --setup full planner"),
    Figure("Independent solutions", "iterations folded and expanded, equal to the bit", "folded.expanded", 5_000,
           "meson test -C build --setup full iteration_properties"),
    Figure("Independent solutions", "scenarios by options, YAML, `--set` and CSV", "inputs.equal", 50, "meson test -C build --setup full inputs"),
    *(Figure("Faults", what, f"faults.{key}", least, f"meson test -C build --setup full {tests}")
      for what, key, least, tests in (
          ("allocations refused", "allocations", 4_000, "faults_allocations"),
          ("calls that write, sync, rename, close failed or cut short", "writes", 800, "faults_calls"),
          ("calls that open and read", "reads", 500, "faults_calls"),
          ("standard streams full, broken, closed", "streams", 100, "faults_calls"),
          ("signals in the middle", "signals", 300, "faults_signals"),
          ("odd, long and forbidden names of files and folders", "names", 1_000, "faults_names"),
          ("clocks that jump", "clock_jumps", 80, "faults_surroundings"),
          ("runs in a locale with decimal commas", "locales", 20, "faults_surroundings"),
      )),
    *(Figure("Faults", f"damaged {what}: cut short, a bit turned", f"damage.{key}", least, f"meson test -C build --setup full {test}")
      for what, key, least, test in (
          ("results files", "results", 1_000, "store_damage"),
          ("profiles", "profile", 1_000, "profile_damage"),
          ("journals of sweeps", "journal", 1_000, "journal"),
      )),
    Figure("Determinism", "results of scenarios compared (200, by 1 and 8 threads, in every build)", "determinism.hashes", 2_000,
           "tests/checks/builds"),
    Figure("Determinism", "builds: gcc and clang, -O0 and -O3, AVX2, CUDA, MPI", "builds.configurations", 4,
           "tests/checks/builds"),
    *(Figure("Checks", f"lines of {room}/ that its tests reach", f"coverage.{room}", 9_000, "tests/checks/coverage", True)
      for room in ("engine", "models", "calib", "scenarios")),
    Figure("Checks", "C files under clang-tidy and cppcheck, none with a finding left", "lint.files", 400, "tests/checks/lint"),
    Figure("Checks", "findings silenced, each with its reason beside it", "lint.reasons", 0, "tests/checks/lint"),
    Figure("Security", "paths out of a scenario's folder refused", "security.references_refused", 1, "meson test -C build --setup full confined"),
    Figure("Security", "ways over random links, against where the kernel finds them", "security.link_walks", 1_000, "meson test -C build --setup full place"),
    Figure("Security", "walks of random paths up and down, against their depth", "security.walks", 1, "meson test -C build --setup full place"),
    Figure("Security", "hostile names drawn, written and printed", "security.labels", 1, "meson test -C build --setup full labels"),
]
