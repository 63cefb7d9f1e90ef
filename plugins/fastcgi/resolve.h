// SPDX-License-Identifier: Apache-2.0
/*
 * What a path means for a section with Split: which script is run for it, or that it is a file. Looks at files, and so
 * may block.
 */
#ifndef FASTCGI_RESOLVE_H
#define FASTCGI_RESOLVE_H

#include "conf.h"

enum resolve_kind {
    RESOLVE_RUN,      /* a script */
    RESOLVE_DECLINE,  /* a file, or nothing that this section knows: for other plugins */
    RESOLVE_REDIRECT, /* a folder, to which the path with a slash leads */
    RESOLVE_STATUS,
};

struct resolution {
    enum resolve_kind kind;
    int status;                   /* of RESOLVE_STATUS */
    struct mk_cgi_script script;  /* of RESOLVE_RUN */
    char path[MK_CGI_PATH_BYTES]; /* that `script` points into */
};

/* Finds what a path means, which is decoded, normalized, begins with a slash and ends with a NUL. Any thread. */
void resolve_path(const struct fastcgi_conf *conf, const struct mk_host *host, struct mk_str path,
                  struct resolution *ret);
/* Adds what a path means, as a sentence without a full stop; nothing for RESOLVE_DECLINE. */
void resolve_explain(const struct resolution *found, struct mk_buf *out);

#endif
