// SPDX-License-Identifier: Apache-2.0
/* The HTTP context of a thread: the Server and Date lines. */
#include "testing.h"

#include "harness.h"

static struct mk_test_fixture w;

TEST(the_lines_of_the_second)
{
    assert_int_equal(mk_test_fixture_open(&w, NULL), 0);
    assert_int_equal(mk_test_http_open(&w), 0);
    assert_str_equal(mk__context_date_lines(&w.http), "Server: x\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    mk_test_pass(&w, 999);
    assert_str_equal(mk__context_date_lines(&w.http), "Server: x\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    mk_test_pass(&w, 1);
    mk__loop_turn(&w.loop);
    assert_str_equal(mk__context_date_lines(&w.http), "Server: x\r\nDate: Sun, 06 Nov 1994 08:49:38 GMT\r\n");
    assert_str_equal(mk__context_ok_lines(&w.http),
                     "HTTP/1.1 200 OK\r\nServer: x\r\nDate: Sun, 06 Nov 1994 08:49:38 GMT\r\n");
    w.settings.server_line = MK_STR("");
    mk_test_pass(&w, 1000);
    mk__loop_turn(&w.loop);
    assert_str_equal(mk__context_date_lines(&w.http), "Date: Sun, 06 Nov 1994 08:49:39 GMT\r\n");
    assert_str_equal(mk__context_ok_lines(&w.http), "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:39 GMT\r\n");
    mk_test_fixture_close(&w);
}
