// SPDX-License-Identifier: Apache-2.0
/* The manual, in builds whose tables have no texts (MK_MANUAL): lib/monkey/reference.md. */
#include <monkey/base/arena.h>
#include <monkey/base/file.h>
#include <monkey/base/library.h>
#include <monkey/monkey.h>
#include <monkey/plugin.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { MANUAL_BYTES_MAX = 1024 * 1024 /* of a file */ };

/* A test compares the file with the tables. */
int mk_reference(struct mk_buf *out)
{
    struct mk_arena arena;
    struct mk_file_bytes text;
    char path[PATH_MAX];
    mk_arena_init(&arena, NULL, MANUAL_BYTES_MAX, NULL, 0);
    snprintf(path, sizeof(path), "%s/reference.md", mk_plugin_dir());
    int err = mk_file_read(path, MANUAL_BYTES_MAX, &arena, &text);
    if (err == 0)
        mk_buf_add(out, text.data, text.len);
    else
        mk_buf_addf(out, "The manual should be %s: %s\n", path, strerror(-err));
    mk_arena_release(&arena);
    return out->err;
}
