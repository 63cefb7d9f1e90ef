// SPDX-License-Identifier: Apache-2.0
/*
 * A budget for bodies that wait (<monkey/kit/spool.h>): its counts, and the folder of the files.
 */
#include <monkey/base/random.h>
#include <monkey/kit/spool.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* One kind of what is limited. */
struct use {
    _Atomic uint64_t used, max;
};

struct mk_spool_budget {
    int folder; /* -1: none */
    struct use uses[MK_SPOOL_KINDS];
};

/* ── what is used ── */

bool mk_spool_budget_reserve(struct mk_spool_budget *budget, enum mk_spool_kind kind, uint64_t n)
{
    struct use *use = &budget->uses[kind];
    uint64_t used = atomic_load_explicit(&use->used, memory_order_relaxed);
    uint64_t max = atomic_load_explicit(&use->max, memory_order_relaxed);
    if (kind == MK_SPOOL_FILES && budget->folder < 0)
        return false;
    do {
        if (used > max || n > max - used)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&use->used, &used, used + n, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

void mk_spool_budget_release(struct mk_spool_budget *budget, enum mk_spool_kind kind, uint64_t n)
{
    uint64_t before = atomic_fetch_sub_explicit(&budget->uses[kind].used, n, memory_order_relaxed);
    assert(before >= n);
    (void)before;
}

void mk_spool_budget_set_limits(struct mk_spool_budget *budget, const struct mk_spool_limits *limits)
{
    budget->uses[MK_SPOOL_MEMORY].max = limits->memory_max;
    budget->uses[MK_SPOOL_DISK].max = limits->disk_max;
    budget->uses[MK_SPOOL_FILES].max = limits->files_max;
}

struct mk_spool_counts mk_spool_budget_counts(const struct mk_spool_budget *budget)
{
    return (struct mk_spool_counts){.memory_bytes = budget->uses[MK_SPOOL_MEMORY].used,
                                    .disk_bytes = budget->uses[MK_SPOOL_DISK].used,
                                    .files = budget->uses[MK_SPOOL_FILES].used};
}

/* ── the folder ── */

/* For file systems without O_TMPFILE: the name is one that no other process can guess, and is removed at once. */
static MK_COLD int make_named(int folder)
{
    uint64_t number;
    char name[32];
    int err = mk_random(&number, sizeof(number));
    if (err < 0)
        return err;
    snprintf(name, sizeof(name), ".spool-%016" PRIx64, number);
    int fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    err = unlinkat(folder, name, 0) < 0 ? -errno : 0;
    if (err < 0)
        close(fd);
    return err < 0 ? err : fd;
}

static int make_file(int folder)
{
    int fd = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    return errno == EOPNOTSUPP || errno == EISDIR ? make_named(folder) : -errno;
}

int mk_spool_budget_make_file(const struct mk_spool_budget *budget)
{
    return budget->folder < 0 ? -ENOENT : make_file(budget->folder);
}

/* Returns a descriptor of the folder in which a file can be made, or -errno. */
static MK_COLD int open_folder(const char *path)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -errno;
    int fd = make_file(folder);
    close(fd < 0 ? folder : fd);
    return fd < 0 ? fd : folder;
}

MK_COLD int mk_spool_budget_new(const char *folder, const struct mk_spool_limits *limits, struct mk_spool_budget **ret)
{
    struct mk_spool_budget *budget = mk_account_alloc(NULL, sizeof(*budget));
    if (!budget)
        return -ENOMEM;
    *budget = (struct mk_spool_budget){.folder = -1};
    int fd = folder ? open_folder(folder) : -1;
    if (folder && fd < 0) {
        mk_account_free(NULL, budget, sizeof(*budget));
        return fd;
    }
    budget->folder = fd;
    mk_spool_budget_set_limits(budget, limits);
    *ret = budget;
    return 0;
}

/* Files are being made in the folder meanwhile: its descriptor stays the same. */
MK_COLD int mk_spool_budget_reopen(struct mk_spool_budget *budget, const char *folder)
{
    int fd = open_folder(folder);
    if (fd < 0)
        return fd;
    int err = dup3(fd, budget->folder, O_CLOEXEC) < 0 ? -errno : 0;
    close(fd);
    return err;
}

void mk_spool_budget_free(struct mk_spool_budget *budget)
{
    if (!budget)
        return;
    for (unsigned kind = 0; kind < MK_SPOOL_KINDS; kind++)
        assert(!budget->uses[kind].used);
    if (budget->folder >= 0)
        close(budget->folder);
    mk_account_free(NULL, budget, sizeof(*budget));
}
