/* team_module.h: between the command and pipecast-mpi.so, which alone knows MPI.
 *
 * The command itself needs no MPI library and starts without one; it opens the module where a launcher started it as
 * one of several. All that passes are small messages of whole numbers.
 */
#ifndef PC_SWEEP_TEAM_MODULE_H
#define PC_SWEEP_TEAM_MODULE_H

#include "engine/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Raised with every change of this header: a module beside a command of another build is refused. */
enum { PC_TEAM_MODULE_LAYOUT = 3 };

/* Numbers in a message, at most: a code and an error. */
enum { PC_TEAM_MESSAGE_MAX = 2 + sizeof(pc_error) / 8 };

/* What a message is about. Between two ranks those of one kind arrive in the order in which they were sent. */
typedef enum pc_team_kind { PC_TEAM_WORK = 1, PC_TEAM_VERDICT, PC_TEAM_LEAVE, PC_TEAM_BYTES } pc_team_kind;

/* Called from one thread only, the one that called start. A fault of the network ends the process, and the launcher
 * then ends the others: such is MPI. */
typedef struct pc_team_module {
    int64_t layout;   /* PC_TEAM_MODULE_LAYOUT */
    const char *name; /* of the library, with its version */

    /* Joins the other processes: which one this is, and how many there are. False if there is no way to. */
    bool (*start)(void *self, int64_t *number, int64_t *count);

    /* Adds `numbers` up over the ranks of this machine; every rank must call it. */
    void (*sum_on_machine)(void *self, int64_t *numbers, int64_t count);

    void (*send)(void *self, int64_t to, pc_team_kind kind, const int64_t *numbers, int64_t count);

    /* Takes a message of that kind, of at most PC_TEAM_MESSAGE_MAX numbers, where one has come: how many numbers; -1
     * where none has. Does not wait. */
    int64_t (*receive)(void *self, pc_team_kind kind, int64_t *from, int64_t *numbers);

    /* Leaves; every rank must call it. */
    void (*end)(void *self);
} pc_team_module;

/* What the module exports, by this name. */
#define PC_TEAM_MODULE_SYMBOL "pc_team_over_mpi"

#endif
