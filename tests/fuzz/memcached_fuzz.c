// SPDX-License-Identifier: Apache-2.0
/*
 * The package memcached: lines of replies. The same result comes with one byte more at a time, and nothing behind the
 * line is read. A line that was read stays what it is when its flags are written and read again.
 */
#include "duda/packages/memcached/protocol.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

/* Reads a copy, so that AddressSanitizer sees reads beyond its end. */
static int parse(const uint8_t *data, size_t n, struct mc_reply *ret)
{
    const char *error;
    char *copy = malloc(n + !n);
    CHECK(copy);
    memcpy(copy, data, n);
    int result = mc_reply_parse(copy, n, ret, &error);
    CHECK((result < 0) == (error != NULL) && result <= (int)n);
    CHECK(ret->len <= MC_VALUE_BYTES_MAX && ret->text.len <= n);
    CHECK(!ret->text.len || (ret->text.p >= copy && ret->text.p + ret->text.len <= copy + n));
    free(copy);
    return result;
}

static void check_flags(const struct mc_reply *reply)
{
    char line[256];
    struct mc_reply again;
    int n = snprintf(line, sizeof(line), "VA %zu O%llu c%llu t%lld f%u%s%s%s\r\n", reply->len,
                     (unsigned long long)reply->opaque, (unsigned long long)reply->cas, (long long)reply->ttl_s,
                     reply->flags, reply->won ? " W" : "", reply->stale ? " X" : "", reply->busy ? " Z" : "");
    CHECK(parse((const uint8_t *)line, (size_t)n, &again) == n);
    CHECK(again.len == reply->len && again.opaque == reply->opaque && again.cas == reply->cas);
    CHECK(again.ttl_s == reply->ttl_s && again.flags == reply->flags && again.won == reply->won);
    CHECK(again.stale == reply->stale && again.busy == reply->busy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    for (unsigned lines = 0; lines < 20; lines++) {
        struct mc_reply reply, part;
        int used = parse(data, len, &reply);
        for (size_t n = 0; n < len && n < 80; n++) {
            int result = parse(data, n, &part);
            CHECK(used > 0 && (size_t)used <= n ? result == used : result == 0 || used < 0);
        }
        if (used <= 0)
            return 0;
        check_flags(&reply);
        size_t all = (size_t)used + (reply.code == MC_VA ? reply.len + 2 : 0);
        if (all > len)
            return 0;
        data += all;
        len -= all;
    }
    return 0;
}
