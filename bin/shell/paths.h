// SPDX-License-Identifier: Apache-2.0
/*
 * Which paths keep the server busy, by samples of the requests under way, of bounded number. A path is found the more
 * often the longer its requests take: what is answered at once is not seen here. Older samples count less.
 */
#ifndef SHELL_PATHS_H
#define SHELL_PATHS_H

#include "link.h"

enum { PATHS_MAX = 128, PATHS_CONNECTIONS_MAX = 200, PATHS_TEXT_BYTES = 256, PATHS_METHOD_BYTES = 24 };

struct paths_row {
    double weight;
    char method[PATHS_METHOD_BYTES], host[PATHS_TEXT_BYTES], path[PATHS_TEXT_BYTES];
};

/* Initialized with zeros. */
struct paths {
    struct paths_row rows[PATHS_MAX];
    unsigned n;
    double total;            /* weight of all requests that were seen */
    unsigned long n_samples; /* that were taken */
    double next_at;          /* when the next one may be taken: of CLOCK_MONOTONIC, in seconds */
};

/* Asks for the requests under way and adds them. Returns as link_ask(). */
int paths_sample(struct link *l, struct paths *paths);
/* Adds a request, in place of the path with the least weight if there is no room. */
void paths_add(struct paths *paths, const char *method, const char *host, const char *path);
/* Makes all that was added count less, before a sample is added. */
void paths_age(struct paths *paths);
/* Sorts the rows by weight, the greatest first. */
void paths_sort(struct paths *paths);

#endif
