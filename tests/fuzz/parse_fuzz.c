// SPDX-License-Identifier: Apache-2.0
/*
 * Heads of requests: read at once, and in two steps with a cut that the input picks, they must give the same
 * spans, the same handshake_result and the same meaning.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/message/request_head.h"

enum { FIELDS_MAX = 8 };

static const struct mk__parse_limits limits = {.line_bytes_max = 200, .head_bytes_max = 1000, .fields_max = FIELDS_MAX};

struct outcome {
    struct mk_head_parser parse;
    struct mk_field fields[FIELDS_MAX];
    struct mk__request_head head;
    int result, meaning;
};

static void check_span(struct mk_span span, size_t len)
{
    if ((size_t)span.at + span.len > len)
        abort();
}

/* Every step sees the bytes at another place, with nothing behind them. Without `memo` each host is checked. */
static int read_from(struct outcome *o, struct mk__host_memo *memo, const char *in, size_t len)
{
    char *copy = malloc(len ? len : 1);
    if (!copy)
        abort();
    memcpy(copy, in, len);
    o->result = mk__parse_head(&o->parse, o->fields, &limits, mk_str(copy, len));
    if (o->result == 0) {
        o->meaning = mk__request_head_read(&o->parse, o->fields, copy, memo, &o->head);
        check_span(o->head.path, len);
        check_span(o->head.query, len);
        check_span(o->head.host, len);
    }
    free(copy);
    return o->result;
}

static void check_sane(const struct outcome *o, size_t len)
{
    if (o->parse.n_fields > FIELDS_MAX || o->parse.head_len > len)
        abort();
    if (o->result != 0)
        return;
    check_span(o->parse.method_name, o->parse.head_len);
    check_span(o->parse.target, o->parse.head_len);
    for (unsigned i = 0; i < o->parse.n_fields; i++) {
        check_span(o->fields[i].name, o->parse.head_len);
        check_span(o->fields[i].value, o->parse.head_len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct outcome empty;
    static struct mk__host_memo memo; /* of all inputs */
    struct outcome whole = empty, cut = empty;
    if (size < 2)
        return 0;
    const char *in = (const char *)data + 2;
    size_t len = size - 2, at = ((size_t)data[0] << 8 | data[1]) % (len + 1);

    read_from(&whole, NULL, in, len);
    check_sane(&whole, len);
    if (read_from(&cut, &memo, in, at) == MK_AGAIN)
        read_from(&cut, &memo, in, len);
    check_sane(&cut, len);
    if (whole.result != cut.result || whole.meaning != cut.meaning)
        abort();
    if (whole.result == 0 && (memcmp(&whole.head, &cut.head, sizeof(whole.head)) != 0 ||
                              memcmp(whole.fields, cut.fields, whole.parse.n_fields * sizeof(*whole.fields)) != 0 ||
                              whole.parse.head_len != cut.parse.head_len || whole.parse.seen != cut.parse.seen))
        abort();
    return 0;
}
