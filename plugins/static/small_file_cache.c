// SPDX-License-Identifier: Apache-2.0
/*
 * Caches one small file for a turn of the loop (small_file_cache.h).
 */
#include "small_file_cache.h"

#include "find.h"

#include <sys/uio.h>
#include <unistd.h>

static bool is_same_path(const struct small_file_cache *r, uint64_t turn, const struct static_location *at)
{
    return r->turn == turn && r->site == at->site && mk_str_eq(mk_str(r->path, r->path_len), at->path);
}

void small_file_cache_clear(struct small_file_cache *r)
{
    r->turn = 0;
}

static void start_entry(struct small_file_cache *r, uint64_t turn, const struct static_location *at)
{
    small_file_cache_clear(r);
    if (at->path.len > sizeof(r->path))
        return;
    r->turn = turn;
    r->site = at->site;
    r->path_len = at->path.len;
    memcpy(r->path, at->path.p, at->path.len);
    r->found.kind = FOUND_NOTHING;
}

/* Reads the file, unless its size has changed or the read would wait for a disk. */
static void store_file(struct small_file_cache *r, const struct static_location *at, struct find_result *f)
{
    struct iovec to = {.iov_base = r->bytes, .iov_len = sizeof(r->bytes)};
    if (f->kind != FOUND_FILE || f->varies || f->bytes > sizeof(r->bytes) ||
        preadv2(f->fd, &to, 1, 0, f->in_memory ? 0 : RWF_NOWAIT) != (ssize_t)f->bytes)
        return;
    close(f->fd);
    f->fd = -1;
    f->content = mk_str(r->bytes, f->bytes);
    r->found = *f;
    if (f->name.p == at->path.p)
        r->found.name = MK_STR_NONE;
}

struct find_result small_file_cache_find(struct small_file_cache *r, uint64_t turn, const struct static_location *at,
                                         const struct mk_accept *accept)
{
    bool again = is_same_path(r, turn, at);
    if (again && r->found.kind == FOUND_FILE) {
        struct find_result f = r->found;
        if (!f.name.p)
            f.name = at->path;
        return f;
    }
    struct find_result f = find_path(at->site, at->path, accept, true);
    if (again)
        store_file(r, at, &f);
    else
        start_entry(r, turn, at);
    return f;
}
