// SPDX-License-Identifier: Apache-2.0
/*
 * Where the shared objects of services and packages are in memory, by which crashes and stack traces name them.
 */
#ifndef DUDA_CORE_CRASH_CRASH_OBJECT_H
#define DUDA_CORE_CRASH_CRASH_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CRASH_NAME_BYTES = 72, CRASH_FILE_BYTES = 512, CRASH_COPY_BYTES = 32 };

struct backtrace_state;
struct mk_counter;

enum crash_kind { CRASH_SERVICE, CRASH_PACKAGE };

/* Is never freed before crash_stop(), because a handler may read it at any time, but used again. */
struct crash_object {
    struct crash_object *next;
    _Atomic uintptr_t begin, end;
    _Atomic bool has_ended; /* the place may be used again */
    enum crash_kind kind;
    uintptr_t bias;                             /* what is added to the addresses of the file */
    _Atomic(const struct mk_counter *) crashes; /* NULL: not counted */
    char name[CRASH_NAME_BYTES];
    char file[CRASH_FILE_BYTES];             /* that it was loaded from; "": the path is too long */
    int copy;                                /* a descriptor of a copy of that file, in memory */
    _Atomic unsigned copy_users;             /* the last one closes it; 0: there is none, functions have no names */
    char copy_path[CRASH_COPY_BYTES];        /* of the descriptor */
    _Atomic(struct backtrace_state *) names; /* NULL: not read yet; see names.c */
};

/* Finds the object that contains `address`. Returns NULL without memory: then its stack traces show no names. */
struct crash_object *crash_add_object(enum crash_kind kind, const char *name, const void *address);
/*
 * Sets the file that it was loaded from, and a descriptor of its copy in memory, which the object owns: names and lines
 * are read from the copy, because the file may be another one by then. `copy`: -1 without one.
 */
void crash_set_file(struct crash_object *object, const char *file, int copy);
/*
 * Keeps the copy open until crash_release_copy(), also if the object is removed meanwhile. Returns false if there is
 * none. Async-signal-safe.
 */
bool crash_hold_copy(struct crash_object *object);
void crash_release_copy(struct crash_object *object);
/* It has ended. A crash at an address of it is still logged with its name, until another object is added. */
void crash_remove_object(struct crash_object *object);
/* Returns the object that contains the address, or NULL. Async-signal-safe. */
struct crash_object *crash_find_object(uintptr_t address);
/* Returns whether an object of the process contains the address. */
bool crash_is_mapped(const void *address);
/* Frees those that have ended; the others belong to services with threads that have not. */
void crash_free_objects(void);

#endif
