// SPDX-License-Identifier: Apache-2.0
/*
 * The files of the live page, which are part of the module: CMake writes files.c from files.c.in.
 */
#ifndef STATUS_FILES_H
#define STATUS_FILES_H

#include <monkey/str.h>

struct file {
    struct mk_str name; /* below the path of the status; empty: the page itself */
    struct mk_str type, tag;
    const char *begin, *end;
};

/* Ends with a row without `begin`. */
extern const struct file files_all[];

#endif
