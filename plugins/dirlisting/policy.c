// SPDX-License-Identifier: Apache-2.0
/*
 * Makes policies (policy.h).
 */
#include "policy.h"

#include <monkey/base64.h>
#include <sha256.h> /* of libmd, which is small: libcrypto would cost half a megabyte of private memory */

static void write_digest(struct mk_buf *out, struct mk_str code)
{
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA2_CTX context;
    SHA256Init(&context);
    SHA256Update(&context, (const uint8_t *)code.p, code.len);
    SHA256Final(digest, &context);
    mk_buf_adds(out, MK_STR(" 'sha256-"));
    mk_base64_encode(out, digest, sizeof(digest), MK_BASE64);
    mk_buf_addc(out, '\'');
}

static void write_sources(struct mk_buf *out, struct mk_str name, const struct template_codes *codes, bool scripts,
                          bool files)
{
    bool none = !files;
    mk_buf_adds(out, name);
    if (files)
        mk_buf_adds(out, MK_STR(" 'self'"));
    for (uint32_t i = 0; i < codes->n; i++) {
        if (codes->items[i].is_script != scripts)
            continue;
        write_digest(out, codes->items[i].text);
        none = false;
    }
    if (none)
        mk_buf_adds(out, MK_STR(" 'none'"));
}

void policy_write(struct mk_buf *out, const struct template_codes *codes, const struct markup *markup)
{
    mk_buf_adds(out, MK_STR("default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; "
                            "font-src 'self'; img-src 'self' data:; "));
    write_sources(out, MK_STR("style-src"), codes, false, markup->has_style_file);
    write_sources(out, MK_STR("; script-src"), codes, true, markup->has_script_file);
}
