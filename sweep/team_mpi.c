/* The module pipecast-mpi.so: messages between ranks, over MPI. */
#include "sweep/team_build.h"
#include "sweep/team_module.h"

#include <mpi.h>
#include <stddef.h>
#include <stdlib.h>

/* What Open MPI would say, or do, without need: our messages are small and few. Who has set it keeps it. */
static void quieten(void) {
    static const char *const settings[][2] = {
        {"OMPI_MCA_btl_base_warn_component_unused", "0"},      /* an InfiniBand card that is not used */
        {"OMPI_MCA_mca_base_component_show_load_errors", "0"}, /* libraries of cards that are not there */
        {"OMPI_MCA_opal_warn_on_missing_libcuda", "0"},        /* machines without a GPU */
        {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},  /* ptrace between processes, refused in containers */
        {"OMPI_MCA_mpi_yield_when_idle", "1"},                 /* waiting takes no core from threads that work */
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) setenv(settings[i][0], settings[i][1], 0);
}

static bool start(void *self, int64_t *number, int64_t *count) {
    (void)self;
    int provided, rank, ranks;
    quieten();
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) || provided < MPI_THREAD_FUNNELED) return false;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    *number = rank;
    *count = ranks;
    return true;
}

static void sum_on_machine(void *self, int64_t *numbers, int64_t count) {
    (void)self;
    MPI_Comm machine;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    MPI_Allreduce(MPI_IN_PLACE, numbers, (int)count, MPI_INT64_T, MPI_SUM, machine);
    MPI_Comm_free(&machine);
}

static void send(void *self, int64_t to, pc_team_kind kind, const int64_t *numbers, int64_t count) {
    (void)self;
    MPI_Send(numbers, (int)count, MPI_INT64_T, (int)to, (int)kind, MPI_COMM_WORLD);
}

static int64_t receive(void *self, pc_team_kind kind, int64_t *from, int64_t *numbers) {
    (void)self;
    int has_come, count;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, (int)kind, MPI_COMM_WORLD, &has_come, &status);
    if (!has_come) return -1;
    MPI_Recv(numbers, PC_TEAM_MESSAGE_MAX, MPI_INT64_T, status.MPI_SOURCE, (int)kind, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT64_T, &count);
    *from = status.MPI_SOURCE;
    return count;
}

static void end(void *self) {
    (void)self;
    MPI_Finalize();
}

extern __attribute__((visibility("default"))) const pc_team_module pc_team_over_mpi;
const pc_team_module pc_team_over_mpi = {.layout = PC_TEAM_MODULE_LAYOUT,
                                         .name = PC_MPI_VERSION,
                                         .start = start,
                                         .sum_on_machine = sum_on_machine,
                                         .send = send,
                                         .receive = receive,
                                         .end = end};
