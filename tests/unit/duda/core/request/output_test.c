// SPDX-License-Identifier: Apache-2.0
/* The parts of a response: held, flushed, truncated, gathered for a page, and without memory. */
#include "duda/core/request/output.h"

#include "http/h1_fixture.h"
#include "service_slots.h"

#include <errno.h>
#include <stdio.h>

enum { LONG_BYTES = 300, HEAP_BYTES = 20000 };

static struct service service;
static struct service_worker worker;
static struct mk_test_slots slots;
static struct duda_request request;
static char long_text[LONG_BYTES + 1], heap_text[HEAP_BYTES + 1];

static int begin(void **state)
{
    (void)state;
    memset(&service, 0, sizeof(service));
    memset(&worker, 0, sizeof(worker));
    memset(long_text, 'l', LONG_BYTES);
    memset(heap_text, 'h', HEAP_BYTES);
    mk_test_slots_open(&slots, &service, &worker);
    service.self.name = (struct duda_string){(char *)(uintptr_t) "test", 4};
    return 0;
}

static int end(void **state)
{
    (void)state;
    mk_test_slots_close(&slots);
    return 0;
}

static struct duda_request *make_request(struct mk_request *req)
{
    worker.loop = &w.loop;
    request = (struct duda_request){.req = req, .worker = &worker};
    return &request;
}

/* Returns the body of the response to GET; NULL: it has none. */
static const char *get_body(handler_fn *handler)
{
    static char received[2 * HEAP_BYTES];
    open_fixture(handler);
    struct mk_test_client *c = mk_test_connect(&w, MK_STR(CLOSE));
    mk_test_settle(&w);
    snprintf(received, sizeof(received), "%s", mk_test_received(c).p);
    output_drop(&request);
    close_fixture();
    char *empty_line = strstr(received, "\r\n\r\n");
    return empty_line ? empty_line + 4 : NULL;
}

static int open_file(const char *text)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    int fd = dup(fileno(file));
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    fclose(file);
    return fd;
}

static void send_each_kind(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct duda_request *dr = make_request(req);
    (void)fixture;
    assert_int_equal(output_add_copy(dr, MK_STR("one ")), 0);
    assert_int_equal(output_add_copy(dr, MK_STR("two ")), 0);
    assert_ptr_equal(dr->output.first, dr->output.last); /* short texts are one part */
    assert_int_equal(output_add_ref(dr, MK_STR("three ")), 0);
    assert_ptr_equal(dr->output.first, dr->output.last);
    assert_int_equal(output_add_ref(dr, mk_str(long_text, LONG_BYTES)), 0);
    assert_int_equal(output_add_file(dr, open_file("in a file"), 3, 6), 0);
    assert_int_equal(output_add_copy(dr, MK_STR("")), 0);
    assert_int_equal(output_add_copy(dr, MK_STR(" end")), 0);
    assert_int_equal(dr->output.bytes, 14 + LONG_BYTES + 6 + 4);
    assert_int_equal(output_count_queued(dr), dr->output.bytes);
    assert_int_equal(output_end(dr), 0);
    assert_int_equal(dr->output.state, OUTPUT_ENDED);
    assert_null(dr->output.first);
}

TEST(parts_are_sent_in_order, begin, end)
{
    char wanted[LONG_BYTES + 64];
    snprintf(wanted, sizeof(wanted), "one two three %sa file end", long_text);
    assert_string_equal(get_body(send_each_kind), wanted);
}

/* Texts that the arena has no room for are on the heap. */
static void send_long_texts(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct duda_request *dr = make_request(req);
    (void)fixture;
    assert_int_equal(output_add_copy(dr, mk_str(heap_text, HEAP_BYTES - 1)), 0);
    assert_int_equal(output_add_copy(dr, MK_STR("x")), 0);
    assert_int_equal(output_end(dr), 0);
}

TEST(long_texts, begin, end)
{
    const char *sent = get_body(send_long_texts);
    assert_int_equal(strlen(sent), HEAP_BYTES);
    assert_int_equal(strspn(sent, "h"), HEAP_BYTES - 1);
}

static void send_truncated(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct duda_request *dr = make_request(req);
    (void)fixture;
    output_add_copy(dr, MK_STR("abc"));
    output_add_file(dr, open_file("defghi"), 0, 6);
    output_add_copy(dr, MK_STR("jkl"));
    output_truncate(dr, 5);
    assert_int_equal(dr->output.bytes, 5);
    assert_int_equal(output_end(dr), 0);
}

TEST(a_response_is_truncated, begin, end)
{
    assert_string_equal(get_body(send_truncated), "abcde");
}

/* What was flushed is on its way: further parts are passed on at once, in chunks. */
static void send_flushed(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct duda_request *dr = make_request(req);
    (void)fixture;
    output_add_copy(dr, MK_STR("first"));
    assert_int_equal(output_flush(dr), 0);
    assert_int_equal(dr->output.state, OUTPUT_SENDING);
    assert_null(dr->output.first);
    assert_int_equal(output_add_copy(dr, MK_STR("second")), 0);
    assert_null(dr->output.first);
    assert_int_equal(output_end(dr), 0);
}

TEST(what_follows_a_flush, begin, end)
{
    const char *sent = get_body(send_flushed);
    assert_non_null(strstr(sent, "first"));
    assert_non_null(strstr(sent, "second"));
}

static void gather_page(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct duda_request *dr = make_request(req);
    struct mk_arena *arena = mk_request_arena(req);
    (void)fixture;
    dr->is_page = true;
    output_add_copy(dr, MK_STR("a page "));
    output_add_file(dr, open_file("of a file"), 3, 6);
    assert_int_equal(output_end(dr), 0); /* waits for the function to return */
    assert_str_equal(output_gather(dr, arena), "a page a file");
    assert_null(dr->output.first);
    dr = make_request(req);
    dr->is_page = true;
    output_add_copy(dr, mk_str(heap_text, HEAP_BYTES)); /* too long */
    assert_null(output_gather(dr, arena).p);
    output_drop(dr);
    dr = make_request(req);
    dr->is_page = true;
    output_add_file(dr, open_file("short"), 3, 6); /* the file has become shorter */
    assert_null(output_gather(dr, arena).p);
    output_drop(dr);
    mk_response_end(req);
}

TEST(a_page_is_gathered, begin, end)
{
    assert_string_equal(get_body(gather_page), "");
}

/* A part is missing: the response is not sent as if it were complete, whatever the service has looked at. */
static void miss_part(struct mk_request *req, struct mk_test_fixture *fixture)
{
    struct duda_request *dr = make_request(req);
    (void)fixture;
    output_add_copy(dr, MK_STR("begin"));
    mk__alloc_countdown = 0;
    assert_int_equal(output_add_copy(dr, mk_str(heap_text, HEAP_BYTES)), -ENOMEM);
    mk__alloc_countdown = -1;
    assert_int_equal(output_add_copy(dr, MK_STR("end")), 0);
    assert_int_equal(output_end(dr), -ENOMEM);
    assert_true(dr->answered);
    assert_int_equal(mk_response_get_status(req), 500);
}

TEST(without_memory, begin, end)
{
    const char *sent = get_body(miss_part);
    assert_null(strstr(sent, "begin"));
}
