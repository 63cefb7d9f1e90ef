// SPDX-License-Identifier: Apache-2.0
/*
 * Writes archives by libarchive. The format is that of GNU tar, which takes names of any bytes and length, and
 * files of any size.
 */
#include "archive.h"

#include <monkey/base/library.h>
#include <monkey/log.h>

#include <archive.h>
#include <archive_entry.h>
#include <assert.h>
#include <errno.h>
#include <pthread.h>

/* zlib's level 4 takes half the time of 6 for some percent more bytes; 3 is zstd's own default. */
#define GZIP_LEVEL "4"
#define ZSTD_LEVEL "3"

enum { BLOCK_BYTES = 32 * 1024 };

/* ── the library ── */

#define FUNCTIONS(each) \
    each(entry_clear) each(entry_copy_pathname) each(entry_free) each(entry_new) each(entry_set_filetype) \
        each(entry_set_mtime) each(entry_set_perm) each(entry_set_size) each(errno) each(error_string) \
            each(write_add_filter_gzip) each(write_add_filter_zstd) each(write_close) each(write_data) \
                each(write_fail) each(write_free) each(write_header) each(write_new) each(write_open2) \
                    each(write_set_bytes_in_last_block) each(write_set_bytes_per_block) each(write_set_filter_option) \
                        each(write_set_format_gnutar)

#define POINTER(name) typeof(&archive_##name) name##_fn;
#define SYMBOL(name) {"archive_" #name, &library.name##_fn},

/* Open until the process ends. */
static struct {
    pthread_mutex_t lock; /* held while it is loaded */
    bool is_loaded;
    FUNCTIONS(POINTER)
} library = {.lock = PTHREAD_MUTEX_INITIALIZER};
static const struct mk_library_symbol symbols[] = {FUNCTIONS(SYMBOL)};

int tar_load(struct mk_buf *error)
{
    pthread_mutex_lock(&library.lock);
    if (!library.is_loaded) {
        void *handle = mk_library_open("libarchive.so.13", MK_LIBRARY_SHARED, error);
        library.is_loaded = handle && mk_library_find(handle, symbols, MK_COUNT_OF(symbols), error) == 0;
    }
    pthread_mutex_unlock(&library.lock);
    return library.is_loaded ? 0 : -ENOENT;
}

/* ── writers ── */

struct tar {
    struct archive *archive;
    struct archive_entry *entry;
    struct mk_buf *out; /* NULL: bytes are discarded */
};

static la_ssize_t append_bytes(struct archive *archive, void *ctx, const void *data, size_t n)
{
    struct tar *t = ctx;
    (void)archive;
    if (!t->out)
        return (la_ssize_t)n;
    mk_buf_add(t->out, data, n);
    return t->out->err ? -1 : (la_ssize_t)n;
}

static int set_kind(struct tar *t, enum archive_kind kind)
{
    struct archive *a = t->archive;
    if (library.write_set_format_gnutar_fn(a) != ARCHIVE_OK)
        return -EIO;
    if (kind == ARCHIVE_TAR_GZ && (library.write_add_filter_gzip_fn(a) != ARCHIVE_OK ||
                                   library.write_set_filter_option_fn(a, "gzip", "compression-level", GZIP_LEVEL) < 0))
        return -EIO;
    if (kind == ARCHIVE_TAR_ZST && (library.write_add_filter_zstd_fn(a) != ARCHIVE_OK ||
                                    library.write_set_filter_option_fn(a, "zstd", "compression-level", ZSTD_LEVEL) < 0))
        return -EIO;
    library.write_set_bytes_per_block_fn(a, BLOCK_BYTES);
    library.write_set_bytes_in_last_block_fn(a, 1);
    return library.write_open2_fn(a, t, NULL, append_bytes, NULL, NULL) == ARCHIVE_OK ? 0 : -EIO;
}

struct tar *tar_new(enum archive_kind kind, struct mk_buf *out)
{
    assert(library.is_loaded && kind > ARCHIVE_NONE && kind < ARCHIVE_KINDS);
    struct tar *t = mk_account_alloc(NULL, sizeof(*t));
    if (!t)
        return NULL;
    *t = (struct tar){.archive = library.write_new_fn(), .entry = library.entry_new_fn(), .out = out};
    if (t->archive && t->entry && set_kind(t, kind) == 0)
        return t;
    tar_free(t);
    return NULL;
}

void tar_free(struct tar *t)
{
    t->out = NULL;
    if (t->archive) {
        library.write_fail_fn(t->archive);  /* else close would fill up the last entry */
        library.write_close_fn(t->archive); /* else free would leak buffers */
        library.write_free_fn(t->archive);
    }
    if (t->entry)
        library.entry_free_fn(t->entry);
    mk_account_free(NULL, t, sizeof(*t));
}

void tar_set_output(struct tar *t, struct mk_buf *out)
{
    t->out = out;
}

/* Returns the -errno of a result of libarchive; a warning is none. */
static int check_result(struct tar *t, la_ssize_t result)
{
    if (result >= ARCHIVE_WARN)
        return 0;
    int err = library.errno_fn(t->archive);
    mk_log_limited(MK_LOG_ERROR, NULL, "dirlisting: libarchive cannot write: %s", library.error_string_fn(t->archive));
    return err == ENOMEM ? -ENOMEM : -EIO;
}

static int add_entry(struct tar *t, const char *name, int64_t mtime_seconds, unsigned type, unsigned mode,
                     uint64_t bytes)
{
    library.entry_clear_fn(t->entry);
    library.entry_copy_pathname_fn(t->entry, name);
    library.entry_set_filetype_fn(t->entry, type);
    library.entry_set_perm_fn(t->entry, (mode_t)mode);
    library.entry_set_mtime_fn(t->entry, (time_t)mtime_seconds, 0);
    library.entry_set_size_fn(t->entry, (la_int64_t)bytes);
    return check_result(t, library.write_header_fn(t->archive, t->entry));
}

int tar_add_folder(struct tar *t, const char *name, int64_t mtime_seconds)
{
    return add_entry(t, name, mtime_seconds, AE_IFDIR, 0755, 0);
}

int tar_add_file(struct tar *t, const char *name, uint64_t bytes, int64_t mtime_seconds)
{
    return add_entry(t, name, mtime_seconds, AE_IFREG, 0644, bytes);
}

int tar_write(struct tar *t, const char *data, size_t n)
{
    la_ssize_t written = library.write_data_fn(t->archive, data, n);
    return written == (la_ssize_t)n ? 0 : written < 0 ? check_result(t, ARCHIVE_FATAL) : -EIO;
}

int tar_end(struct tar *t)
{
    return check_result(t, library.write_close_fn(t->archive));
}
