// SPDX-License-Identifier: Apache-2.0
/*
 * Shared objects that are opened while the program runs: modules, HTTP/2 and PCRE2.
 */
#ifndef MK_BASE_LIBRARY_H
#define MK_BASE_LIBRARY_H

#include <monkey/buf.h>

/* A symbol, and the pointer that gets its address: a `void **`, or a pointer to a pointer to a function. */
struct mk__library_symbol {
    const char *name;
    void *pointer;
};

/*
 * Opens a shared object by path, or by its name if `file` has no slash. With `reload`, a file that was replaced since
 * it was last opened is another object; else the first one is returned again. Returns the handle for dlclose(), or NULL
 * with the reason in `error`, which does not name the file.
 */
void *mk__library_open(const char *file, bool reload, struct mk_buf *error);

/* Sets the pointers of `n` symbols. Returns 0, or -ENOEXEC with the reason in `error` if one is missing. */
int mk__library_find(void *handle, const struct mk__library_symbol *symbols, size_t n, struct mk_buf *error);

/* Returns why the file cannot be opened, as far as this is known without opening it as a library; NULL: it is fine. */
const char *mk__library_check(const char *path);

#endif
