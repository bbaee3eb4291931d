#include "results/link_name.h"

#include <stdio.h>

bool pc_link_has_replicas(const pc_engine_trace *trace) {
    for (int64_t i = 0; i < trace->link_count; i++)
        if (trace->link_replica[i] > 0) return true;
    return false;
}

void pc_link_name(const pc_engine_trace *trace, int64_t link, bool with_replica, char name[PC_LINK_NAME_SIZE]) {
    static const char *const words[PC_LINK_SORTS] = {
        [PC_LINK_STAGES] = "", [PC_LINK_DOMAIN] = "NVLink", [PC_LINK_NIC] = "NIC", [PC_LINK_UPLINK] = "uplink"};
    char replica[32] = "";
    int device = trace->link_device[link];
    bool is_in = trace->link_is_in[link];
    if (with_replica) snprintf(replica, sizeof replica, "replica %d, ", trace->link_replica[link]);
    if (trace->link_sort[link] == PC_LINK_STAGES)
        snprintf(name, PC_LINK_NAME_SIZE, "%sstage %d %s %d", replica, device, is_in ? "from" : "to",
                 trace->link_peer[link]);
    else
        snprintf(name, PC_LINK_NAME_SIZE, "%sstage %d %s %s", replica, device, words[trace->link_sort[link]],
                 is_in ? "in" : "out");
}
