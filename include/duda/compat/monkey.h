// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: the object `monkey`, functions of the server's core that services used. All memory is of malloc().
 */
#ifndef DUDA_COMPAT_MONKEY_H
#define DUDA_COMPAT_MONKEY_H

#include "types.h"

#include <pthread.h>
#include <time.h>

struct file_info {
    size_t size;
    time_t last_modification;
    unsigned char exists;
    unsigned char is_file;
    unsigned char is_link;
    unsigned char is_directory;
    unsigned char exec_access; /* for this process */
    unsigned char read_access;
    int flags_read_only; /* for open(2) */
};

struct duda_old_monkey {
    void *(*mem_alloc)(size_t size);
    void *(*mem_alloc_z)(size_t size);
    void *(*mem_realloc)(void *ptr, size_t size);
    void (*mem_free)(void *ptr);
    char *(*str_dup)(const char *text);
    /* Formats into a new string, *text, and sets *len. Returns *text, or NULL. */
    char *(*str_build)(char **text, unsigned long *len, const char *format, ...);
    /* Returns a new string with the bytes from `from` to before `to`, or NULL: there are not that many. */
    char *(*str_copy_substr)(const char *text, int from, int to);
    /* Return where `text` is in `in`, or -1; str_search_n() looks at `len` bytes of `in`, or up to its end if fewer. */
    int (*str_search)(const char *in, const char *text, int sensitivity);
    int (*str_search_n)(const char *in, const char *text, int sensitivity, int len);
    /* Returns 0, or -1: there is no such file. */
    int (*file_get_info)(const char *path, struct file_info *info);
    int (*socket_set_tcp_nodelay)(int fd);
    /* pthread_create() of the service. */
    int (*thread_create)(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *arg), void *arg);
    /* Returns the content of a file as a new string, or NULL. */
    char *(*file_to_buffer)(const char *path);
};

DUDA_OBJECT_AS(struct duda_old_monkey, monkey, "monkey.1")

#ifndef DUDA_FRAMEWORK

/* Threads that a service creates may use the objects, which are those of the service whose code runs. */
#define pthread_create(ret, attr, fn, arg) monkey->thread_create(ret, attr, fn, arg)

#endif

#endif
