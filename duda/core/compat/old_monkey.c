// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: the object `monkey`.
 */
#include "compat/old.h"

#include "common/mem.h"
#include "objects.h"
#include "service/thread.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* ── strings ── */

char *old_format(const char *format, va_list args, size_t *ret_len)
{
    va_list again;
    va_copy(again, args);
    int n = format ? vsnprintf(NULL, 0, format, args) : -1;
    char *text = n < 0 ? NULL : mem_alloc((size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    *ret_len = text ? (size_t)n : 0;
    return text;
}

static char *copy_bytes(const char *text, size_t len)
{
    char *copy = object_mem.alloc(len + 1);
    if (copy) {
        memcpy(copy, text, len);
        copy[len] = '\0';
    }
    return copy;
}

static char *copy_string(const char *text)
{
    return text ? copy_bytes(text, strlen(text)) : NULL;
}

static char *build_string(char **text, unsigned long *len, const char *format, ...)
{
    size_t n;
    va_list args;
    if (!text || !len)
        return NULL;
    va_start(args, format);
    *text = old_format(format, args, &n);
    va_end(args);
    *len = n;
    return *text;
}

static char *copy_substring(const char *text, int from, int to)
{
    if (!text || from < 0 || to < from || strnlen(text, (size_t)to) < (size_t)to)
        return NULL;
    return copy_bytes(text + from, (size_t)(to - from));
}

/* Returns where `text` is in the first `len` bytes of `in`, or -1. */
static int search_bytes(const char *in, size_t len, const char *text, int sensitivity)
{
    int (*compare)(const char *, const char *, size_t) = sensitivity == 0 ? strncmp : strncasecmp;
    size_t n = strlen(text);
    for (size_t at = 0; n && at + n <= len; at++) {
        if (compare(in + at, text, n) == 0)
            return (int)at;
    }
    return -1;
}

static int search_string(const char *in, const char *text, int sensitivity)
{
    return in && text ? search_bytes(in, strlen(in), text, sensitivity) : -1;
}

static int search_string_n(const char *in, const char *text, int sensitivity, int len)
{
    if (!in || !text)
        return -1;
    return search_bytes(in, len < 0 ? strlen(in) : strnlen(in, (size_t)len), text, sensitivity);
}

/* ── files and sockets ── */

static int get_file_info(const char *path, struct file_info *info)
{
    struct stat st, link;
    if (!path || stat(path, &st) < 0 || lstat(path, &link) < 0)
        return -1;
    bool readable = access(path, R_OK) == 0;
    *info = (struct file_info){
        .size = (size_t)st.st_size,
        .last_modification = st.st_mtime,
        .exists = 1,
        .is_file = S_ISREG(st.st_mode),
        .is_link = S_ISLNK(link.st_mode),
        .is_directory = S_ISDIR(st.st_mode),
        .exec_access = access(path, X_OK) == 0,
        .read_access = readable,
        .flags_read_only = readable ? O_RDONLY | O_NONBLOCK : 0,
    };
    return 0;
}

static char *read_file(const char *path)
{
    return path ? object_fconf.read_file(path) : NULL;
}

static int set_nodelay(int fd)
{
    return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

const struct duda_old_monkey old_monkey = {
    .mem_alloc = mem_alloc,
    .mem_alloc_z = mem_alloc_zeroed,
    .mem_realloc = mem_realloc,
    .mem_free = mem_free,
    .str_dup = copy_string,
    .str_build = build_string,
    .str_copy_substr = copy_substring,
    .str_search = search_string,
    .str_search_n = search_string_n,
    .file_get_info = get_file_info,
    .socket_set_tcp_nodelay = set_nodelay,
    .thread_create = thread_create_own,
    .file_to_buffer = read_file,
};
