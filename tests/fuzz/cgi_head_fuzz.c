// SPDX-License-Identifier: Apache-2.0
/*
 * The head of a script's response: the first byte is the size of pieces. One piece, and pieces of that size, must give
 * the same fields and the same result; what is accepted has no byte that could begin another line.
 */
#include <monkey/kit/cgi.h>

#include <stdlib.h>

enum { FIELDS_MAX = 16 };

static const struct mk_response_limits limits = {.head_bytes_max = 1000, .fields_max = FIELDS_MAX};

struct outcome {
    struct mk_cgi_head head;
    struct mk_field fields[FIELDS_MAX];
    int err;
};

static struct outcome parse(const char *in, size_t len, size_t piece)
{
    struct outcome o = {.err = MK_AGAIN};
    mk_cgi_head_init(&o.head, &limits);
    for (size_t come = 0; come < len && o.err == MK_AGAIN;) {
        come += len - come < piece ? len - come : piece;
        o.err = mk_cgi_head_parse(&o.head, o.fields, mk_str(in, come));
    }
    return o;
}

static void check_text(struct mk_str s, size_t len)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] == '\n' || s.p[i] == '\r' || s.p[i] == '\0')
            abort();
    if (s.len > len)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    const char *in = (const char *)data + 1;
    struct outcome whole = parse(in, size - 1, SIZE_MAX), pieces = parse(in, size - 1, (size_t)data[0] % 16 + 1);
    if (whole.err != pieces.err)
        abort();
    if (whole.err != 0)
        return 0;
    if (whole.head.n_fields != pieces.head.n_fields || whole.head.head_bytes != pieces.head.head_bytes ||
        whole.head.status != pieces.head.status || whole.head.length != pieces.head.length)
        abort();
    if (!whole.head.n_fields || whole.head.n_fields > FIELDS_MAX || whole.head.head_bytes > size - 1 ||
        whole.head.status < 200 || whole.head.status > 999)
        abort();
    for (unsigned i = 0; i < whole.head.n_fields; i++) {
        check_text(mk_span_str(in, whole.fields[i].name), size);
        check_text(mk_span_str(in, whole.fields[i].value), size);
    }
    check_text(mk_cgi_find_local_redirect(&whole.head, mk_str(in, size - 1)), size);
    return 0;
}
