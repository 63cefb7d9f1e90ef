// SPDX-License-Identifier: Apache-2.0
/*
 * Themes: folders with the templates header.theme, entry.theme and footer.theme.
 */
#ifndef DIRLISTING_THEME_H
#define DIRLISTING_THEME_H

#include "template.h"

struct theme {
    struct theme *next;
    struct mk_str name; /* as configured: of an installed theme, or an absolute path */
    struct template header, entry, footer;
    struct mk_str policy; /* Content-Security-Policy */
};

/*
 * Reads a theme. The files may be symbolic links within the folder, and must be regular files of TEMPLATE_BYTES_MAX at
 * most. Memory comes from `arena`. May block.
 * Returns 0, -EINVAL (a sentence is in `error`) or -ENOMEM.
 */
int theme_load(struct theme *ret, struct mk_str name, const struct template_field *fields, struct mk_arena *arena,
               struct mk_buf *error);

#endif
