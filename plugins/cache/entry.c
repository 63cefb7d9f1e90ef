// SPDX-License-Identifier: Apache-2.0
#include "entry.h"

#include <assert.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *entry_kind_name(unsigned kind)
{
    static const char *const names[ENTRY_KINDS] = {[ENTRY_BODY] = "body",
                                                   [ENTRY_DESCRIPTOR] = "descriptor",
                                                   [ENTRY_FOLDER] = "folder",
                                                   [ENTRY_MISSING] = "missing"};
    assert(kind < ENTRY_KINDS);
    return names[kind];
}

struct file_identity entry_identify(const struct stat *st)
{
    return (struct file_identity){.device = st->st_dev,
                                  .inode = st->st_ino,
                                  .bytes = (uint64_t)st->st_size,
                                  .mtime_seconds = st->st_mtim.tv_sec,
                                  .ctime_seconds = st->st_ctim.tv_sec,
                                  .mtime_nanoseconds = (uint32_t)st->st_mtim.tv_nsec,
                                  .ctime_nanoseconds = (uint32_t)st->st_ctim.tv_nsec};
}

/* fstat(3) of glibc calls newfstatat(2), which reads an empty path first: 50 ns of 400. */
#ifdef __x86_64__
static int read_status(int fd, struct stat *ret)
{
    return (int)syscall(SYS_fstat, fd, ret);
}
#else
static int read_status(int fd, struct stat *ret)
{
    return fstat(fd, ret);
}
#endif

int entry_identify_fd(int fd, struct file_identity *ret_id)
{
    struct stat st;
    if (read_status(fd, &st) < 0)
        return -errno;
    *ret_id = entry_identify(&st);
    return 0;
}

bool entry_is_same(const struct file_identity *a, const struct file_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
           a->mtime_seconds == b->mtime_seconds && a->mtime_nanoseconds == b->mtime_nanoseconds &&
           a->ctime_seconds == b->ctime_seconds && a->ctime_nanoseconds == b->ctime_nanoseconds;
}

/* ── owners ── */

static void get_item(void *owned)
{
    mk_item_get(owned);
}

static void put_item(void *owned)
{
    mk_item_put(owned);
}

static const struct mk_owner owner = {get_item, put_item};

static struct mk_file make_file(const struct file_identity *id, uint64_t version)
{
    return (struct mk_file){.fd = -1,
                            .bytes = id->bytes,
                            .mtime_seconds = id->mtime_seconds,
                            .mtime_nanoseconds = id->mtime_nanoseconds,
                            .version = version};
}

struct mk_file entry_make_file(const struct file_identity *id)
{
    return make_file(id, mk_file_version(id->device, id->inode, id->ctime_seconds, id->ctime_nanoseconds));
}

struct mk_file entry_file(struct mk_item *item)
{
    struct entry *e = entry_of(item);
    assert(item->kind == ENTRY_BODY || item->kind == ENTRY_DESCRIPTOR);
    struct mk_file file = make_file(&e->id, e->version);
    file.fd = e->fd;
    if (item->kind == ENTRY_BODY)
        file.content = mk_str(e->bytes + e->block.text.len, e->id.bytes);
    file.block = &e->block;
    file.owner = &owner;
    file.owned = item;
    return file;
}

void entry_release(struct mk_item *item, void *ctx)
{
    const struct entry *e = entry_of(item);
    (void)ctx;
    assert(item->kind == ENTRY_DESCRIPTOR && e->fd >= 0);
    close(e->fd);
}
