// SPDX-License-Identifier: Apache-2.0
/*
 * Opens shared objects while the program runs, and finds their symbols. A file that is incomplete, or is no regular
 * file, is an error; dlopen(3) would end the program or wait forever. All functions may block; any thread.
 *
 *     mode                  the file was replaced since the     its bytes are overwritten,   an object that is open
 *                           last time (its inode is another)    or it is truncated           is returned again
 *     MK_LIBRARY_SHARED     the object of the old file          the program may crash        yes
 *     MK_LIBRARY_REPLACED   an object of the new file           the program may crash        for the same file
 *     MK_LIBRARY_COPY       an object of the new file           no effect                    never
 *
 * Objects are opened with RTLD_NOW | RTLD_LOCAL: all symbols must be found, and others do not see those of the object.
 * They find the functions of the library also in a program that has opened it with RTLD_LOCAL: the first call opens it
 * again with RTLD_GLOBAL.
 */
#ifndef MONKEY_LIBRARY_H
#define MONKEY_LIBRARY_H

#include <stddef.h>

#include "buf.h"

MK_C_BEGIN

enum mk_library_mode {
    MK_LIBRARY_SHARED,   /* as dlopen(3) */
    MK_LIBRARY_REPLACED, /* sees whether the file was replaced */
    MK_LIBRARY_COPY,     /* a copy of the file in memory; each call makes its own object, with its own variables */
};

/* A symbol, and the pointer that gets its address: a `void **`, or a pointer to a pointer to a function. */
struct mk_library_symbol {
    const char *name;
    void *pointer;
};

/*
 * Opens a shared object by path; with MK_LIBRARY_SHARED also by its name, if `file` has no slash.
 * Returns the handle for mk_library_find(), mk_library_close() and dlsym(3), or NULL with the reason in `error`, which
 * does not name the file.
 */
MK_API void *mk_library_open(const char *file, enum mk_library_mode mode, struct mk_buf *error);

/*
 * Opens a copy of the file of a descriptor, which stays the caller's, as MK_LIBRARY_COPY does: for a caller that has to
 * know which file it is, for example by fstat(2). `name` is the name of the copy in /proc/PID/maps, cut at 200 bytes.
 * `ret_copy`: NULL, or gets a descriptor of the copy, which the caller closes; -1 without an object, or if there are no
 * descriptors left.
 * Returns as mk_library_open(). A file of more than 1 GB is not copied.
 */
MK_API void *mk_library_open_copy(int fd, const char *name, int *ret_copy, struct mk_buf *error);

/* Sets the pointers of `n` symbols. Returns 0, or -ENOEXEC with the reason in `error` if one is missing. */
MK_API int mk_library_find(void *handle, const struct mk_library_symbol *symbols, size_t n, struct mk_buf *error);

/* Closes an object, which is unmapped when it was closed as often as it was opened. */
MK_API void mk_library_close(void *handle);

/* Returns why the file cannot be opened, as far as this is known without opening it as a library; NULL: it is fine. */
MK_API const char *mk_library_check(const char *path);

MK_C_END

#endif
