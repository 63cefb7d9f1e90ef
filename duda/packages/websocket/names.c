// SPDX-License-Identifier: Apache-2.0
/*
 * A hash table of names of channels (names.h).
 */
#include "names.h"

#include "channels.h"

#include <duda/mem.h>
#include <duda/packages/websocket/websocket.h>
#include <monkey/base/siphash.h>

#include <assert.h>
#include <limits.h>
#include <string.h>

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
