// SPDX-License-Identifier: Apache-2.0
/* Requests for responders: their records, and what does not fit. */
#include "testing.h"

#include <monkey/kit/fastcgi.h>

#include <errno.h>

static void write_request(struct mk_buf *out, bool keep_conn)
{
    size_t params = mk_fastcgi_begin(out, keep_conn);
    mk_fastcgi_add_pair(MK_STR("A"), MK_STR("bc"), out);
    mk_fastcgi_add_pair(MK_STR("D"), MK_STR(""), out);
    assert_int_equal(mk_fastcgi_end_params(out, params), 0);
    mk_fastcgi_add_header(out, MK_FASTCGI_STDIN, 0);
}

#define BEGIN(flags) "\1\1\0\1\0\10\0\0\0\1" flags "\0\0\0\0\0"
#define REST "\1\4\0\1\0\10\0\0\1\2Abc\1\0D\1\4\0\1\0\0\0\0\1\5\0\1\0\0\0\0"

TEST(requests)
{
    static const char closed[] = BEGIN("\0") REST, kept[] = BEGIN("\1") REST;
    struct mk_buf out;
    for (int keeps = 0; keeps < 2; keeps++) {
        mk_buf_init(&out, 1000);
        write_request(&out, keeps);
        assert_int_equal(out.len, sizeof(closed) - 1);
        assert_memory_equal(out.data, keeps ? kept : closed, out.len);
        mk_buf_release(&out);
    }
}

/* A record has at most 65535 bytes. */
TEST(variables_that_do_not_fit)
{
    static char value[65535];
    static const struct {
        size_t len;
        int result;
    } rows[] = {{65535 - 6, 0}, {65535 - 5, -ENOBUFS}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_buf out;
        mk_buf_init(&out, 1 << 20);
        size_t params = mk_fastcgi_begin(&out, false);
        mk_fastcgi_add_pair(MK_STR("A"), mk_str(value, rows[i].len), &out); /* 1 and 4 bytes of lengths */
        assert_int_equal(mk_fastcgi_end_params(&out, params), rows[i].result);
        mk_buf_release(&out);
    }
}

/* At each size of the buffer. */
TEST(no_room)
{
    char storage[64];
    for (size_t size = 0; size < sizeof(BEGIN("\0")) + 16; size++) {
        struct mk_buf out;
        mk_buf_init_fixed(&out, storage, size);
        size_t params = mk_fastcgi_begin(&out, false);
        mk_fastcgi_add_pair(MK_STR("A"), MK_STR("b"), &out);
        assert_int_equal(mk_fastcgi_end_params(&out, params), -ENOBUFS);
    }
}
