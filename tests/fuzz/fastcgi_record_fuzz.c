// SPDX-License-Identifier: Apache-2.0
/*
 * What an application of FastCGI sends: the first byte is the size of pieces. One piece, and pieces of that size, must
 * leave the same bytes and the same result, and no more bytes than have come.
 */
#include "../../plugins/fastcgi/protocol.h"
#include "../../plugins/fastcgi/response.h"

#include <stdlib.h>

enum { BYTES_MAX = 4096 };

struct outcome {
    char bytes[BYTES_MAX];
    size_t len;
    int result;
    bool is_kept;
};

static void unwrap(const char *in, size_t size, size_t piece, struct outcome *o)
{
    static const struct mk_gateway_conf conf = {.keep_alive = 1};
    static struct mk_cgi_stderr_rate rate;
    struct fastcgi_response state = {.error_output = {.lines = MK_CGI_STDERR_LINES_MAX}}; /* lines are only counted */
    const struct mk_gateway_call call = {
        .protocol = &fastcgi_protocol, .conf = &conf, .state = &state, .thread = &rate, .loop = NULL};
    char buffer[BYTES_MAX];
    *o = (struct outcome){0};
    for (size_t at = 0; at < size && o->result == 0; at += piece) {
        size_t n = size - at < piece ? size - at : piece, len = n;
        bool has_excess = false;
        memcpy(buffer, in + at, n);
        o->result = response_unwrap(&call, buffer, &len, &has_excess);
        if (o->result < 0)
            break;
        if (len > n)
            abort();
        memcpy(o->bytes + o->len, buffer, len);
        o->len += len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct outcome whole, pieces;
    if (size < 2 || size > BYTES_MAX)
        return 0;
    for (size_t i = 1; i + 1 < size; i++) /* without lines of error output, which need a loop */
        if (data[i] == 1 && data[i + 1] == MK_FASTCGI_STDERR)
            return 0;
    unwrap((const char *)data + 1, size - 1, BYTES_MAX, &whole);
    unwrap((const char *)data + 1, size - 1, data[0] + 1u, &pieces);
    if (whole.result != pieces.result)
        abort();
    if (whole.result >= 0 && (whole.len != pieces.len || memcmp(whole.bytes, pieces.bytes, whole.len) != 0))
        abort();
    return 0;
}
