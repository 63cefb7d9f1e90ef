// SPDX-License-Identifier: Apache-2.0
/*
 * Finds processes by their tags, in /proc. A process whose files are hidden from this user (hidepid of proc(5),
 * and not dumpable) is found once it is a child of the starter.
 */
#include "child.h"

#include <monkey/base/random.h>
#include <monkey/base/str.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SERIAL_BITS = sizeof(long) == 8 ? 28 : 12, STARTERS = 256 };

#define INDEXES (UINT64_C(1) << MK__TAG_INDEX_BITS)
#define SERIALS (UINT64_C(1) << SERIAL_BITS)
#define RANGE (INDEXES * SERIALS)

void mk__tag_open(struct mk__tags *tags)
{
    struct rlimit limit;
    uint64_t number = 0;
    *tags = (struct mk__tags){0};
    if (getrlimit(RLIMIT_LOCKS, &limit) < 0)
        return;
    uint64_t half = (limit.rlim_max < ULONG_MAX ? limit.rlim_max : ULONG_MAX) / 2; /* the kernel's is a long */
    if (half > 2 * RANGE && mk_random(&number, sizeof(number)) == 0)
        tags->first = half + number % (half - RANGE);
}

void mk__tag_begin(struct mk__tags *tags, uint64_t starter)
{
    const struct rlimit limit = {.rlim_cur = tags->first + RANGE, .rlim_max = tags->first + RANGE};
    tags->begin = tags->serial = starter % STARTERS * (SERIALS / STARTERS);
    if (tags->first && setrlimit(RLIMIT_LOCKS, &limit) < 0)
        tags->first = 0;
}

uint64_t mk__tag_new(struct mk__tags *tags, unsigned index)
{
    return tags->first ? tags->first + tags->serial++ % SERIALS * INDEXES + index : 0;
}

bool mk__tag_is_own(const struct mk__tags *tags, uint64_t tag)
{
    uint64_t serial = (tag - tags->first) / INDEXES;
    return (serial - tags->begin) % SERIALS < tags->serial - tags->begin;
}

unsigned mk__tag_index(const struct mk__tags *tags, uint64_t tag)
{
    return (unsigned)((tag - tags->first) % INDEXES);
}

/* Returns the tag of a process; 0: it has none of this range. */
static uint64_t read_tag(const struct mk__tags *tags, pid_t pid)
{
    struct rlimit limit;
    bool is_tag = tags->first && prlimit(pid, RLIMIT_LOCKS, NULL, &limit) == 0 && limit.rlim_max - tags->first < RANGE;
    return is_tag ? limit.rlim_max : 0;
}

/* Calls `choose` for a process. It is asked again once a pidfd is open, as the number may be another's by then. */
static void offer_process(const struct mk__tags *tags, pid_t pid, mk__tag_choose_fn choose)
{
    int number = choose(pid, read_tag(tags, pid));
    if (!number)
        return;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0)
        return;
    if (choose(pid, read_tag(tags, pid)) == number)
        syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0);
    close(pidfd);
}

static void offer_visible(const struct mk__tags *tags, mk__tag_choose_fn choose)
{
    static char entries[32 * 1024] __attribute__((aligned(8)));
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long n;
    while (fd >= 0 && (n = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0) {
        const struct dirent64 *entry;
        for (long at = 0; at < n; at += entry->d_reclen) {
            uint64_t pid;
            entry = (const struct dirent64 *)(entries + at);
            if (mk_str_u64(mk_str_c(entry->d_name), INT_MAX, &pid))
                offer_process(tags, (pid_t)pid, choose);
        }
    }
    if (fd >= 0)
        close(fd);
}

static bool is_hidden(pid_t pid)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/%d", pid);
    return access(path, F_OK) < 0;
}

/* Children of this process, which the kernel lists without asking for rights. */
static void offer_hidden(const struct mk__tags *tags, mk__tag_choose_fn choose)
{
    char text[4096];
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    pid_t pid = 0; /* a number may be in two parts */
    ssize_t n;
    while (fd >= 0 && (n = read(fd, text, sizeof(text))) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            if (mk_is_digit(text[i])) {
                pid = pid * 10 + (text[i] - '0');
                continue;
            }
            if (pid && is_hidden(pid))
                offer_process(tags, pid, choose);
            pid = 0;
        }
    }
    if (fd >= 0)
        close(fd);
}

void mk__tag_each(const struct mk__tags *tags, mk__tag_choose_fn choose)
{
    offer_visible(tags, choose);
    offer_hidden(tags, choose);
}
