// SPDX-License-Identifier: Apache-2.0
/*
 * Samples of requests under way (paths.h).
 */
#include "paths.h"

#include "screen.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * A second has up to ten samples. The server's workers list connections for a fiftieth of their time at most. A sample
 * counts half after 14 seconds, and not at all when less than a hundredth is left of it.
 */
static const double period_s = 0.1, times_idle = 50, age_factor = 0.995, weight_min = 0.01;

static void drop_row(struct paths *paths, unsigned i)
{
    paths->total -= paths->rows[i].weight;
    paths->rows[i] = paths->rows[--paths->n];
}

void paths_age(struct paths *paths)
{
    paths->total = 0;
    for (unsigned i = 0; i < paths->n; i++) {
        paths->rows[i].weight *= age_factor;
        paths->total += paths->rows[i].weight;
    }
    for (unsigned i = paths->n; i-- > 0;)
        if (paths->rows[i].weight < weight_min)
            drop_row(paths, i);
}

static unsigned find_least(const struct paths *paths)
{
    unsigned least = 0;
    for (unsigned i = 1; i < paths->n; i++)
        if (paths->rows[i].weight < paths->rows[least].weight)
            least = i;
    return least;
}

void paths_add(struct paths *paths, const char *method, const char *host, const char *path)
{
    struct paths_row row = {.weight = 1};
    snprintf(row.method, sizeof(row.method), "%s", method);
    snprintf(row.host, sizeof(row.host), "%s", host);
    snprintf(row.path, sizeof(row.path), "%s", path);
    paths->total++;
    for (unsigned i = 0; i < paths->n; i++) {
        struct paths_row *each = &paths->rows[i];
        if (strcmp(each->path, row.path) == 0 && strcmp(each->host, row.host) == 0 &&
            strcmp(each->method, row.method) == 0) {
            each->weight++;
            return;
        }
    }
    if (paths->n == PATHS_MAX)
        drop_row(paths, find_least(paths));
    paths->rows[paths->n++] = row;
}

static int compare_rows(const void *left, const void *right)
{
    const struct paths_row *a = left, *b = right;
    if (a->weight != b->weight)
        return a->weight < b->weight ? 1 : -1;
    int order = strcmp(a->path, b->path);
    return order ? order : strcmp(a->host, b->host);
}

void paths_sort(struct paths *paths)
{
    qsort(paths->rows, paths->n, sizeof(paths->rows[0]), compare_rows);
}

static bool take_connection(struct object *o, const char *line, void *ctx)
{
    const char *method = object_get(o, "method"), *host = object_get(o, "host"), *path = object_get(o, "path");
    (void)line;
    if (method && host && path)
        paths_add(ctx, method, host, path);
    return true;
}

int paths_sample(struct link *l, struct paths *paths)
{
    char line[64];
    struct mk_buf error;
    double start = screen_time();
    mk_buf_init(&error, 4096);
    paths_age(paths);
    snprintf(line, sizeof(line), "connections request=yes limit=%d", PATHS_CONNECTIONS_MAX);
    int result = link_ask(l, mk_str_c(line), -1, take_connection, paths, &error);
    mk_buf_release(&error);
    double took = screen_time() - start;
    paths->n_samples++;
    paths->next_at = start + (took * times_idle > period_s ? took * times_idle : period_s);
    return result;
}
