// SPDX-License-Identifier: Apache-2.0
/*
 * Opens a name, and makes an entry of what it is. A small file is read between two fstat(2) that agree, so
 * that its body, length and tag are one version. A file that was changed lately may change again without another time
 * stamp, and is not kept: it is only opened, as without the cache.
 */
#include "worker.h"

#include <errno.h>
#include <unistd.h>

enum {
    SETTLED_SECONDS = 3, /* since the last change: one more than mk_file_is_settled(), for other workers' clocks */
    NOT_KEPT_MS = 1000,  /* how long a worker remembers that a name was not kept */
    LOAD_FREE_SHARE = 8, /* this fraction of the memory stays free when files are loaded ahead */
};

/* A regular file that was opened. */
struct opened {
    int fd;
    bool may_wait; /* for a disk */
    bool has_other_names;
    struct file_identity id;
};

/* ── reading ── */

/* Reads bytes of a file; waits for a disk if it may. Returns their number or -errno. */
static ssize_t read_bytes(const struct opened *o, char *to)
{
    size_t at = 0;
    if (!o->may_wait)
        return mk_file_read_cached(o->fd, to, o->id.bytes, 0);
    while (at < o->id.bytes) {
        ssize_t n = pread(o->fd, to + at, o->id.bytes - at, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : (ssize_t)at;
        at += (size_t)n;
    }
    return (ssize_t)at;
}

/*
 * Reads the body of one version. Returns 0, -EBUSY (the file has changed; `o->id` is the new one), -EAGAIN (that would
 * wait for a disk) or another -errno.
 */
static int read_version(struct opened *o, char *body)
{
    struct file_identity after;
    ssize_t n = read_bytes(o, body);
    int err = n < 0 ? (int)n : entry_identify_fd(o->fd, &after);
    if (err < 0)
        return err;
    if (entry_is_same(&o->id, &after))
        return (uint64_t)n == o->id.bytes ? 0 : -EAGAIN;
    o->id = after;
    return -EBUSY;
}

/* ── entries ── */

static bool is_settled(const struct cache_lookup *l, const struct file_identity *id)
{
    int64_t last = id->mtime_seconds > id->ctime_seconds ? id->mtime_seconds : id->ctime_seconds;
    return l->wall_seconds - last >= SETTLED_SECONDS;
}

/* Returns what the lines of the head are made of. */
static struct mk_file describe_file(const struct cache_lookup *l, const struct opened *o)
{
    struct mk_str shown = l->name->type_name.len ? l->name->type_name : l->name->name;
    struct mk_file file = entry_make_file(&o->id);
    file.type = mk_host_mime(l->host, shown);
    file.coding = l->name->coding;
    file.no_ranges = l->name->no_ranges;
    if (l->name->no_version)
        file.version = 0;
    return file;
}

static struct mk_item *draft_item(struct cache_lookup *l, enum entry_kind kind, size_t bytes)
{
    struct mk_item *item =
        mk_store_draft(l->cache->store, kind, l->key.hash, &l->key.bytes, l->key.len, sizeof(struct entry) + bytes);
    if (item)
        *entry_of(item) = (struct entry){.loaded_ms = l->now_ms, .checked_ms = l->now_ms, .fd = -1};
    return item;
}

/* Puts the draft into the store, unless what was opened may have been below another folder. Returns whether it did. */
static bool put_item(struct cache_lookup *l, struct mk_item *item)
{
    if (!lookup_is_in_root(l)) {
        mk_store_discard(l->cache->store, item);
        return false;
    }
    mk_store_put(l->cache->store, item);
    if (l->worker)
        sweep_schedule(l->worker);
    return true;
}

static void keep_missing(struct cache_lookup *l, int err)
{
    struct mk_item *item = draft_item(l, ENTRY_MISSING, 0);
    if (!item)
        return;
    entry_of(item)->err = (int16_t)err;
    put_item(l, item);
}

static void keep_folder(struct cache_lookup *l, const struct file_identity *id)
{
    struct mk_item *item = draft_item(l, ENTRY_FOLDER, 0);
    if (!item)
        return;
    entry_of(item)->id = *id;
    put_item(l, item);
}

/* Makes the draft of a file with the lines of its head, and room for `body_bytes`. Returns NULL if it is not kept. */
static struct mk_item *draft_file(struct cache_lookup *l, enum entry_kind kind, const struct opened *o,
                                  size_t body_bytes)
{
    MK_UNINITIALIZED char text[MK_FILE_BLOCK_BYTES];
    struct mk_response_block block;
    struct mk_file file = describe_file(l, o);
    if (mk_file_block(&file, text, &block) < 0)
        return NULL;
    struct mk_item *item = draft_item(l, kind, block.text.len + body_bytes);
    if (!item)
        return NULL;
    struct entry *e = entry_of(item);
    memcpy(e->bytes, text, block.text.len);
    block.text.p = e->bytes;
    e->block = block;
    e->id = o->id;
    e->version = file.version;
    e->has_other_names = o->has_other_names;
    return item;
}

/*
 * Makes the entry of a small file, and closes the descriptor. Returns 0 or -errno: it is not kept, with -EAGAIN because
 * to read it would wait for a disk.
 */
static int keep_body(struct cache_lookup *l, struct opened *o, struct mk_item **ret)
{
    struct mk_item *item = draft_file(l, ENTRY_BODY, o, o->id.bytes);
    if (!item)
        return -ENOMEM;
    struct entry *e = entry_of(item);
    int err = read_version(o, e->bytes + e->block.text.len);
    if (err < 0) {
        mk_store_discard(l->cache->store, item);
        return err;
    }
    if (!put_item(l, item))
        return -EBUSY;
    close(o->fd);
    *ret = item;
    return 0;
}

/* Makes the entry of a large file, which owns the descriptor. Returns 0 or -errno: it is not kept. */
static int keep_descriptor(struct cache_lookup *l, const struct opened *o, struct mk_item **ret)
{
    struct cache *cache = l->cache;
    if (o->fd >= cache->fd_alarm || !cache->descriptors_max)
        return -EMFILE;
    struct mk_item *item = draft_file(l, ENTRY_DESCRIPTOR, o, 0);
    if (!item)
        return -ENOMEM;
    struct entry *e = entry_of(item);
    e->fd = o->fd;
    e->used = true;
    if (!put_item(l, item))
        return -EBUSY;
    *ret = item;
    return 0;
}

static bool is_small(const struct cache *cache, const struct opened *o)
{
    return o->id.bytes <= cache->body_bytes_max;
}

/* Makes the entry of a file; see keep_body(). */
static int keep_opened(struct cache_lookup *l, struct opened *o, struct mk_item **ret)
{
    return is_small(l->cache, o) ? keep_body(l, o, ret) : keep_descriptor(l, o, ret);
}

/* ── names that are not kept ── */

/* What was not kept is likely not to be kept at its next request. */
static void remember_not_kept(const struct cache_lookup *l)
{
    struct not_kept *n = &l->worker->not_kept[l->key.hash % NOT_KEPT_NAMES];
    *n = (struct not_kept){.hash = l->key.hash, .until_ms = l->now_ms + NOT_KEPT_MS};
}

bool load_was_not_kept(const struct cache_lookup *l)
{
    const struct not_kept *n = &l->worker->not_kept[l->key.hash % NOT_KEPT_NAMES];
    return n->hash == l->key.hash && l->now_ms < n->until_ms;
}

/* A disk thread has to look, once for all requests that want the name meanwhile. */
static struct mk_named_file make_waiting(const struct cache_lookup *l)
{
    cache_counters_add(&l->cache->counters, COUNT_WAITS, l->worker->worker);
    return entry_make_missing(EAGAIN);
}

/* Returns the file as it is opened. */
static struct mk_named_file describe_opened(const struct opened *o)
{
    struct mk_named_file named = {.kind = MK_FILE_REGULAR, .file = entry_make_file(&o->id)};
    named.file.fd = o->fd;
    return named;
}

/* ── results ── */

struct mk_named_file load_describe(const struct cache_lookup *l, struct mk_item *item)
{
    struct entry *e = entry_of(item);
    switch (item->kind) {
    case ENTRY_MISSING:
        return entry_make_missing(e->err);
    case ENTRY_FOLDER:
        return (struct mk_named_file){.kind = MK_FILE_FOLDER, .file = {.fd = -1}};
    default:
        break;
    }
    struct mk_named_file named = {.kind = MK_FILE_REGULAR, .file = entry_file(item)};
    named.file.coding = l->name->coding;
    named.file.no_ranges = l->name->no_ranges;
    return named;
}

/* ── opening ── */

int load_open(const struct cache_lookup *l, uint32_t flags)
{
    const struct mk_file_name *name = l->name;
    int fd = name->root->open(name->context, name->name.p, flags);
    if (fd != -EMFILE && fd != -ENFILE)
        return fd;
    sweep_evict_descriptors(l->cache);
    return name->root->open(name->context, name->name.p, flags);
}

static struct mk_named_file load_file(struct cache_lookup *l, struct opened *o, bool keep)
{
    struct cache *cache = l->cache;
    struct mk_item *item;
    if (o->fd >= cache->fd_alarm)
        sweep_evict_descriptors(cache);
    bool settled = keep && is_settled(l, &o->id);
    if (settled && !mk_store_admits(cache->store, is_small(cache, o) ? ENTRY_BODY : ENTRY_DESCRIPTOR, l->key.hash))
        return describe_opened(o);
    int err = settled ? keep_opened(l, o, &item) : -EBUSY;
    if (err == 0)
        return load_describe(l, item);
    if (err == -EAGAIN) {
        close(o->fd);
        return make_waiting(l);
    }
    if (keep)
        remember_not_kept(l);
    return describe_opened(o);
}

static struct mk_named_file load_folder(struct cache_lookup *l, const struct opened *o, bool keep)
{
    close(o->fd);
    if (keep && !is_settled(l, &o->id))
        remember_not_kept(l);
    else if (keep && mk_store_admits(l->cache->store, ENTRY_FOLDER, l->key.hash))
        keep_folder(l, &o->id);
    return (struct mk_named_file){.kind = MK_FILE_FOLDER, .file = {.fd = -1}};
}

static struct mk_named_file load_missing(struct cache_lookup *l, int err, bool keep)
{
    bool is_kept = err == ENOENT || err == ENOTDIR || err == EACCES;
    if (err == EAGAIN)
        return make_waiting(l);
    if (keep && !(is_kept && l->cache->missing_max))
        remember_not_kept(l);
    else if (keep && mk_store_admits(l->cache->store, ENTRY_MISSING, l->key.hash))
        keep_missing(l, err);
    return entry_make_missing(err);
}

struct mk_named_file load_name(struct cache_lookup *l, bool keep)
{
    struct stat st;
    struct opened o = {.fd = load_open(l, MK_FILE_OPEN_CACHED)};
    if (o.fd < 0)
        return load_missing(l, -o.fd, keep);
    int err = fstat(o.fd, &st) < 0 ? errno : 0;
    if (err == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
        o.id = entry_identify(&st);
        o.has_other_names = st.st_nlink > 1;
        return S_ISREG(st.st_mode) ? load_file(l, &o, keep) : load_folder(l, &o, keep);
    }
    close(o.fd);
    return entry_make_missing(err ? err : ENXIO); /* devices and the like are not served */
}

/* ── on a disk thread ── */

/* Without `refresh` nothing is displaced: the cache takes what it has room for. */
static bool has_room(const struct cache *cache, const struct opened *o)
{
    struct mk_store_stats stats;
    mk_store_get_stats(cache->store, ENTRY_DESCRIPTOR, &stats);
    if (!is_small(cache, o) && stats.items >= cache->descriptors_max)
        return false;
    uint64_t full = cache->bytes_max - cache->bytes_max / LOAD_FREE_SHARE;
    return mk_store_bytes(cache->store) + (is_small(cache, o) ? o->id.bytes : 0) + ENTRY_HEAD_BYTES_MAX < full;
}

/* Keeps a file, or closes it. */
static enum load_result keep_file(struct cache_lookup *l, struct opened *o, bool refresh)
{
    struct mk_item *item;
    enum load_result r = LOAD_NO_ROOM;
    if (!is_settled(l, &o->id) || !lookup_is_in_root(l))
        r = LOAD_CHANGED;
    else if (!refresh && mk_store_has(l->cache->store, l->key.hash, &l->key.bytes, l->key.len))
        r = LOAD_PRESENT;
    else if ((refresh || has_room(l->cache, o)) && keep_opened(l, o, &item) == 0)
        return LOAD_KEPT;
    close(o->fd);
    return r;
}

static struct mk_named_file keep_other(struct cache_lookup *l, int err, const struct opened *o)
{
    bool is_kept = err == ENOENT || err == ENOTDIR || err == EACCES;
    if (!err && is_settled(l, &o->id))
        keep_folder(l, &o->id);
    if (is_kept && l->cache->missing_max)
        keep_missing(l, err);
    return err ? entry_make_missing(err) : (struct mk_named_file){.kind = MK_FILE_FOLDER, .file = {.fd = -1}};
}

struct mk_named_file load_and_wait(struct cache_lookup *l, bool refresh, enum load_result *ret)
{
    struct stat st;
    struct opened o = {.fd = load_open(l, 0), .may_wait = true};
    *ret = LOAD_NONE;
    if (o.fd < 0)
        return keep_other(l, -o.fd, &o);
    int err = fstat(o.fd, &st) < 0 ? errno : S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) ? 0 : ENXIO;
    o.id = err ? (struct file_identity){0} : entry_identify(&st);
    o.has_other_names = !err && st.st_nlink > 1;
    if (err || S_ISDIR(st.st_mode)) {
        close(o.fd);
        return err ? entry_make_missing(err) : keep_other(l, 0, &o);
    }
    struct mk_named_file named = {.kind = MK_FILE_REGULAR, .file = entry_make_file(&o.id)};
    *ret = keep_file(l, &o, refresh);
    return named;
}
