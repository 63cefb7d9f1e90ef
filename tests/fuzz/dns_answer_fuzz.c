// SPDX-License-Identifier: Apache-2.0
/*
 * The parser of answers of name servers (plugins/upstream/dns_answer.c): the first byte picks the type of record. What
 * it passes on lies in the message, and a name has only bytes that a host name may have.
 */
#include "plugins/upstream/dns_answer.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

struct run {
    struct mk_str message;
    uint16_t type;
    int n;
};

static void check_target(struct mk_str target)
{
    assert(target.len <= DNS_NAME_BYTES_MAX);
    for (size_t i = 0; i < target.len; i++)
        assert(strchr("abcdefghijklmnopqrstuvwxyz0123456789-_.", target.p[i]) && target.p[i]);
}

static void take_record(const struct dns_record *record, void *ctx)
{
    struct run *run = ctx;
    const char *address = (const char *)record->address;
    run->n++;
    assert(record->ttl_s <= INT32_MAX);
    if (run->type == DNS_SRV)
        check_target(record->target);
    else
        assert(address >= run->message.p &&
               address + (run->type == DNS_A ? 4 : 16) <= run->message.p + run->message.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint16_t types[] = {DNS_A, DNS_AAAA, DNS_SRV};
    if (!size)
        return 0;
    struct run run = {{(const char *)data + 1, size - 1}, types[data[0] % 3], 0};
    int n = dns_answer_each(run.message, run.type, take_record, &run);
    assert(n < 0 || n == run.n);
    return 0;
}
