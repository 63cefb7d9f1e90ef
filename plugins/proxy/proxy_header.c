// SPDX-License-Identifier: Apache-2.0
/* The PROXY protocol (proxy_header.h), as its specification of HAProxy has it. */
#include "proxy_header.h"

enum { TCP4 = 0x11, TCP6 = 0x21, VERSION_2_PROXY = 0x21 };

static bool is_ip(const struct mk_address *a)
{
    return a->family == AF_INET || a->family == AF_INET6;
}

static void map_to_ipv6(struct mk_address *a)
{
    struct mk_address v6 = {.family = AF_INET6, .port = a->port, .bytes = {[10] = 0xff, 0xff}};
    if (a->family != AF_INET)
        return;
    memcpy(v6.bytes + 12, a->bytes, 4);
    *a = v6;
}

static void write_v1(struct mk_buf *out, const struct mk_address *client, const struct mk_address *server)
{
    if (!is_ip(client)) {
        mk_buf_adds(out, MK_STR("PROXY UNKNOWN\r\n"));
        return;
    }
    mk_buf_addf(out, "PROXY TCP%c ", client->family == AF_INET ? '4' : '6');
    mk_address_print(client, out);
    mk_buf_addc(out, ' ');
    mk_address_print(server, out);
    mk_buf_addf(out, " %u %u\r\n", client->port, server->port);
}

static void add_u16(struct mk_buf *out, unsigned value)
{
    mk_buf_addc(out, (char)(value >> 8));
    mk_buf_addc(out, (char)value);
}

static void write_v2(struct mk_buf *out, const struct mk_address *client, const struct mk_address *server)
{
    static const char signature[] = "\r\n\r\n\0\r\nQUIT\n";
    size_t n = client->family == AF_INET ? 4 : 16;
    mk_buf_add(out, signature, sizeof(signature) - 1);
    mk_buf_addc(out, VERSION_2_PROXY);
    if (!is_ip(client)) {
        mk_buf_addc(out, 0);
        add_u16(out, 0);
        return;
    }
    mk_buf_addc(out, n == 4 ? TCP4 : TCP6);
    add_u16(out, (unsigned)(2 * n + 4));
    mk_buf_add(out, client->bytes, n);
    mk_buf_add(out, server->bytes, n);
    add_u16(out, client->port);
    add_u16(out, server->port);
}

void proxy_header_write(struct mk_buf *out, enum proxy_send_proxy version, struct mk_address client,
                        struct mk_address server)
{
    if (!is_ip(&server))
        server = (struct mk_address){.family = client.family};
    if (client.family != server.family) {
        map_to_ipv6(&client);
        map_to_ipv6(&server);
    }
    if (version == PROXY_SEND_PROXY_V1)
        write_v1(out, &client, &server);
    else
        write_v2(out, &client, &server);
}
