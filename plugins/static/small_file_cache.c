// SPDX-License-Identifier: Apache-2.0
/*
 * Caches one small file for a turn of the loop.
 */
#include "static.h"

#include <monkey/base/arena.h>

#include <assert.h>
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

/* A file that was read; the cache and responses hold it. */
struct small_file {
    struct mk_account *account;
    unsigned refs;
    struct mk_response_block block;                                   /* without text: not formatted yet */
    char lines[MK_FILE_BLOCK_BYTES], bytes[SMALL_FILE_BYTES_MAX + 1]; /* a file that has grown fills one byte more */
};

static void get_file(void *owned)
{
    struct small_file *file = owned;
    file->refs++;
}

static void put_file(void *owned)
{
    struct small_file *file = owned;
    assert(file->refs);
    if (--file->refs == 0)
        mk_account_free(file->account, file, sizeof(*file));
}

static const struct mk_owner owner = {get_file, put_file};

void mk__static_small_file_cache_init(struct small_file_cache *cache, struct mk_account *account)
{
    cache->account = account;
    cache->turn = 0;
    cache->file = NULL;
}

void mk__static_small_file_cache_clear(struct small_file_cache *cache)
{
    cache->turn = 0;
    cache->is_read = false;
}

void mk__static_small_file_cache_release(struct small_file_cache *cache)
{
    mk__static_small_file_cache_clear(cache);
    if (cache->file)
        put_file(cache->file);
    cache->file = NULL;
}

static bool is_same_path(const struct small_file_cache *cache, uint64_t turn, const struct static_location *at)
{
    return cache->turn == turn && cache->site == at->site && mk_str_eq(mk_str(cache->path, cache->path_len), at->path);
}

/* Makes memory that no response holds. Returns 0 or -ENOMEM. */
static int renew_file(struct small_file_cache *cache)
{
    struct small_file *old = cache->file;
    if (!old || old->refs > 1) {
        if (old)
            put_file(old);
        cache->file = mk_account_alloc(cache->account, sizeof(*cache->file));
        if (!cache->file)
            return -ENOMEM;
        cache->file->account = cache->account;
        cache->file->refs = 1;
    }
    cache->file->block.text = MK_STR_NONE;
    return 0;
}

/* Reads the file, unless its size has changed, the read would wait for a disk, or there is no memory. */
static void store_file(struct small_file_cache *cache, const struct static_location *at, struct find_result *f)
{
    assert(is_same_path(cache, cache->turn, at) && !cache->is_read);
    if (f->kind != FOUND_FILE || f->varies || f->bytes > SMALL_FILE_BYTES_MAX || renew_file(cache) < 0)
        return;
    struct small_file *file = cache->file;
    struct iovec to = {.iov_base = file->bytes, .iov_len = f->bytes + 1};
    if (preadv2(f->fd, &to, 1, 0, f->in_memory ? 0 : RWF_NOWAIT) != (ssize_t)f->bytes)
        return;
    close(f->fd);
    f->fd = -1;
    f->content = mk_str(file->bytes, f->bytes);
    f->owner = &owner;
    f->owned = file;
    cache->is_read = true;
    cache->found = *f;
    if (f->name.p == at->path.p)
        cache->found.name = MK_STR_NONE;
}

static struct find_result get_found(const struct small_file_cache *cache, const struct static_location *at)
{
    struct find_result f = cache->found;
    if (cache->file->block.text.p)
        f.block = &cache->file->block;
    if (!f.name.p)
        f.name = at->path;
    return f;
}

struct find_result mk__static_small_file_cache_find(struct small_file_cache *cache, uint64_t turn,
                                                    const struct static_location *at, const struct find_mode *mode)
{
    assert(turn > 0 && mode->cached);
    bool again = is_same_path(cache, turn, at);
    if (again && cache->is_read)
        return get_found(cache, at);
    struct find_result f = mk__static_find_path_with(at->site, at->path, mode);
    if (f.owner) /* the file cache keeps it */
        return f;
    if (again) {
        store_file(cache, at, &f);
        return f;
    }
    mk__static_small_file_cache_clear(cache);
    if (at->path.len <= sizeof(cache->path)) {
        cache->turn = turn;
        cache->site = at->site;
        cache->path_len = at->path.len;
        memcpy(cache->path, at->path.p, at->path.len);
    }
    return f;
}

void mk__static_small_file_cache_add_lines(const struct mk_file *file)
{
    struct small_file *own = file->owned;
    if (file->owner != &owner || own->block.text.p)
        return;
    if (mk_file_block(file, own->lines, &own->block) < 0)
        own->block.text = MK_STR_NONE;
}
