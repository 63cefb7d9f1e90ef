// SPDX-License-Identifier: Apache-2.0
/*
 * Writes paths for other servers (<monkey/kit/target.h>).
 */
#include <monkey/base/escape.h>
#include <monkey/kit/encoded_slash.h>
#include <monkey/kit/target.h>

const char *const mk_encoded_slash_names[] = {"Refuse", "Keep", "Decode", NULL};

void mk_target_write_path(struct mk_buf *out, struct mk_str path, bool has_encoded_slash)
{
    const char *slash;
    while (has_encoded_slash && (slash = memmem(path.p, path.len, "%2F", 3))) {
        size_t n = (size_t)(slash - path.p);
        mk_path_encode(out, mk_str(path.p, n));
        mk_buf_adds(out, MK_STR("%2F"));
        path = mk_str(slash + 3, path.len - n - 3);
    }
    mk_path_encode(out, path);
}
