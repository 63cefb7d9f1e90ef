// SPDX-License-Identifier: Apache-2.0
/* The connection that is closed first at a limit: that of the client on which most streams wait. */
#include "http/h2_fixture.h"

#include "http/conn.h"

/* A client that asks for so much on `n` streams, and takes no more than its windows allow. */
static struct mk_test_h2 ask_for(unsigned n, const char *path)
{
    struct mk_test_h2 t = h2_connect();
    for (unsigned i = 0; i < n; i++)
        h2_get_path(&t, (int32_t)(2 * i + 1), path);
    h2_expect(&t, "*");
    return t;
}

TEST(the_connection_with_most_streams)
{
    open_fixture(h2_give);
    struct mk_test_h2 few = ask_for(8, "/100000"), many = ask_for(10, "/100000"), most = ask_for(20, "/100000");
    assert_int_equal(mk__conn_close_idle(&w.http, 5), 0); /* they may just be slow */
    mk_test_pass(&w, 999);
    assert_int_equal(mk__conn_close_idle(&w.http, 5), 0);
    mk_test_pass(&w, 1);
    assert_int_equal(mk__conn_close_idle(&w.http, 5), 1);
    assert_string_equal(mk_test_state(most.end), "closed");
    assert_int_equal(mk__conn_close_idle(&w.http, 5), 1);
    assert_string_equal(mk_test_state(many.end), "closed");
    assert_int_equal(mk__conn_close_idle(&w.http, 5), 0);
    assert_string_equal(mk_test_state(few.end), "streams");
    assert_int_equal(w.aborted, 30);
    h2_free(&few);
    h2_free(&many);
    h2_close(&most);
}

/* Their handlers are at work: that is not the client's fault. */
TEST(handlers_that_work)
{
    open_fixture(h2_give);
    struct mk_test_h2 t = ask_for(20, "/wait");
    mk_test_pass(&w, 5000);
    assert_int_equal(mk__conn_close_idle(&w.http, 5), 0);
    assert_string_equal(mk_test_state(t.end), "streams");
    h2_close(&t);
}

/* Bodies that do not come. */
TEST(bodies)
{
    open_fixture(read_all);
    struct mk_test_h2 t = h2_connect();
    for (int32_t id = 1; id < 20; id += 2)
        h2_post(&t, id);
    h2_expect(&t, "");
    mk_test_pass(&w, 1000);
    assert_int_equal(mk__conn_close_idle(&w.http, 5), 1);
    assert_string_equal(mk_test_state(t.end), "closed");
    h2_close(&t);
}

/* Connections without streams are closed first. */
TEST(idle_ones_first)
{
    open_fixture(h2_give);
    struct mk_test_h2 t = ask_for(10, "/100000"), idle = ask_for(1, "/10");
    struct mk_test_client *fresh = mk_test_connect(&w, MK_STR("GET"));
    mk_test_settle(&w);
    mk_test_pass(&w, 1000);
    assert_int_equal(mk__conn_close_idle(&w.http, 1), 1);
    assert_string_equal(mk_test_state(idle.end), "closed");
    assert_int_equal(mk__conn_close_idle(&w.http, 1), 1);
    assert_string_equal(mk_test_state(t.end), "closed");
    assert_string_equal(mk_test_state(fresh), "read_head");
    h2_free(&idle);
    h2_close(&t);
}
