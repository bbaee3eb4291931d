"""Of scored rows those whose products have fewer than 16 bits: their speed-ups over 16 bits, measured and forecast."""
import collections
import re
import statistics

from compared import percent, signed, table

WIDE = ("", "bf16", "fp16", "ampbf16", "ampfp16", "bfloat16", "float16")
SAME = ("file", "release", "framework", "system", "gpus", "gbs", "mbs", "seq", "fsdp_shard", "tp", "pp", "cp", "vp", "ep", "zero",
        "recompute", "schedule")
POINTS = 0.06  # of a speed-up, by which a forecast of it may be off
SHARE = 2 / 3  # of the pairs that may not be further off


def squeezed(text):
    return re.sub("[^a-z0-9]", "", text.lower())


def is_low(row):
    return squeezed(row["precision"]) not in WIDE


def model_of(row):
    """Some tables name the precision in the model, too."""
    return squeezed(re.sub(r"(?i)\b(bf16|fp8)\b", "", row["model"]))


def variant_of(row):
    """torchtitan names float8 in the variant."""
    return row["variant"].replace("+float8", "")


def pairs(rows):
    """[(row in 16 bits, row in fewer)] that differ in precision alone."""
    groups = collections.defaultdict(lambda: ([], []))
    for row in rows:
        key = (model_of(row), variant_of(row), *(row[column] for column in SAME))
        groups[key][is_low(row)].append(row)
    return [(wide, low) for wides, lows in groups.values() for wide in wides for low in lows]


def speed_up(pair, of):
    wide, low = pair
    return wide[of] / low[of]


def miss(pair):
    """Forecast less measured."""
    return speed_up(pair, "forecast_s") - speed_up(pair, "measured_s")


def share_within(found, points=POINTS):
    return statistics.mean(abs(miss(pair)) <= points for pair in found)


def pair_table(rows, gpu):
    """A line for every program, GPU and precision; `gpu` names a row's."""
    groups = collections.defaultdict(list)
    for pair in pairs(rows):
        groups[pair[1]["program"], gpu(pair[1]), pair[1]["precision"]].append(pair)
    lines = [[*name, str(len(found)), f"{statistics.median(speed_up(pair, 'measured_s') for pair in found):.2f}",
              f"{statistics.median(speed_up(pair, 'forecast_s') for pair in found):.2f}",
              percent(statistics.mean(abs(miss(pair)) for pair in found)), signed(max(map(miss, found), key=abs)),
              f"{sum(abs(miss(pair)) <= POINTS for pair in found)} of {len(found)}"] for name, found in sorted(groups.items())]
    return table(["program", "GPU", "precision", "pairs", "measured, median", "forecast, median", "mean miss", "worst", "within 6 points"],
                 lines, "lllrrrrrr")
