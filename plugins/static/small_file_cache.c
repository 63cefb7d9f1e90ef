// SPDX-License-Identifier: Apache-2.0
/*
 * Caches one small file for a turn of the loop (small_file_cache.h).
 */
#include "small_file_cache.h"

#include "find.h"

#include <assert.h>
#include <sys/uio.h>
#include <unistd.h>

static bool is_same_path(const struct small_file_cache *cache, uint64_t turn, const struct static_location *at)
{
    return cache->turn == turn && cache->site == at->site && mk_str_eq(mk_str(cache->path, cache->path_len), at->path);
}

void mk__static_small_file_cache_clear(struct small_file_cache *cache)
{
    cache->turn = 0;
}

static void start_entry(struct small_file_cache *cache, uint64_t turn, const struct static_location *at)
{
    mk__static_small_file_cache_clear(cache);
    if (at->path.len > sizeof(cache->path))
        return;
    cache->turn = turn;
    cache->site = at->site;
    cache->path_len = at->path.len;
    memcpy(cache->path, at->path.p, at->path.len);
    cache->found.kind = FOUND_NOTHING;
}

/* Reads the file, unless its size has changed or the read would wait for a disk. */
static void store_file(struct small_file_cache *cache, const struct static_location *at, struct find_result *f)
{
    assert(is_same_path(cache, cache->turn, at));
    struct iovec to = {.iov_base = cache->bytes, .iov_len = sizeof(cache->bytes)};
    if (f->kind != FOUND_FILE || f->varies || f->bytes > sizeof(cache->bytes) ||
        preadv2(f->fd, &to, 1, 0, f->in_memory ? 0 : RWF_NOWAIT) != (ssize_t)f->bytes)
        return;
    close(f->fd);
    f->fd = -1;
    f->content = mk_str(cache->bytes, f->bytes);
    cache->found = *f;
    if (f->name.p == at->path.p)
        cache->found.name = MK_STR_NONE;
}

struct find_result mk__static_small_file_cache_find(struct small_file_cache *cache, uint64_t turn,
                                                    const struct static_location *at, const struct mk_accept *accept)
{
    assert(turn > 0);
    bool again = is_same_path(cache, turn, at), is_kept = again && cache->found.kind == FOUND_FILE;
    struct find_result f = is_kept ? cache->found : find_path(at->site, at->path, accept, true);
    if (!again)
        start_entry(cache, turn, at);
    else if (!is_kept)
        store_file(cache, at, &f);
    else if (!f.name.p)
        f.name = at->path;
    return f;
}
