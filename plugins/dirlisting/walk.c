// SPDX-License-Identifier: Apache-2.0
/*
 * Walks through folders. Files and folders are opened by their paths through the plugin that serves files, as
 * for a request: aliases, links and hidden names are its business.
 */
#include "archive.h"
#include "listing.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

/*
 * Counts entries and looks at the clock: what a check costs depends on the rules and on the path.
 */
struct turn turn_begin(const struct mk_loop *loop)
{
    return (struct turn){.loop = loop, .end_us = mk_loop_now_us(loop) + TURN_US_MAX};
}

bool turn_allows_entry(struct turn *turn)
{
    unsigned n = turn->entries++;
    return n == 0 || (n < TURN_ENTRIES_MAX && mk_loop_now_us(turn->loop) < turn->end_us);
}

enum {
    CHUNK_BYTES = 64 * 1024,
    OUTPUT_BYTES = 128 * 1024,     /* a step ends when it has written so many */
    INPUT_BYTES_MAX = 1024 * 1024, /* or read so many */
    STEP_ENTRIES_MAX = 256,        /* or read so many names, or passed so many entries */
};

struct walk_level {
    struct walk_level *below;
    const struct listing_rule *rule;
    dev_t device;
    ino_t inode;
    struct listing listing;
    uint32_t checked, kept, next;
    bool first; /* it is the first batch */
    struct folder folder;
};

/* What one step may still take. */
struct walk_budget {
    uint64_t input;
    unsigned entries;
};

/* ── levels ── */

static void pop_level(struct walk *w)
{
    struct walk_level *level = w->top;
    assert(level && w->depth);
    w->top = level->below;
    w->depth--;
    folder_release(&level->listing);
    folder_close(&level->folder);
    mk_account_free(NULL, level, sizeof(*level));
}

/* Returns true if the folder is one of those that it lies in, because of a link. */
static bool is_cycle(const struct walk *w, const struct stat *st)
{
    const struct walk_level *level = w->top;
    while (level && (level->device != st->st_dev || level->inode != st->st_ino))
        level = level->below;
    return level != NULL;
}

/* Returns 0, -EXDEV (a cycle), -EMLINK (it is too deep) or another -errno. */
static int push_level(struct walk *w, const struct listing_rule *rule, struct mk_str path, struct stat *ret_st)
{
    struct walk_level *level = mk_account_alloc(NULL, sizeof(*level));
    if (!level)
        return -ENOMEM;
    *level = (struct walk_level){.below = w->top, .rule = rule};
    int err = folder_open(&level->folder, w->host, rule, path, w->cancelled);
    if (err == 0 && fstat(dirfd(level->folder.dir), ret_st) < 0)
        err = -errno;
    if (err == 0 && is_cycle(w, ret_st))
        err = -EXDEV;
    if (err == 0 && w->depth >= (uint64_t)w->rule->archive_depth_max)
        err = -EMLINK;
    if (err < 0) {
        if (level->folder.dir)
            folder_close(&level->folder);
        mk_account_free(NULL, level, sizeof(*level));
        return err;
    }
    level->device = ret_st->st_dev;
    level->inode = ret_st->st_ino;
    level->listing.more = level->first = true;
    w->top = level;
    w->depth++;
    return 0;
}

/*
 * Reads the next entries of the folder, as far as the budget goes. Those of a whole batch wait for walk_check().
 * Returns an enum walk_result or -errno.
 */
static int read_level(struct walk_level *level, struct walk_budget *budget)
{
    if (!level->folder.reading)
        folder_release(&level->listing);
    level->checked = level->kept = level->next = 0;
    int err = folder_read(&level->folder, &level->listing, FOLDER_BATCH_BYTES, UINT64_MAX, &budget->entries);
    if (err == 0 && level->first && !level->listing.more) /* the same archive each time, if the folder is not large */
        order_sort(&level->listing, LISTING_BY_NAME, false);
    level->first &= level->folder.reading;
    return err < 0 ? err : WALK_OUTPUT;
}

/* ── the walk ── */

static size_t find_base(struct mk_str path)
{
    size_t n = path.len - 1; /* without the last slash */
    while (n && path.p[n - 1] != '/')
        n--;
    return n;
}

int walk_open(struct walk *w, const struct mk_host *host, const struct listing_rule *rule, struct mk_str path,
              const _Atomic bool *cancelled)
{
    struct stat st;
    *w = (struct walk){.host = host, .rule = rule, .cancelled = cancelled, .fd = -1, .base_len = find_base(path)};
    w->chunk = mk_account_alloc(NULL, CHUNK_BYTES);
    return w->chunk ? push_level(w, rule, path, &st) : -ENOMEM;
}

void walk_close(struct walk *w)
{
    while (w->top)
        pop_level(w);
    if (w->tar)
        tar_free(w->tar);
    if (w->fd >= 0)
        close(w->fd);
    mk_account_free(NULL, w->chunk, CHUNK_BYTES);
    *w = (struct walk){.fd = -1};
}

int walk_start_archive(struct walk *w, enum archive_kind kind, struct mk_buf *out)
{
    w->out = out;
    w->tar = tar_new(kind, out);
    return w->tar ? 0 : -ENOMEM;
}

void walk_set_output(struct walk *w, struct mk_buf *out)
{
    w->out = out;
    tar_set_output(w->tar, out);
}

/* ── entries ── */

/* Returns 0 for what only means that the entry is not there, or not for clients; else `err`. */
static int ignore_missing(int err)
{
    static const int missing[] = {ENOENT, ENOTDIR, EISDIR, ELOOP, EXDEV, EACCES, EPERM, ENXIO, ENAMETOOLONG};
    for (size_t i = 0; i < MK_COUNT_OF(missing); i++)
        if (err == -missing[i])
            return 0;
    return err;
}

/* Returns the name in the archive of a path of the host. */
static const char *get_archive_name(const struct walk *w, struct mk_str path)
{
    assert(path.len > w->base_len);
    return path.p + w->base_len + (w->base_len == 0); /* below "/" without the slash */
}

static int count_entry(struct walk *w)
{
    return ++w->entries > (uint64_t)w->rule->archive_entries_max ? -E2BIG : 0;
}

static int enter_folder(struct walk *w, struct mk_str path)
{
    struct stat st;
    const struct listing_rule *rule = rules_find(w->host, path);
    if (!rule || !rule->enabled || (!rule->archive_indexed && folder_has_index(w->host, path)))
        return 0;
    int err = push_level(w, rule, path, &st);
    if (err < 0)
        return ignore_missing(err);
    err = count_entry(w);
    return err < 0 ? err : tar_add_folder(w->tar, get_archive_name(w, path), st.st_mtim.tv_sec);
}

static int begin_file(struct walk *w, struct mk_str path)
{
    int fd = mk_host_open_path(w->host, path, 0);
    if (fd < 0)
        return ignore_missing(fd);
    w->fd = fd;
    int err = fstat(fd, &w->st) < 0 ? -errno : count_entry(w);
    if (err == 0 && !S_ISREG(w->st.st_mode))
        err = -ESTALE;
    w->left = err < 0 ? 0 : (uint64_t)w->st.st_size;
    if (err == 0 && w->left > w->rule->archive_bytes_max - w->bytes)
        err = -EFBIG;
    w->bytes += err < 0 ? 0 : w->left;
    return err < 0 ? err : tar_add_file(w->tar, get_archive_name(w, path), w->left, w->st.st_mtim.tv_sec);
}

/* A file that has grown is in the archive as it was; any other change may have made a mixture. */
static int end_file(struct walk *w)
{
    struct stat st;
    int err = fstat(w->fd, &st) < 0 ? -errno : 0;
    bool same =
        st.st_size > w->st.st_size || (st.st_size == w->st.st_size && st.st_mtim.tv_sec == w->st.st_mtim.tv_sec &&
                                       st.st_mtim.tv_nsec == w->st.st_mtim.tv_nsec);
    close(w->fd);
    w->fd = -1;
    return err < 0 ? err : same ? 0 : -ESTALE;
}

static int copy_file(struct walk *w, struct walk_budget *budget)
{
    size_t want = w->left < CHUNK_BYTES ? (size_t)w->left : CHUNK_BYTES;
    ssize_t n = want ? read(w->fd, w->chunk, want) : 0;
    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    if (want && n == 0)
        return -ESTALE; /* it is shorter now */
    w->left -= (uint64_t)n;
    budget->input -= budget->input < (uint64_t)n ? budget->input : (uint64_t)n;
    int err = n ? tar_write(w->tar, w->chunk, (size_t)n) : 0;
    return err < 0 || w->left ? err : end_file(w);
}

static int add_entry(struct walk *w, struct walk_level *level, struct walk_budget *budget)
{
    const struct listing_entry *e = level->listing.entries[level->next++];
    struct mk_str path = folder_entry_path(&level->folder, mk_str(e->name, e->name_len), e->is_dir);
    budget->entries--;
    if (!path.p)
        return 0;
    return e->is_dir ? enter_folder(w, path) : begin_file(w, path);
}

/* ── steps ── */

/* Does the next thing. Returns an enum walk_result or -errno. */
static int advance_walk(struct walk *w, struct walk_budget *budget)
{
    struct walk_level *level = w->top;
    if (w->fd >= 0)
        return copy_file(w, budget);
    if (!level) {
        w->ended = true;
        int err = tar_end(w->tar);
        return err < 0 ? err : WALK_END;
    }
    if (level->folder.reading)
        return read_level(level, budget);
    if (level->checked < level->listing.n)
        return WALK_CHECK;
    if (level->next < level->kept)
        return add_entry(w, level, budget);
    if (level->listing.more)
        return read_level(level, budget);
    pop_level(w);
    return WALK_OUTPUT;
}

int walk_step(struct walk *w)
{
    struct walk_budget budget = {INPUT_BYTES_MAX, STEP_ENTRIES_MAX};
    int r = w->ended ? WALK_END : WALK_OUTPUT;
    while (r == WALK_OUTPUT && w->out->len < OUTPUT_BYTES && budget.input && budget.entries)
        r = *w->cancelled ? -ECANCELED : advance_walk(w, &budget);
    return r;
}

bool walk_check(struct walk *w, struct mk_request *req)
{
    struct walk_level *level = w->top;
    assert(level);
    struct listing *listing = &level->listing;
    struct turn turn = turn_begin(mk_request_loop(req));
    for (; level->checked < listing->n && turn_allows_entry(&turn); level->checked++) {
        struct listing_entry *e = listing->entries[level->checked];
        struct mk_str path = folder_entry_path(&level->folder, mk_str(e->name, e->name_len), e->is_dir);
        if (path.p && mk_request_allows_path(req, path) > 0)
            listing->entries[level->kept++] = e;
    }
    return level->checked < listing->n;
}

static const struct {
    int err;
    const char *phrase;
} phrases[] = {
    {EFBIG, "it has more than ArchiveMaxBytes"},
    {E2BIG, "it has more than ArchiveMaxEntries"},
    {EMLINK, "it is deeper than ArchiveMaxDepth"},
    {ESTALE, "a file changed while it was read"},
};

const char *walk_error(int err)
{
    for (size_t i = 0; i < MK_COUNT_OF(phrases); i++)
        if (phrases[i].err == -err)
            return phrases[i].phrase;
    return strerror(-err);
}
