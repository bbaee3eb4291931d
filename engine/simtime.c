#include "engine/simtime.h"

#include <math.h>

bool pc_time_from_seconds(double seconds, pc_time *time) {
    double picoseconds = round(seconds * (double)PC_PICOSECONDS_PER_SECOND);
    if (!(seconds >= 0.0) || picoseconds >= 0x1p63) return false;
    *time = (pc_time)picoseconds;
    return true;
}

double pc_time_to_seconds(pc_time time) {
    return (double)time / (double)PC_PICOSECONDS_PER_SECOND;
}
