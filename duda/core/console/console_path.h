// SPDX-License-Identifier: Apache-2.0
/*
 * The paths of a console (console_serve.h). Pure.
 */
#ifndef DUDA_CORE_CONSOLE_CONSOLE_PATH_H
#define DUDA_CORE_CONSOLE_CONSOLE_PATH_H

#include "service/service.h"

#include <monkey/base/str.h>

enum { CONSOLE_PATH_BYTES_MAX = 255 };

enum console_view {
    CONSOLE_NONE,     /* the path is none of a console */
    CONSOLE_SLASH,    /* redirect it to the path with a slash */
    CONSOLE_PAGE,     /* PATH/ */
    CONSOLE_MESSAGES, /* PATH/messages, as in level 1 of the original API */
    CONSOLE_MAP,      /* PATH/map */
};

/* Of a service. */
struct console {
    struct mk_str path; /* of console->dashboard(), trimmed; empty: it was not called */
};

FEATURE_SLOT(console_of, struct console, service, FEATURE_CONSOLE)

/* Checks the path of a console, below the URL of its service. Returns NULL, or what is wrong with it: a clause. */
const char *console_path_check(struct mk_str path);
/* Returns the path without its last slash. */
struct mk_str console_path_trim(struct mk_str path);
/* Returns what `rest`, below the service's URL, means for a console at `path`, which is trimmed; empty: there is none.
 */
enum console_view console_path_find(struct mk_str path, struct mk_str rest);

#endif
