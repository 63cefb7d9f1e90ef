// SPDX-License-Identifier: Apache-2.0
/*
 * How many WebSockets each channel has, and the names of channels (channels.h).
 */
#include "channels.h"

#include <duda/mem.h>
#include <duda/package.h>
#include <duda/packages/websocket/websocket.h>
#include <monkey/base/siphash.h>

#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

struct channel {
    struct mk_hash_node node; /* in channels.table */
    int number;
    size_t count;
};

void channels_init(struct channels *channels, const struct mk_counter *counter)
{
    *channels = (struct channels){.counter = counter};
    pthread_mutex_init(&channels->lock, NULL);
}

void channels_release(struct channels *channels)
{
    assert(!channels->table.n);
    pthread_mutex_destroy(&channels->lock);
    mk_hash_release(&channels->table, NULL);
}

static struct channel *find_channel(const struct channels *channels, int number)
{
    struct mk_hash_node *n;
    MK_HASH_EACH(&channels->table, mk_hash_number((uint32_t)number), n) {
        struct channel *c = MK_CONTAINER_OF(n, struct channel, node);
        if (c->number == number)
            return c;
    }
    return NULL;
}

static struct channel *get_channel(struct channels *channels, int number)
{
    struct channel *c = find_channel(channels, number);
    if (c || !(c = mem->alloc_z(sizeof(*c))))
        return c;
    c->number = number;
    if (mk_hash_insert(&channels->table, NULL, &c->node, mk_hash_number((uint32_t)number)) < 0) {
        mem->free(c);
        return NULL;
    }
    duda_package_loader->count(NULL, channels->counter, 1);
    return c;
}

bool channels_join(struct channels *channels, int number)
{
    if (number == WS_CHANNEL_ALL)
        return true;
    pthread_mutex_lock(&channels->lock);
    struct channel *c = get_channel(channels, number);
    if (c)
        c->count++;
    pthread_mutex_unlock(&channels->lock);
    return c;
}

void channels_leave(struct channels *channels, int number)
{
    if (number == WS_CHANNEL_ALL)
        return;
    pthread_mutex_lock(&channels->lock);
    struct channel *c = find_channel(channels, number);
    assert(c && c->count);
    if (--c->count == 0) {
        mk_hash_remove(&channels->table, &c->node);
        duda_package_loader->count(NULL, channels->counter, -1);
        mem->free(c);
    }
    pthread_mutex_unlock(&channels->lock);
}

size_t channels_count(struct channels *channels, int number)
{
    pthread_mutex_lock(&channels->lock);
    const struct channel *c = find_channel(channels, number);
    size_t count = c ? c->count : 0;
    pthread_mutex_unlock(&channels->lock);
    return count;
}

/* ── names ── */

int ws_names_init(struct ws_names *names)
{
    *names = (struct ws_names){.last = WS_CHANNEL_ALL};
    pthread_mutex_init(&names->lock, NULL);
    return mk_siphash_key(names->key);
}

void ws_names_release(struct ws_names *names)
{
    assert(!names->table.n);
    pthread_mutex_destroy(&names->lock);
    mk_hash_release(&names->table, NULL);
}

static uint64_t hash_text(const struct ws_names *names, const char *text)
{
    return mk_siphash(names->key, text, strlen(text));
}

static struct ws_name *find_name(const struct ws_names *names, const char *text)
{
    uint64_t hash = hash_text(names, text);
    struct mk_hash_node *n;
    MK_HASH_EACH(&names->table, hash, n) {
        struct ws_name *name = MK_CONTAINER_OF(n, struct ws_name, node);
        if (strcmp(name->text, text) == 0)
            return name;
    }
    return NULL;
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
    struct ws_name *name = mem->alloc_z(sizeof(*name) + strlen(text) + 1);
    if (!name)
        return NULL;
    memcpy(name->text, text, strlen(text));
    if (mk_hash_insert(&names->table, NULL, &name->node, hash_text(names, text)) < 0) {
        mem->free(name);
        return NULL;
    }
    name->number = choose_number(names, channels);
    return name;
}

struct ws_name *ws_names_get(struct ws_names *names, struct channels *channels, const char *text)
{
    pthread_mutex_lock(&names->lock);
    struct ws_name *name = find_name(names, text);
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
        mk_hash_remove(&names->table, &name->node);
        mem->free(name);
    }
    pthread_mutex_unlock(&names->lock);
}

int ws_names_find(struct ws_names *names, const char *text)
{
    pthread_mutex_lock(&names->lock);
    const struct ws_name *name = find_name(names, text);
    int number = name ? name->number : WS_CHANNEL_ALL;
    pthread_mutex_unlock(&names->lock);
    return number;
}
