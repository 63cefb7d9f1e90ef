// SPDX-License-Identifier: Apache-2.0
/*
 * What the kernel says of this process, read from /proc. May block: for a job.
 */
#ifndef STATUS_PROCESS_H
#define STATUS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* A value that could not be read is -1. */
struct process {
    int64_t pid, threads;
    int64_t resident_bytes, virtual_bytes;
    int64_t open_fds, max_fds;
    double cpu_seconds;
    double start_time_seconds; /* since 1970 */
};

/*
 * Returns when this process was started, in seconds since 1970; -1: unknown. Two calls differ a little, because the
 * clocks that it is made of are read one after the other.
 */
double process_start_time(void);

/* Reads the other values. */
void process_read(struct process *ret);

#endif
