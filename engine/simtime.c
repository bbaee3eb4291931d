#include "engine/simtime.h"

bool pc_time_from_seconds(double seconds, pc_time *time) {
    double picoseconds = seconds * (double)PC_PICOSECONDS_PER_SECOND;
    if (!(picoseconds >= 0.0) || picoseconds >= 0x1p63) return false;
    pc_time whole = (pc_time)picoseconds;
    *time = whole + (picoseconds - (double)whole >= 0.5); /* the difference is exact */
    return true;
}

double pc_time_to_seconds(pc_time time) {
    return (double)time / (double)PC_PICOSECONDS_PER_SECOND;
}
