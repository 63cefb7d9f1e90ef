// SPDX-License-Identifier: Apache-2.0
/*
 * The result of a run: adds up the threads' counters and prints them as JSON.
 */
#ifndef WR_LOAD_REPORT_H
#define WR_LOAD_REPORT_H

#include "loader.h"

struct report {
    const struct plan *plan;
    double started; /* seconds since 1970 */
    double seconds; /* that were counted */
    double user_us, system_us;
    const char *first_error; /* NULL: none */
    bool gave_up;
    struct counts counts;
    struct histogram latencies;
};

/* Adds up threads that have ended. */
void report_collect(struct report *r, const struct plan *plan, const struct loader *loaders, unsigned n);
/* Prints the JSON object and writes the log of latencies. Returns the exit status. */
int report_print(struct report *r);
/* Prints a line of --progress on standard error. */
void report_print_progress(const struct loader *loaders, unsigned n, double seconds);

#endif
