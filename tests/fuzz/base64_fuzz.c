// SPDX-License-Identifier: Apache-2.0
/* Base64: bytes come back from their encoding, and what can be decoded is the encoding of the result. */
#include <stdint.h>
#include <stdlib.h>

#include <monkey/base/base64.h>

static void check(struct mk_str bytes, enum mk_base64_form form)
{
    struct mk_buf text, plain;
    mk_buf_init(&text, 1 << 20);
    mk_buf_init(&plain, 1 << 20);
    mk_base64_encode(&text, bytes.p, bytes.len, form);
    if (mk_base64_decode(&plain, mk_buf_str(&text), form) != 0 || !mk_str_eq(mk_buf_str(&plain), bytes))
        abort();
    text.len = plain.len = 0;
    if (mk_base64_decode(&plain, bytes, form) == 0) {
        mk_base64_encode(&text, plain.data, plain.len, form);
        if (!mk_str_eq(mk_buf_str(&text), bytes))
            abort();
    } else if (plain.len) {
        abort();
    }
    mk_buf_release(&text);
    mk_buf_release(&plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(mk_str((const char *)data, size), MK_BASE64);
    check(mk_str((const char *)data, size), MK_BASE64_URL);
    return 0;
}
