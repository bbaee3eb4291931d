/* kineto_private.h: one event of a trace. Private to calib/trace/kineto*.c. */
#ifndef PC_CALIB_TRACE_KINETO_PRIVATE_H
#define PC_CALIB_TRACE_KINETO_PRIVATE_H

#include "engine/error.h"
#include "storage/json_stream.h"

#include <stdbool.h>
#include <stdint.h>

enum { PC_KINETO_NAME_SIZE = 64, PC_KINETO_NOT_GIVEN = -1 };

typedef enum pc_kineto_sort {
    PC_KINETO_OTHER,
    PC_KINETO_ANNOTATION,        /* of a thread */
    PC_KINETO_DEVICE_ANNOTATION, /* of a stream */
    PC_KINETO_KERNEL,
    PC_KINETO_MEMORY
} pc_kineto_sort;

/* Numbers that are not there are PC_KINETO_NOT_GIVEN. */
typedef struct pc_kineto_event {
    pc_kineto_sort sort;
    char phase;
    char name[PC_KINETO_NAME_SIZE]; /* cut */
    bool has_start, has_duration;
    int64_t start_ns, duration_ns;
    int64_t process, thread; /* of a GPU: device and stream */
    bool is_send, is_receive;
    int64_t elements, element_bytes, source, target;
    int64_t group[2]; /* the ranks of its group, if they are two */
    int64_t bytes, allocated, device_type;
} pc_kineto_event;

/* Reads the object whose begin was read. */
pc_code pc_kineto_event_read(pc_json *json, pc_kineto_event *event, pc_error *error);

/* Microseconds as they are written, in whole nanoseconds: exact, for a double has no room for the time since 1970.
 * False if there are over 292 years of them, or they are below zero. */
bool pc_kineto_time(const char *text, int64_t *time_ns);

/* A whole number; what stands behind a point is cut off. False if it is no number or over 2^62. */
bool pc_kineto_integer(const char *text, int64_t *number);

#endif
