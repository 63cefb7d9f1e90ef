// SPDX-License-Identifier: Apache-2.0
/*
 * tunnel: its own protocol behind an upgrade. A client that asks for GET /tunnel/ with "Upgrade: rot13" gets each
 * letter that it sends back as the one 13 places further.
 */
#include <duda/duda.h>

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

DUDA_REGISTER("Duda I/O examples", "tunnel");

enum { PIECE_BYTES = 4096 };

/* Of one client: what was read, and could not be written yet. */
struct client {
    size_t at, len;
    char bytes[PIECE_BYTES];
};

static void rotate(char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        int first = isupper((unsigned char)bytes[i]) ? 'A' : 'a';
        if (isalpha((unsigned char)bytes[i]))
            bytes[i] = (char)(first + (bytes[i] - first + 13) % 26);
    }
}

/* Writes what waits. Returns false if some of it still waits, or the connection has failed. */
static bool write_bytes(duda_request_t *dr, struct client *c)
{
    while (c->at < c->len) {
        ssize_t n = tunnel->write(dr, c->bytes + c->at, c->len - c->at);
        if (n < 0 && n != -EAGAIN)
            tunnel->end(dr);
        if (n < 0)
            return false; /* after -EAGAIN exchange() is called again */
        c->at += (size_t)n;
    }
    return true;
}

/* Nothing is read before all was written: so a client that does not read is held back. */
static void exchange(duda_request_t *dr, unsigned events, void *data)
{
    struct client *c = data;
    if (events & (DUDA_TUNNEL_DRAINING | DUDA_TUNNEL_RETIRED)) {
        tunnel->end(dr);
        return;
    }
    while (write_bytes(dr, c)) {
        ssize_t n = tunnel->read(dr, c->bytes, sizeof(c->bytes));
        if (n == -EAGAIN)
            return;
        if (n <= 0) {
            tunnel->end(dr);
            return;
        }
        c->at = 0;
        c->len = (size_t)n;
        rotate(c->bytes, c->len);
    }
}

static void open_tunnel(duda_request_t *dr)
{
    struct client *c = calloc(1, sizeof(*c));
    if (!c || gc->add(dr, c) < 0) {
        free(c);
        response->error(dr, 503);
    } else if (request->header_cmp(dr, "Upgrade", "rot13") != 0 || tunnel->open(dr, "rot13", exchange, c) < 0) {
        response->http_status(dr, 426);
        response->header(dr, "Upgrade", "rot13");
        response->end(dr, NULL);
    }
}

int duda_main(void)
{
    return router->get("/", open_tunnel) ? 0 : -1;
}
