#include "kernels/transfer.h"

const char *pc_transfer_name(pc_transfer_kind transfer) {
    switch (transfer) {
    case PC_TRANSFER_SEND_RECV:
        return "send_recv";
    case PC_TRANSFER_ALL_REDUCE:
        return "all_reduce";
    case PC_TRANSFER_ALL_GATHER:
        return "all_gather";
    case PC_TRANSFER_REDUCE_SCATTER:
        return "reduce_scatter";
    case PC_TRANSFER_ALL_TO_ALL:
        return "all_to_all";
    case PC_TRANSFERS:
        break;
    }
    return "";
}

double pc_transfer_bus_factor(pc_transfer_kind transfer, int ranks) {
    double others = (double)(ranks - 1) / (double)ranks;
    switch (transfer) {
    case PC_TRANSFER_ALL_REDUCE:
        return 2.0 * others;
    case PC_TRANSFER_ALL_GATHER:
    case PC_TRANSFER_REDUCE_SCATTER:
    case PC_TRANSFER_ALL_TO_ALL:
        return others;
    default:
        return 1.0;
    }
}

void pc_transfer_buffers(pc_transfer_kind transfer, int ranks, int64_t count, int64_t *send, int64_t *receive) {
    *send = transfer == PC_TRANSFER_ALL_GATHER ? count / ranks : count;
    *receive = transfer == PC_TRANSFER_REDUCE_SCATTER ? count / ranks : count;
}
