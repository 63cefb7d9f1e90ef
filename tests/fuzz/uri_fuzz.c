// SPDX-License-Identifier: Apache-2.0
/*
 * Targets, authorities and paths: the first byte picks the method, the rest is the target. What is
 * accepted must keep its promises.
 */
#include <stdint.h>
#include <stdlib.h>

#include "http/message/uri.h"

#define CHECK(fact) \
    do { \
        if (!(fact)) \
            abort(); \
    } while (0)

static void check_segments(const char *path, size_t len)
{
    CHECK(path[0] == '/' && path[len] == '\0' && strlen(path) == len);
    for (const char *p = path; p; p = strchr(p + 1, '/')) {
        size_t n = strcspn(p + 1, "/");
        CHECK(n > 0 || p[1] == '\0');
        CHECK(!(n == 1 && p[1] == '.') && !(n == 2 && p[1] == '.' && p[2] == '.'));
    }
}

static void check_path(struct mk_str raw)
{
    char out[512], again[512];
    ssize_t n = mk__uri_decode_path(raw, out, sizeof(out));
    CHECK(n != 0 && n < (ssize_t)sizeof(out) && n <= (ssize_t)raw.len);
    if (n < 0)
        return;
    check_segments(out, (size_t)n);
    if (!memchr(out, '%', (size_t)n))
        CHECK(mk__uri_decode_path(mk_str(out, (size_t)n), again, sizeof(again)) == n &&
              memcmp(out, again, (size_t)n) == 0);
}

static void check_authority(struct mk_str host)
{
    struct mk__uri_host_port a;
    if (mk__uri_split_authority(host, &a) < 0)
        return;
    CHECK((a.kind == MK__HOST_EMPTY) == (host.len == 0));
    CHECK(a.name.len <= host.len && (a.has_port || a.port == 0));
}

static void check_target(struct mk_str method, struct mk_str target)
{
    struct mk__uri_parts t;
    if (mk__uri_split_target(method, target, &t) < 0)
        return;
    bool has_path = t.form == MK__URI_ORIGIN || t.form == MK__URI_ABSOLUTE;
    CHECK(has_path ? t.path.len && t.path.p[0] == '/' : !t.path.len);
    CHECK(t.form != MK__URI_ASTERISK || mk_str_eq(method, MK_STR("OPTIONS")));
    CHECK(t.has_query || !t.query.len);
    if (has_path)
        check_path(t.path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const methods[] = {"GET", "OPTIONS", "CONNECT"};
    if (!size)
        return 0;
    struct mk_str rest = mk_str((const char *)data + 1, size - 1);
    check_target(mk_str_c(methods[data[0] % 3]), rest);
    check_authority(rest);
    check_path(rest);
    return 0;
}
