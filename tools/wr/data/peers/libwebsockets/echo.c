// SPDX-License-Identifier: Apache-2.0
/*
 * echo PORT [CERTIFICATE KEY]: WebSockets with libwebsockets, one thread. What comes on /echo is sent back, and what
 * comes on /all to all clients of /all. The library asks for a write in its own callback: messages wait in a ring
 * until then, and as many are written as the socket takes.
 */
#include <libwebsockets.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGE_BYTES_MAX = 65536, WAITING_MAX = 64, IDLE_SECONDS = 65 };

/* A message, with the room that the library wants before it. */
struct message {
    unsigned refs;
    size_t len;
    unsigned char bytes[];
};

struct client {
    struct lws *wsi;
    struct client *next; /* of /all */
    struct message *waiting[WAITING_MAX];
    unsigned first, n;
    bool is_of_all;
};

static struct client *all;

static void put_message(struct message *m)
{
    if (--m->refs == 0)
        free(m);
}

/* A client that is too far behind loses the message. */
static void queue_message(struct client *c, struct message *m)
{
    if (c->n == WAITING_MAX)
        return;
    m->refs++;
    c->waiting[(c->first + c->n++) % WAITING_MAX] = m;
    if (c->n == 1)
        lws_callback_on_writable(c->wsi);
}

static void take_message(struct client *c, const void *data, size_t len)
{
    struct message *m = malloc(sizeof(*m) + LWS_PRE + len);
    if (!m)
        return;
    m->refs = 1;
    m->len = len;
    memcpy(m->bytes + LWS_PRE, data, len);
    if (c->is_of_all)
        for (struct client *each = all; each; each = each->next)
            queue_message(each, m);
    else
        queue_message(c, m);
    put_message(m);
}

static int write_messages(struct client *c)
{
    while (c->n && !lws_send_pipe_choked(c->wsi)) {
        struct message *m = c->waiting[c->first];
        if (lws_write(c->wsi, m->bytes + LWS_PRE, m->len, LWS_WRITE_TEXT) < (int)m->len)
            return -1;
        put_message(m);
        c->first = (c->first + 1) % WAITING_MAX;
        c->n--;
    }
    if (c->n)
        lws_callback_on_writable(c->wsi);
    return 0;
}

static void open_client(struct client *c, struct lws *wsi)
{
    char path[32] = "";
    memset(c, 0, sizeof(*c));
    c->wsi = wsi;
    lws_hdr_copy(wsi, path, sizeof(path), WSI_TOKEN_GET_URI);
    c->is_of_all = strcmp(path, "/all") == 0;
    if (!c->is_of_all)
        return;
    c->next = all;
    all = c;
}

static void close_client(struct client *c)
{
    for (struct client **at = &all; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    for (; c->n; c->n--, c->first = (c->first + 1) % WAITING_MAX)
        put_message(c->waiting[c->first]);
}

static int handle(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
    switch (reason) {
    case LWS_CALLBACK_ESTABLISHED:
        open_client(user, wsi);
        break;
    case LWS_CALLBACK_RECEIVE:
        take_message(user, in, len);
        break;
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return write_messages(user);
    case LWS_CALLBACK_CLOSED:
        close_client(user);
        break;
    default:
        break;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct lws_protocols protocols[] = {
        {"echo", handle, sizeof(struct client), MESSAGE_BYTES_MAX, 0, NULL, 0},
        {0},
    };
    struct lws_context_creation_info info = {.protocols = protocols,
                                             .iface = "127.0.0.1",
                                             .keepalive_timeout = IDLE_SECONDS};
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return puts(lws_get_library_version()) < 0;
    lws_set_log_level(LLL_ERR, NULL);
    info.port = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
    if (argc == 4 && argv[2][0]) {
        info.options = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
        info.ssl_cert_filepath = argv[2];
        info.ssl_private_key_filepath = argv[3];
    }
    struct lws_context *context = lws_create_context(&info);
    if (!context)
        return 1;
    while (lws_service(context, 0) >= 0)
        ;
    return 1;
}
