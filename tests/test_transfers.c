/* Ranks, their processes, their collectives: over processes of this machine in place of GPUs. */
#include "calib/device/launched.h"
#include "calib/device/measure_private.h"
#include "engine/alloc.h"
#include "kernels/transfer.h"
#include "tests/support.h"

#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pc_calibrate_request request_of(void) {
    return (pc_calibrate_request){.effort = PC_CALIBRATE_TINY, .seed = 1, .program = getenv("PC_TEST_RANK_PROGRAM")};
}

/* What nccl-tests' PERFORMANCE.md derives: of n ranks, each link carries 2(n-1)/n of an all-reduced tensor, (n-1)/n of
 * one that is gathered, scattered or exchanged, and a message once. */
static void bus_factors(void **state) {
    (void)state;
    assert_float_equal(pc_transfer_bus_factor(PC_TRANSFER_ALL_REDUCE, 8), 14.0 / 8, 1e-15);
    assert_float_equal(pc_transfer_bus_factor(PC_TRANSFER_ALL_GATHER, 4), 0.75, 1e-15);
    assert_float_equal(pc_transfer_bus_factor(PC_TRANSFER_REDUCE_SCATTER, 2), 0.5, 1e-15);
    assert_float_equal(pc_transfer_bus_factor(PC_TRANSFER_ALL_TO_ALL, 5), 0.8, 1e-15);
    assert_float_equal(pc_transfer_bus_factor(PC_TRANSFER_SEND_RECV, 8), 1.0, 1e-15);
}

static void buffers(void **state) {
    (void)state;
    int64_t send, receive;
    pc_transfer_buffers(PC_TRANSFER_ALL_GATHER, 4, 100, &send, &receive);
    assert_int_equal(send, 25);
    assert_int_equal(receive, 100);
    pc_transfer_buffers(PC_TRANSFER_REDUCE_SCATTER, 4, 100, &send, &receive);
    assert_int_equal(send, 100);
    assert_int_equal(receive, 25);
    pc_transfer_buffers(PC_TRANSFER_ALL_TO_ALL, 4, 100, &send, &receive);
    assert_int_equal(send, 100);
    assert_int_equal(receive, 100);
}

/* Every collective of every size from 1 KiB to the largest has been checked, timed and kept with its samples. */
static void check_group(const pc_profile *profile, int ranks, const char *link) {
    for (int t = 0; t < PC_TRANSFERS; t++) {
        double expected = 1024;
        for (int64_t i = 0; i < profile->transfer_count; i++) {
            const pc_transfer_measurement *x = &profile->transfer[i];
            if (x->ranks != ranks || strcmp(x->collective, pc_transfer_name((pc_transfer_kind)t)) != 0) continue;
            assert_string_equal(x->link, link);
            assert_int_equal(x->wrong, 0);
            assert_true(x->size_bytes <= expected && x->size_bytes > expected - 2 * ranks);
            assert_true(x->seconds.count >= 5 && x->first_sample >= 0);
            assert_true(x->seconds.q1 <= x->seconds.median && x->seconds.median <= x->seconds.q3);
            assert_float_equal(x->algbw * x->seconds.median, x->size_bytes, 1e-6);
            assert_float_equal(x->busbw, x->algbw * pc_transfer_bus_factor((pc_transfer_kind)t, ranks),
                               1e-6 * x->busbw);
            expected *= 2;
        }
        assert_true(expected >= 2048);
    }
}

static void one_device_is_two_ranks_over_loopback(void **state) {
    (void)state;
    pc_calibrate_request request = request_of();
    pc_profile profile = {0};
    pc_error error = {0};
    char *warnings = NULL;
    assert_int_equal(pc_measure_transfers(&request, 1, 2, &profile, &warnings, &error), PC_OK);
    if (warnings) fail_msg("%s", warnings);
    check_group(&profile, 2, "loopback");
    pc_profile_free(&profile);
}

static void every_group_size_of_four_devices(void **state) {
    (void)state;
    pc_calibrate_request request = request_of();
    pc_profile profile = {0};
    pc_error error = {0};
    char *warnings = NULL;
    assert_int_equal(pc_measure_transfers(&request, 3, 4, &profile, &warnings, &error), PC_OK);
    if (warnings) fail_msg("%s", warnings);
    check_group(&profile, 2, "loopback");
    check_group(&profile, 3, "loopback");
    pc_profile_free(&profile);
}

/* A group of which a rank fails is given up with a line that says what the rank said, and nothing hangs. */
static void a_rank_that_fails(void **state) {
    (void)state;
    pc_calibrate_request request = request_of();
    pc_profile profile = {0};
    pc_error error = {0};
    char *warnings = NULL;
    setenv("PC_TEST_RANK_FAULT", "one", 1);
    assert_int_equal(pc_measure_transfers(&request, 1, 2, &profile, &warnings, &error), PC_OK);
    unsetenv("PC_TEST_RANK_FAULT");
    assert_non_null(warnings);
    assert_string_equal(warnings, "transfers: rank 1 of 2 failed: rank 1 was told to fail\n");
    assert_int_equal(profile.transfer_count, 0);
    pc_free(warnings);
    warnings = NULL;
    request.program = "/nonexistent/pipecast";
    assert_int_equal(pc_measure_transfers(&request, 1, 2, &profile, &warnings, &error), PC_OK);
    assert_non_null(strstr(warnings, "/nonexistent/pipecast: cannot be started"));
    pc_free(warnings);
    pc_profile_free(&profile);
}

/* Three processes as mpirun starts them: the first two are a group, then all three; rank 0 has both. */
static int be_launched(int rank, const char *folder) {
    pc_launched launched = {.rank = rank, .ranks = 3, .local_rank = 0, .local_ranks = 2};
    pc_calibrate_request request = request_of();
    pc_profile profile = {0};
    pc_error error = {0};
    pc_code code = pc_measure_launched(&request, &launched, folder, 1, 3, &profile, &error);
    bool is_right = !code && (rank > 0 ? profile.transfer_count == 0 : profile.transfer_count > 0);
    if (code) fprintf(stderr, "rank %d: %s\n", rank, error.message);
    if (is_right && rank == 0) {
        check_group(&profile, 2, "unknown"); /* each sees a GPU of its own alone */
        check_group(&profile, 3, "network"); /* the third is on another node */
    }
    pc_profile_free(&profile);
    return is_right ? 0 : 1;
}

static void ranks_of_a_launcher(void **state) {
    (void)state;
    char folder[64];
    snprintf(folder, sizeof folder, "/tmp/pipecast-launched-%d", (int)getpid());
    pid_t child[2];
    for (int rank = 1; rank < 3; rank++) {
        child[rank - 1] = fork();
        if (child[rank - 1] == 0) _exit(be_launched(rank, folder));
    }
    assert_int_equal(be_launched(0, folder), 0);
    for (int i = 0; i < 2; i++) {
        int status = -1;
        waitpid(child[i], &status, 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(access(folder, F_OK), -1);
}

static volatile int interrupted;
static void interrupt(int signal) {
    (void)signal;
    interrupted = 1;
}

static void an_interruption_ends_ranks_that_hang(void **state) {
    (void)state;
    pc_calibrate_request request = request_of();
    request.is_interrupted = &interrupted;
    pc_profile profile = {0};
    pc_error error = {0};
    char *warnings = NULL;
    setenv("PC_TEST_RANK_FAULT", "hangs", 1);
    signal(SIGALRM, interrupt);
    alarm(1);
    time_t start = time(NULL);
    assert_int_equal(pc_measure_transfers(&request, 1, 2, &profile, &warnings, &error), PC_OK);
    assert_true(time(NULL) - start < 20);
    unsetenv("PC_TEST_RANK_FAULT");
    pc_free(warnings);
    pc_profile_free(&profile);
}

static void arguments(void **state) {
    (void)state;
    pc_rank_task task;
    pc_error error = {0};
    char *right[] = {"1", "4", "2", "3", "/somewhere", "network", "2.5", "65536"};
    assert_int_equal(pc_rank_task_parse(8, right, &task, &error), PC_OK);
    assert_int_equal(task.rank, 1);
    assert_int_equal(task.ranks, 4);
    assert_int_equal(task.nodes, 2);
    assert_int_equal(task.device, 3);
    assert_string_equal(task.folder, "/somewhere");
    assert_string_equal(task.link, "network");
    assert_float_equal(task.budget_s, 2.5, 0);
    assert_int_equal(task.most_bytes, 65536);
    assert_int_equal(pc_rank_task_parse(7, right, &task, &error), PC_ERROR_INPUT);
    char *wrong[] = {"4", "4", "2", "3", "/somewhere", "network", "2.5", "65536"};
    assert_int_equal(pc_rank_task_parse(8, wrong, &task, &error), PC_ERROR_INPUT);
}

/* The environments of Open MPI, of MPICH's kin and of SLURM say the same thing in three ways. */
static void launchers(void **state) {
    (void)state;
    pc_launched launched;
    assert_false(pc_launched_ranks(&launched));
    setenv("SLURM_PROCID", "9", 1);
    setenv("SLURM_NTASKS", "16", 1); /* as in a batch script */
    assert_false(pc_launched_ranks(&launched));
    setenv("SLURM_STEP_NUM_TASKS", "16", 1);
    setenv("SLURM_LOCALID", "1", 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", "8(x2)", 1);
    setenv("SLURM_JOB_ID", "12/34", 1);
    assert_true(pc_launched_ranks(&launched));
    assert_int_equal(launched.rank, 9);
    assert_int_equal(launched.ranks, 16);
    assert_int_equal(launched.local_rank, 1);
    assert_int_equal(launched.local_ranks, 8);
    assert_string_equal(launched.key, "12-34");
    setenv("OMPI_COMM_WORLD_RANK", "3", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
    assert_true(pc_launched_ranks(&launched));
    assert_int_equal(launched.rank, 3);
    assert_int_equal(launched.local_ranks, 2);
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "1", 1); /* alone under a launcher is alone, also within a step of srun */
    assert_false(pc_launched_ranks(&launched));
    setenv("SLURM_STEP_NUM_TASKS", "1", 1);
    assert_false(pc_launched_ranks(&launched));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bus_factors),
        cmocka_unit_test(buffers),
        cmocka_unit_test(one_device_is_two_ranks_over_loopback),
        cmocka_unit_test(every_group_size_of_four_devices),
        cmocka_unit_test(a_rank_that_fails),
        cmocka_unit_test(an_interruption_ends_ranks_that_hang),
        cmocka_unit_test(ranks_of_a_launcher),
        cmocka_unit_test(arguments),
        cmocka_unit_test(launchers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
