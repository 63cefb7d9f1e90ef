// SPDX-License-Identifier: Apache-2.0
/* The cookie of Balance Sticky: its directive, its keys and its values. */
#include "plugins/upstream/conf.h"

#include "plugins/upstream/values_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

TEST(directive)
{
    struct mk_arena arena;
    struct mk_cookie cookie;
    mk_arena_init(&arena, NULL, 65536, NULL, 0);
    assert_int_equal(parse_words(sticky_parse_cookie, "server", &cookie, &arena), 0);
    assert_str_equal(cookie.name, "server");
    assert_true(!cookie.path.p && !cookie.max_age_s && !cookie.http_only && !cookie.secure);
    assert_int_equal(parse_words(sticky_parse_cookie, "s Path=/a Max-Age=60 httponly Secure samesite=none", &cookie,
                                 &arena),
                     0);
    assert_str_equal(cookie.path, "/a");
    assert_true(cookie.max_age_s == 60 && cookie.http_only && cookie.secure);
    assert_int_equal(cookie.same_site, MK_SAME_SITE_NONE);
    static const char *const refused[] = {"s Path=a",   "s Max-Age=0",   "s Max-Age=1h",      "s SameSite=None", "s;t",
                                          "s Domain=x", "s SameSite=No", "__Secure-s Path=/", "s Path="};
    for (size_t i = 0; i < COUNT(refused); i++)
        assert_int_equal(parse_words(sticky_parse_cookie, refused[i], &cookie, &arena), -EINVAL);
    mk_arena_release(&arena);
}

TEST(tokens)
{
    char a[STICKY_TOKEN_BYTES], b[STICKY_TOKEN_BYTES];
    uint64_t key[2], other[2];
    sticky_derive_key(MK_STR("a secret of some bytes"), key);
    sticky_derive_key(MK_STR("another secret of bytes"), other);
    sticky_make_token(key, MK_STR("g"), MK_STR("127.0.0.1:1"), a);
    assert_true(sticky_is_token(a, mk_str(a, sizeof(a))));
    assert_false(sticky_is_token(a, mk_str(a, sizeof(a) - 1)));
    assert_false(sticky_is_token(a, MK_STR_NONE));
    sticky_make_token(key, MK_STR("g"), MK_STR("127.0.0.1:2"), b);
    assert_false(sticky_is_token(a, mk_str(b, sizeof(b))));
    sticky_make_token(key, MK_STR("h"), MK_STR("127.0.0.1:1"), b);
    assert_false(sticky_is_token(a, mk_str(b, sizeof(b))));
    sticky_make_token(other, MK_STR("g"), MK_STR("127.0.0.1:1"), b);
    assert_false(sticky_is_token(a, mk_str(b, sizeof(b))));
    sticky_make_token(key, MK_STR("g"), MK_STR("127.0.0.1:1"), b);
    assert_true(sticky_is_token(a, mk_str(b, sizeof(b))));
    for (size_t i = 0; i < sizeof(a); i++) {
        b[i] ^= 1;
        assert_false(sticky_is_token(a, mk_str(b, sizeof(b))));
        b[i] ^= 1;
    }
}

static int read_secret(size_t bytes, uint64_t key[2])
{
    char path[] = "/tmp/sticky-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    int err = sticky_read_key(path, key);
    unlink(path);
    return err;
}

TEST(secrets)
{
    uint64_t key[2], again[2];
    assert_int_equal(read_secret(STICKY_SECRET_BYTES_MIN - 1, key), -EINVAL);
    assert_int_equal(read_secret(STICKY_SECRET_BYTES_MAX + 1, key), -EINVAL);
    assert_int_equal(read_secret(STICKY_SECRET_BYTES_MIN, key), 0);
    assert_int_equal(read_secret(STICKY_SECRET_BYTES_MIN, again), 0);
    assert_memory_equal(key, again, sizeof(key));
    assert_int_equal(read_secret(STICKY_SECRET_BYTES_MAX, again), 0);
    assert_memory_not_equal(key, again, sizeof(key));
    assert_int_equal(sticky_read_key("/nonexistent/secret", key), -ENOENT);
    assert_int_equal(sticky_get_own_key(key), 1);
    assert_int_equal(sticky_get_own_key(again), 0);
    assert_memory_equal(key, again, sizeof(key));
}
