// SPDX-License-Identifier: Apache-2.0
/*
 * X-Forwarded-For and Forwarded: the search is short and ends at an address, and what a client writes does not change
 * what a proxy that is trusted puts behind it.
 */
#include <stdint.h>
#include <stdlib.h>

#include "http/message/forwarded.h"

static struct mk_network items[1];
static const struct mk_networks trusted = {items, 1};

static struct mk__forwarded walk(void (*read)(struct mk__forwarded *f, struct mk_str line), const char *line,
                                 size_t len)
{
    struct mk__forwarded f = {.trusted = &trusted};
    mk_address_parse(MK_STR("10.0.0.1"), &f.client);
    read(&f, mk_str(line, len));
    if (f.hops > MK__FORWARDED_HOPS_MAX || (f.client.family != AF_INET && f.client.family != AF_INET6))
        abort();
    return f;
}

static void check_appended(void (*read)(struct mk__forwarded *f, struct mk_str line), const uint8_t *data, size_t size,
                           struct mk_str appended)
{
    char *line = malloc(size + appended.len);
    struct mk_address right;
    if (!line)
        return;
    if (size)
        memcpy(line, data, size);
    memcpy(line + size, appended.p, appended.len);
    struct mk__forwarded f = walk(read, line, size + appended.len);
    mk_address_parse(MK_STR("192.0.2.1"), &right);
    if (!mk_address_equal(&f.client, &right))
        abort();
    mk__forwarded_read_x_proto(&f, mk_str(line, size));
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mk_network_parse(MK_STR("10.0.0.0/8"), items, NULL);
    walk(mk__forwarded_read_x_for, (const char *)data, size);
    walk(mk__forwarded_read, (const char *)data, size);
    check_appended(mk__forwarded_read_x_for, data, size, MK_STR(", 192.0.2.1, 10.0.0.2"));
    check_appended(mk__forwarded_read, data, size, MK_STR(",for=\"192.0.2.1\";host=\"a\\\",b\", for=10.0.0.2;by=x"));
    return 0;
}
