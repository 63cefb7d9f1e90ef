// SPDX-License-Identifier: Apache-2.0
/*
 * Writes requests: FastCGI records, or an SCGI netstring, with the variables of RFC 3875.
 */
#ifndef FASTCGI_REQUEST_H
#define FASTCGI_REQUEST_H

#include "conf.h"

/* What a request asks for; in the arena of the request. */
struct fastcgi_script {
    struct mk_str name, info;     /* SCRIPT_NAME and PATH_INFO */
    struct mk_str filename, root; /* SCRIPT_FILENAME and DOCUMENT_ROOT; `.p` NULL: there is none */
    const char *log_prefix;       /* of lines that the application writes to stderr */
};

/* Functions of struct mk_gateway_protocol; mk_gateway_call.arg is a struct fastcgi_script. */
int request_write_fastcgi(const struct mk_gateway_call *c, const struct mk_gateway_body *body, struct mk_buf *out);
int request_write_scgi(const struct mk_gateway_call *c, const struct mk_gateway_body *body, struct mk_buf *out);

extern const struct mk_gateway_frames request_stdin; /* of FastCGI */

#endif
