// SPDX-License-Identifier: Apache-2.0
/*
 * The folders of places.h.
 */
#include "places.h"

#include <monkey/arena.h>

#include <errno.h>

static void count_place(const struct mk_file_place *place, void *ctx)
{
    struct places *places = ctx;
    (void)place;
    places->size++;
}

static void keep_place(const struct mk_file_place *place, void *ctx)
{
    struct places *places = ctx;
    if (places->n < places->size)
        places->items[places->n++] = *place;
}

int places_read(struct places *places, const struct mk_host *host)
{
    *places = (struct places){.host = host, .server = mk_generation_file_server(mk_host_generation(host))};
    if (!places->server)
        return -ENOENT;
    places->server->each_place(host, count_place, places);
    places->items = mk_account_alloc(NULL, (places->size + 1) * sizeof(*places->items));
    if (!places->items)
        return -ENOMEM;
    places->server->each_place(host, keep_place, places);
    return 0;
}

void places_release(struct places *places)
{
    mk_account_free(NULL, places->items, (places->size + 1) * sizeof(*places->items));
    places->items = NULL;
    places->n = 0;
}

static bool has_entry(const struct mk_file_place *place, const struct entry_key_bytes *key)
{
    return place->inode == key->inode && place->device == key->device && place->mount == key->mount &&
           (!place->name.p || mk_str_eq(place->name, mk_str(key->name, key->name_len)));
}

/* Writes the path of a name below the place. Returns its length; 0: it is too long. */
static size_t write_path(const struct mk_file_place *place, const struct entry_key_bytes *key, char out[PATH_BYTES])
{
    size_t n = place->url.len, name_len = place->name.p ? 0 : key->name_len + 1;
    if (n + name_len >= PATH_BYTES)
        return 0;
    if (n)
        memcpy(out, place->url.p, n);
    if (name_len) {
        out[n++] = '/';
        memcpy(out + n, key->name, key->name_len);
        n += key->name_len;
    }
    out[n] = '\0';
    return n;
}

size_t places_find_path(const struct places *places, const struct entry_key_bytes *key, unsigned *at,
                        char out[PATH_BYTES])
{
    while (*at < places->n) {
        const struct mk_file_place *place = &places->items[(*at)++];
        size_t n = has_entry(place, key) ? write_path(place, key, out) : 0;
        if (n && !places->server->hides(places->host, mk_str(out, n)))
            return n;
    }
    return 0;
}
