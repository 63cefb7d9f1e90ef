// SPDX-License-Identifier: Apache-2.0
/*
 * The table of http/recent_windows.h: each window has one place, which the window that was checked last has.
 */
#include "http/recent_windows.h"

#include <monkey/request.h>

#include <assert.h>
#include <string.h>

enum { PLACES_BITS = 8, PLACES = 1 << PLACES_BITS };

struct mk__recent_window {
    uint64_t key;   /* 0: none */
    uint32_t since; /* milliseconds; the low bits of the clock */
    uint32_t bytes; /* from the begin of the window */
};

static uint64_t make_key(uint64_t file, uint64_t at)
{
    uint64_t window = at / MK__RECENT_WINDOW_BYTES;
    return file ? (file + window * UINT64_C(0xc2b2ae3d27d4eb4f)) * UINT64_C(0x9e3779b97f4a7c15) : 0;
}

/* Returns the place of a window. NULL: nothing is remembered of it. */
static struct mk__recent_window *find_place(struct mk__recent_windows *w, uint64_t key)
{
    if (!key)
        return NULL;
    if (!w->windows)
        w->windows = mk_account_zalloc(NULL, PLACES * sizeof(*w->windows));
    if (!w->windows)
        return NULL;
    return &w->windows[key >> (64 - PLACES_BITS)];
}

int mk__recent_windows_check(struct mk__recent_windows *w, int fd, uint64_t file, uint64_t from, uint64_t to,
                             uint64_t now_ms)
{
    assert(from < to && to <= mk__recent_windows_end(from));
    uint64_t key = make_key(file, from);
    uint32_t begin = from % MK__RECENT_WINDOW_BYTES, end = begin + (uint32_t)(to - from), now = (uint32_t)now_ms;
    struct mk__recent_window *place = find_place(w, key);
    if (place && place->key == key && now - place->since < MK__RECENT_WINDOW_MS && end <= place->bytes)
        return 0;
    int err = mk_file_check_cached(fd, from, to);
    if (err == 0 && place && begin == 0)
        *place = (struct mk__recent_window){.key = key, .since = now, .bytes = end};
    return err;
}

void mk__recent_windows_release(struct mk__recent_windows *w)
{
    mk_account_free(NULL, w->windows, PLACES * sizeof(*w->windows));
}
