// SPDX-License-Identifier: Apache-2.0
/*
 * A stream of HTTP/2 that was taken over (<monkey/tunnel.h>, RFC 8441): what the handler writes waits here for the
 * client's windows.
 */
#ifndef MK_HTTP_H2_TUNNEL_H
#define MK_HTTP_H2_TUNNEL_H

#include "http/h2/h2.h"

/* Of struct mk__protocol. */
ssize_t mk__h2_tunnel_read(struct mk_request *req, void *to, size_t size);
ssize_t mk__h2_tunnel_write(struct mk_request *req, const void *from, size_t size);
int mk__h2_tunnel_shutdown(struct mk_request *req);

/* Tells the handler what is possible. */
void mk__h2_tunnel_step(struct mk__h2_stream *s);
/* As of mk__h2_response_read(). */
ssize_t mk__h2_tunnel_send(struct mk__h2_stream *s, char *to, size_t size, bool *ret_end);
/* Frees what waits. */
void mk__h2_tunnel_free(struct mk__h2_stream *s);

#endif
