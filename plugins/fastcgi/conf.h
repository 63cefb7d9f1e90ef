// SPDX-License-Identifier: Apache-2.0
/*
 * The directives of [FASTCGI] and [SCGI].
 */
#ifndef FASTCGI_CONF_H
#define FASTCGI_CONF_H

#include "spawn.h"

#include <monkey/kit/cgi.h>
#include <monkey/kit/gateway.h>

enum { FASTCGI_TRIES_MAX = 16 };

/* What an entry of TryFiles is. */
enum fastcgi_try_kind {
    FASTCGI_TRY_FILE,   /* $path */
    FASTCGI_TRY_FOLDER, /* $path/ */
    FASTCGI_TRY_SCRIPT, /* a name that Split matches, after $path or alone */
    FASTCGI_TRY_STATUS, /* =404 */
};

struct fastcgi_try {
    enum fastcgi_try_kind kind;
    bool has_path;      /* FASTCGI_TRY_SCRIPT: it begins with $path */
    struct mk_str text; /* of a script, after $path */
    int status;
};

struct fastcgi_tries {
    struct fastcgi_try items[FASTCGI_TRIES_MAX];
    uint32_t n;
};

/* A section; constant once the configuration is loaded. */
struct fastcgi_conf {
    struct mk_gateway_conf gateway;
    struct mk_conf_list split;  /* extensions with their dots; empty: each path is the application's */
    struct mk_str index;        /* empty: none */
    struct fastcgi_tries tries; /* none: by Split and Index alone */
    struct mk_str remote_root;  /* empty: scripts are below the document root of the host */
    struct mk_cgi_extras params;
    bool pass_authorization;
    int encoded_slash;       /* enum mk_encoded_slash */
    struct spawn_conf spawn; /* in place of To */
    int64_t children;        /* of it; 0: not set */
};

enum { FASTCGI_SECTION, SCGI_SECTION };
extern const struct mk_conf_section fastcgi_sections[];

#endif
