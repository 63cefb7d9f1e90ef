// SPDX-License-Identifier: Apache-2.0
/*
 * The ring of the last messages of a service (recent.h). Its pages are touched as lines are added.
 */
#include "log/recent.h"

#include "common/clean.h"
#include "common/heap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

struct recent {
    _Atomic unsigned refs;
    pthread_mutex_t lock; /* of what follows */
    uint64_t all;         /* lines that were added; the next one goes to all % RECENT_LINES_MAX */
    struct recent_line lines[RECENT_LINES_MAX];
};

struct recent *recent_new(void)
{
    struct recent *recent = mk_account_alloc(NULL, sizeof(*recent)); /* not zeroed: it is larger than what is used */
    if (!recent)
        return NULL;
    recent->refs = 1;
    recent->all = 0;
    pthread_mutex_init(&recent->lock, NULL);
    return recent;
}

struct recent *recent_get(struct recent *recent)
{
    if (recent)
        recent->refs++;
    return recent;
}

void recent_put(struct recent *recent)
{
    if (!recent || --recent->refs > 0)
        return;
    pthread_mutex_destroy(&recent->lock);
    heap_free(recent, sizeof(*recent));
}

static int64_t read_wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void recent_add(struct recent *recent, const char *kind, struct mk_str text)
{
    struct recent_line line = {.wall_ms = read_wall_ms()};
    line.len = (uint16_t)clean_text(line.text, sizeof(line.text), text);
    assert(line.len <= sizeof(line.text));
    snprintf(line.kind, sizeof(line.kind), "%s", kind);
    pthread_mutex_lock(&recent->lock);
    recent->lines[recent->all++ % RECENT_LINES_MAX] = line;
    pthread_mutex_unlock(&recent->lock);
}

unsigned recent_read(struct recent *recent, struct recent_line *lines, uint64_t *ret_all)
{
    pthread_mutex_lock(&recent->lock);
    *ret_all = recent->all;
    unsigned n = recent->all < RECENT_LINES_MAX ? (unsigned)recent->all : RECENT_LINES_MAX;
    for (unsigned i = 0; i < n; i++)
        lines[i] = recent->lines[(recent->all - n + i) % RECENT_LINES_MAX];
    pthread_mutex_unlock(&recent->lock);
    return n;
}
