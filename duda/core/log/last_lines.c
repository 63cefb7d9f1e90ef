// SPDX-License-Identifier: Apache-2.0
/*
 * The ring of the last messages of a service (last_lines.h). Its pages are touched as lines are added.
 */
#include "log/last_lines.h"

#include "common/heap.h"
#include "common/sanitize.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

struct last_lines {
    _Atomic unsigned refs;
    pthread_mutex_t lock; /* of what follows */
    uint64_t all;         /* lines that were added; the next one goes to all % LAST_LINES_MAX */
    struct last_line lines[LAST_LINES_MAX];
};

struct last_lines *last_lines_new(void)
{
    struct last_lines *last = mk_account_alloc(NULL, sizeof(*last)); /* not zeroed: it is larger than what is used */
    if (!last)
        return NULL;
    last->refs = 1;
    last->all = 0;
    pthread_mutex_init(&last->lock, NULL);
    return last;
}

struct last_lines *last_lines_get(struct last_lines *last)
{
    if (last)
        last->refs++;
    return last;
}

void last_lines_put(struct last_lines *last)
{
    if (!last || --last->refs > 0)
        return;
    pthread_mutex_destroy(&last->lock);
    heap_free(last, sizeof(*last));
}

static int64_t read_wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void last_lines_add(struct last_lines *last, const char *kind, struct mk_str text)
{
    struct last_line line = {.wall_ms = read_wall_ms()};
    line.len = (uint16_t)sanitize_text(line.text, sizeof(line.text), text);
    assert(line.len <= sizeof(line.text));
    snprintf(line.kind, sizeof(line.kind), "%s", kind);
    pthread_mutex_lock(&last->lock);
    last->lines[last->all++ % LAST_LINES_MAX] = line;
    pthread_mutex_unlock(&last->lock);
}

unsigned last_lines_read(struct last_lines *last, struct last_line *lines, uint64_t *ret_all)
{
    pthread_mutex_lock(&last->lock);
    *ret_all = last->all;
    unsigned n = last->all < LAST_LINES_MAX ? (unsigned)last->all : LAST_LINES_MAX;
    for (unsigned i = 0; i < n; i++)
        lines[i] = last->lines[(last->all - n + i) % LAST_LINES_MAX];
    pthread_mutex_unlock(&last->lock);
    return n;
}

/* ── of a service ── */

void last_lines_keep(struct service *s)
{
    if (!last_lines_are_kept(s))
        last_lines_of(s)->ring = last_lines_new(); /* without memory there are none */
}

void last_lines_add_of(struct service *s, const char *kind, struct mk_str text)
{
    struct last_lines *last = s ? atomic_load_explicit(&last_lines_of(s)->ring, memory_order_acquire) : NULL;
    if (last)
        last_lines_add(last, kind, text);
}

void last_lines_inherit(struct service *s, struct service *before)
{
    last_lines_of(s)->ring = last_lines_get(last_lines_of(before)->ring);
}

void last_lines_release(struct service *s)
{
    last_lines_put(last_lines_of(s)->ring);
}
