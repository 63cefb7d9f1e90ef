// SPDX-License-Identifier: Apache-2.0
/*
 * The budget of the process: its counts, and the folder of the files.
 */
#include "budget.h"

#include "file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

bool mk__spool_budget_reserve(struct mk__spool_use *use, uint64_t n)
{
    uint64_t used = atomic_load_explicit(&use->used, memory_order_relaxed);
    uint64_t max = atomic_load_explicit(&use->max, memory_order_relaxed);
    do {
        if (used > max || n > max - used)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&use->used, &used, used + n, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

void mk__spool_budget_release(struct mk__spool_use *use, uint64_t n)
{
    uint64_t before = atomic_fetch_sub_explicit(&use->used, n, memory_order_relaxed);
    assert(before >= n);
    (void)before;
}

/* Returns a descriptor of the folder in which a file can be made, or -errno. */
static int open_folder(const char *path)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -errno;
    int fd = mk__spool_file_make(folder);
    close(fd < 0 ? folder : fd);
    return fd < 0 ? fd : folder;
}

int mk_spool_budget_new(const char *folder, const struct mk_spool_limits *limits, struct mk_spool_budget **ret)
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

void mk_spool_budget_free(struct mk_spool_budget *budget)
{
    if (!budget)
        return;
    assert(!budget->memory.used && !budget->disk.used && !budget->files.used);
    if (budget->folder >= 0)
        close(budget->folder);
    mk_account_free(NULL, budget, sizeof(*budget));
}

void mk_spool_budget_set_limits(struct mk_spool_budget *budget, const struct mk_spool_limits *limits)
{
    budget->memory.max = limits->memory_max;
    budget->disk.max = limits->disk_max;
    budget->files.max = limits->files_max;
}

struct mk_spool_counts mk_spool_budget_counts(const struct mk_spool_budget *budget)
{
    return (struct mk_spool_counts){.memory_bytes = budget->memory.used,
                                    .disk_bytes = budget->disk.used,
                                    .files = budget->files.used};
}
