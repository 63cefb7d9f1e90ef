// SPDX-License-Identifier: Apache-2.0
/*
 * Reads /proc/self (process.h).
 */
#include "process.h"

#include <monkey/str.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { FILE_BYTES = 2048 };

/* Reads the beginning of a file, with a NUL after it. Returns false if it cannot be read. */
static bool read_file(const char *path, char *to, size_t size)
{
    size_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    for (ssize_t got = 1; n < size - 1 && got > 0; n += got > 0 ? (size_t)got : 0)
        got = read(fd, to + n, size - 1 - n);
    close(fd);
    to[n] = '\0';
    return n > 0;
}

/* Returns the second since 1970 at which the machine was started. */
static double read_boot_time(void)
{
    struct timespec now, up;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &up);
    return (double)(now.tv_sec - up.tv_sec) + (double)(now.tv_nsec - up.tv_nsec) / 1e9;
}

/* The fields of proc(5), by their numbers there. */
enum { UTIME = 14, STIME = 15, NUM_THREADS = 20, STARTTIME = 22, VSIZE = 23, RSS = 24, FIELDS };

/* Reads those from the fourth one on: the second may have spaces, and the third is a letter. */
static bool read_stat(long long *fields)
{
    char text[FILE_BYTES];
    char *at = read_file("/proc/self/stat", text, sizeof(text)) ? strrchr(text, ')') : NULL;
    if (!at || at[1] != ' ' || !at[2])
        return false;
    at += 3;
    for (int i = 4; i < FIELDS; i++)
        fields[i] = strtoll(at, &at, 10);
    return true;
}

static double get_ticks_per_second(void)
{
    return (double)sysconf(_SC_CLK_TCK);
}

double process_start_time(void)
{
    long long fields[FIELDS];
    return read_stat(fields) ? read_boot_time() + (double)fields[STARTTIME] / get_ticks_per_second() : -1;
}

static int64_t count_fds(void)
{
    int64_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return -1;
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n - 1; /* without that of `dir` */
}

void process_read(struct process *ret)
{
    struct rlimit limit;
    long long fields[FIELDS];
    bool known = read_stat(fields);
    ret->pid = getpid();
    ret->threads = known ? fields[NUM_THREADS] : -1;
    ret->virtual_bytes = known ? fields[VSIZE] : -1;
    ret->resident_bytes = known ? fields[RSS] * sysconf(_SC_PAGESIZE) : -1;
    ret->cpu_seconds = known ? (double)(fields[UTIME] + fields[STIME]) / get_ticks_per_second() : -1;
    ret->open_fds = count_fds();
    ret->max_fds =
        getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? (int64_t)limit.rlim_cur : -1;
}
