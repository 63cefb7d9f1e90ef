// SPDX-License-Identifier: Apache-2.0
/*
 * An HTTP/2 stream that a handler uses as a tunnel (<monkey/tunnel.h>, RFC 8441). Its output is held here until the
 * client's windows allow to send it.
 */
#ifndef MK_HTTP_H2_TUNNEL_H
#define MK_HTTP_H2_TUNNEL_H

#include "http/h2/h2.h"

/* Members of struct mk__request_ops. */
ssize_t mk__h2_tunnel_read(struct mk_request *req, void *to, size_t size);
ssize_t mk__h2_tunnel_write(struct mk_request *req, const void *from, size_t size);
int mk__h2_tunnel_shutdown(struct mk_request *req);

/* Calls the handler with the events that are possible now, and lets output be sent. */
void mk__h2_tunnel_step(struct mk__h2_stream *s);
/* Reads the next output, as mk__h2_response_read(). */
ssize_t mk__h2_tunnel_send(struct mk__h2_stream *s, char *to, size_t size, bool *ret_end);
/* Frees the held output. */
void mk__h2_tunnel_free(struct mk__h2_stream *s);

#endif
