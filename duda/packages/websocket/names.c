// SPDX-License-Identifier: Apache-2.0
/*
 * A hash table of names of channels (names.h).
 */
#include "names.h"

#include "channels.h"

#include <duda/mem.h>
#include <duda/packages/websocket/websocket.h>
#include <monkey/siphash.h>

#include <assert.h>
#include <limits.h>
#include <string.h>

enum { BUCKETS_MIN = 16 };

int ws_names_init(struct ws_names *names)
{
    *names = (struct ws_names){.last = WS_CHANNEL_ALL};
    pthread_mutex_init(&names->lock, NULL);
    return mk_siphash_key(names->key);
}

void ws_names_release(struct ws_names *names)
{
    assert(!names->n);
    pthread_mutex_destroy(&names->lock);
    mem->free(names->buckets);
}

static struct ws_name **get_bucket(const struct ws_names *names, const char *text)
{
    return &names->buckets[mk_siphash(names->key, text, strlen(text)) & (names->n_buckets - 1)];
}

/* Returns where the pointer to a name is, or the end of its bucket. */
static struct ws_name **find_place(const struct ws_names *names, const char *text)
{
    struct ws_name **place = get_bucket(names, text);
    while (*place && strcmp((*place)->text, text) != 0)
        place = &(*place)->next;
    return place;
}

/* Keeps as many buckets as names. Returns false if there is none. */
static bool grow_table(struct ws_names *names)
{
    struct ws_names old = *names;
    if (names->n < names->n_buckets)
        return true;
    unsigned n = old.n_buckets ? old.n_buckets * 2 : BUCKETS_MIN;
    struct ws_name **buckets = mem->alloc_z(n * sizeof(struct ws_name *));
    if (!buckets)
        return old.buckets; /* longer lists will do */
    names->buckets = buckets;
    names->n_buckets = n;
    for (unsigned i = 0; i < old.n_buckets; i++) {
        for (struct ws_name *name = old.buckets[i], *next; name; name = next) {
            next = name->next;
            struct ws_name **bucket = get_bucket(names, name->text);
            name->next = *bucket;
            *bucket = name;
        }
    }
    mem->free(old.buckets);
    return true;
}

/* Returns a number that no channel has. */
static int choose_number(struct ws_names *names, struct channels *channels)
{
    do
        names->last = names->last == INT_MIN ? WS_CHANNEL_ALL - 1 : names->last - 1;
    while (channels_count(channels, names->last));
    return names->last;
}

static struct ws_name *add_name(struct ws_names *names, struct channels *channels, const char *text)
{
    struct ws_name *name = grow_table(names) ? mem->alloc_z(sizeof(*name) + strlen(text) + 1) : NULL;
    if (!name)
        return NULL;
    memcpy(name->text, text, strlen(text));
    name->number = choose_number(names, channels);
    *find_place(names, text) = name;
    names->n++;
    return name;
}

struct ws_name *ws_names_get(struct ws_names *names, struct channels *channels, const char *text)
{
    pthread_mutex_lock(&names->lock);
    struct ws_name *name = names->buckets ? *find_place(names, text) : NULL;
    if (!name)
        name = add_name(names, channels, text);
    if (name)
        name->refs++;
    pthread_mutex_unlock(&names->lock);
    return name;
}

void ws_names_put(struct ws_names *names, struct ws_name *name)
{
    if (!name)
        return;
    pthread_mutex_lock(&names->lock);
    if (--name->refs == 0) {
        *find_place(names, name->text) = name->next;
        names->n--;
        mem->free(name);
    }
    pthread_mutex_unlock(&names->lock);
}

int ws_names_find(struct ws_names *names, const char *text)
{
    pthread_mutex_lock(&names->lock);
    const struct ws_name *name = names->buckets ? *find_place(names, text) : NULL;
    int number = name ? name->number : WS_CHANNEL_ALL;
    pthread_mutex_unlock(&names->lock);
    return number;
}
