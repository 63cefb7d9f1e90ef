// SPDX-License-Identifier: Apache-2.0
/* Request references: requests that exist, requests that have ended, and that no other request gets their calls. */
#include "http/h1_fixture.h"

#include <errno.h>

#include "server/worker/request_ref.h"

static struct mk__request_refs refs;
static struct mk_request_ref ref;
static struct mk_request *found;
static unsigned calls;

static void give(struct mk_request *req, struct mk_test_fixture *fixture)
{
    remember(req, fixture);
    assert_int_equal(mk__request_ref_create(&refs, req, &ref), 0);
}

static void note(struct mk_request_call *call, struct mk_request *req)
{
    (void)call;
    found = req;
    calls++;
}

static struct mk_test_client *open_tickets(void)
{
    open_fixture(give);
    assert_int_equal(mk__request_ref_open(&refs, &w.loop, &w.account), 0);
    found = NULL;
    calls = 0;
    return mk_test_connect(&w, MK_STR(GET));
}

static void close_tickets(void)
{
    mk__conn_abort_all(&w.http);
    mk_test_settle(&w);
    mk__request_ref_close(&refs);
    mk__request_ref_release(&refs);
    close_fixture();
}

static int call(struct mk_request_call *one)
{
    *one = (struct mk_request_call){.ref = ref, .fn = note};
    return mk_request_ref_call(one);
}

TEST(finds_its_exchange)
{
    struct mk_request_call one, two;
    open_tickets();
    mk_test_settle(&w);
    assert_int_equal(call(&one), 0);
    assert_int_equal(call(&two), 0);
    assert_int_equal(calls, 0); /* never from within the call */
    assert_true(mk_test_wait_wakeup(&w));
    assert_int_equal(calls, 2);
    assert_ptr_equal(found, held_req);
    close_tickets();
}

/* The slot is taken again by the next exchange, which the old reference does not refer to. */
TEST(an_exchange_that_is_over)
{
    struct mk_request_call one;
    struct mk_test_client *c = open_tickets();
    mk_test_settle(&w);
    struct mk_request_ref old = ref;
    mk_response_end(held_req);
    mk_test_send(c, MK_STR(GET));
    mk_test_settle(&w);
    assert_int_equal(ref.slot, old.slot);
    assert_true(ref.exchange != old.exchange);
    ref = old;
    found = held_req;
    assert_int_equal(call(&one), 0);
    assert_true(mk_test_wait_wakeup(&w));
    assert_null(found);
    close_tickets();
}

/* A handler may make a reference for each piece of a body, and for each of its events. */
TEST(many_references_to_one_exchange)
{
    struct mk_request_call one;
    open_tickets();
    mk_test_settle(&w);
    struct mk_request_ref first = ref;
    size_t bytes = w.account.bytes;
    for (int i = 0; i < 100000; i++) {
        assert_int_equal(mk__request_ref_create(&refs, held_req, &ref), 0);
        assert_memory_equal(&ref, &first, sizeof(ref));
    }
    assert_int_equal(w.account.bytes, bytes);
    assert_int_equal(call(&one), 0);
    assert_true(mk_test_wait_wakeup(&w));
    assert_ptr_equal(found, held_req);
    close_tickets();
}

/* More exchanges at once than the initial number of slots. */
TEST(many)
{
    enum { MANY = 200 };
    struct mk_request_call one;
    static struct mk_request_ref all[MANY];
    static struct mk_request *reqs[MANY];
    open_tickets();
    for (int i = 0; i < MANY; i++) {
        mk_test_connect(&w, MK_STR(GET));
        all[i] = ref;
        reqs[i] = held_req;
    }
    for (int i = 0; i < MANY; i += 7) {
        ref = all[i];
        assert_int_equal(call(&one), 0);
        assert_true(mk_test_wait_wakeup(&w));
        assert_ptr_equal(found, reqs[i]);
    }
    close_tickets();
}

TEST(a_worker_that_is_gone)
{
    struct mk_request_call one, late;
    open_tickets();
    mk_test_settle(&w);
    assert_int_equal(call(&late), 0); /* in the inbox when the worker ends: it is called without a request */
    mk__request_ref_close(&refs);
    assert_int_equal(call(&one), -ESRCH);
    mk__conn_abort_all(&w.http);
    assert_true(mk_test_wait_wakeup(&w));
    assert_int_equal(calls, 1);
    assert_null(found);
    mk__request_ref_release(&refs);
    assert_int_equal(call(&one), -ESRCH);
    struct mk__request_refs next;
    assert_int_equal(mk__request_ref_open(&next, &w.loop, &w.account), 0);
    assert_int_equal(next.entry, refs.entry); /* the same place, another worker */
    assert_int_equal(call(&one), -ESRCH);
    mk__request_ref_close(&next);
    mk__request_ref_release(&next);
    ref.entry = UINT32_MAX;
    assert_int_equal(call(&one), -ESRCH);
    mk_test_settle(&w);
    close_fixture();
}
