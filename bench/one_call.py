"""What one forecast costs by the Python package: as one_call.c, which does the same in C. one_call.py N."""
import sys
import time

import pipecast

SETTINGS = {"schedule": "1f1b", "devices": 4, "microbatches": 8, "times": {"F": "1 ms", "B": "1 ms", "W": "1 ms"}}


def least_us(call, count):
    least = float("inf")
    for _ in range(count):
        begin = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - begin)
    return least * 1e6


def main(count):
    text = least_us(lambda: pipecast.Scenario(**SETTINGS).run().row(0).iteration_s, count)
    scenario = pipecast.Scenario(**SETTINGS)
    again = least_us(lambda: scenario.run().row(0).iteration_s, count)
    columns = least_us(lambda: scenario.run().to_dict(), max(count // 20, 3))
    frame = least_us(lambda: pipecast.run(**SETTINGS), max(count // 20, 3))
    print(f"{text:.1f} us a call of the package; {again:.1f} us of a scenario that is loaded; {columns:.1f} us of all its "
          f"columns; {frame:.1f} us of run()")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
