// SPDX-License-Identifier: Apache-2.0
/*
 * Files that a backend names in X-Accel-Redirect or X-Sendfile, below the folders of SendFile: this server sends them.
 */
#ifndef MK_GATEWAY_SEND_FILE_H
#define MK_GATEWAY_SEND_FILE_H

#include <monkey/conf.h>
#include <monkey/request.h>

/* What a response asks for. */
struct mk__gw_named_file {
    const char *log_name; /* for lines of the log */
    struct mk_str value;  /* of the header */
    bool is_uri;          /* of X-Accel-Redirect: percent-encoded, and also a path within a folder */
    struct mk_str type;   /* of the backend, valid until the exchange ends; empty: by the extension */
    bool no_ranges;
};

/*
 * Responds with the file and the headers that were added, or with 403, 404, 500 or 503, and a line in the log.
 * `folders` lasts as long as the generation.
 */
void mk__gw_send_file_respond(struct mk_request *req, const struct mk_conf_list *folders,
                              const struct mk__gw_named_file *named);

#endif
