// SPDX-License-Identifier: Apache-2.0
/* A file as the response: validators, preconditions and ranges, as bytes. */
#include "folder.h"
#include "harness.h"

#include <errno.h>

static struct mk_test_fixture w;

enum { NOW = 784111777 };

static struct mk_file file;
static const char *name = "ten";
static bool is_tight, is_at_hand, is_shared;

/* ── a file that is shared ── */

static int shared_fd = -1;
static int references, references_most;

static void get_shared(void *owned)
{
    assert_ptr_equal(owned, &shared_fd);
    references++;
    references_most = references > references_most ? references : references_most;
}

static void put_shared(void *owned)
{
    assert_ptr_equal(owned, &shared_fd);
    assert_true(references-- > 0);
}

static const struct mk_owner owner = {get_shared, put_shared};

/* The server has not closed the descriptor. */
static void close_shared(void *ctx)
{
    (void)ctx;
    assert_int_equal(close(shared_fd), 0);
    shared_fd = -1;
}

/* Without memory for the clean-up, which a test causes, the file is not shared. */
static void share_file(struct mk_request *req, struct mk_file *f)
{
    static char text[MK_FILE_BLOCK_BYTES];
    static struct mk_response_block block;
    if (!f->content.p && mk_arena_defer(mk_request_arena(req), close_shared, NULL) < 0)
        return;
    shared_fd = f->fd;
    f->owner = &owner;
    f->owned = &shared_fd;
    if (mk_file_is_settled(f, NOW)) {
        assert_int_equal(mk_file_block(f, text, &block), 0);
        f->block = &block;
        f->type = MK_STR_NONE;
    }
}

/* ── the handler ── */

static void send_file(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    if (is_tight)
        mk_test_fill_arena(req);
    struct mk_file f = file;
    f.fd = open(mk_test_path(name), O_RDONLY | O_CLOEXEC);
    assert_true(f.fd >= 0);
    if (is_at_hand) {
        static char content[1000];
        assert_true(read(f.fd, content, sizeof(content)) >= 0);
        close(f.fd);
        f.fd = STDERR_FILENO; /* a wrong one: it stays open */
        f.content = mk_str(content, f.bytes);
    }
    if (is_shared)
        share_file(req, &f);
    mk_response_file(req, &f);
}

/* Ten bytes, an hour old. */
static void open_fixture(void)
{
    name = "ten";
    file = (struct mk_file){.bytes = 10, .mtime_seconds = NOW - 3600, .mtime_nanoseconds = 5, .type = MK_STR("text/x")};
    uint64_t time = (uint64_t)file.mtime_seconds * 1000000000 + file.mtime_nanoseconds;
    file.version = time * UINT64_C(0x96de1b173f119089) - time; /* so that the number in TAG is the time */
    assert_int_equal(mk_test_fixture_open(&w, NULL), 0);
    w.handler = send_file;
    assert_int_equal(mk_test_http_open(&w), 0);
}

/* A fixed boundary. */
#define BOUNDARY "........................"

static void hide_boundary(char *text)
{
    char boundary[sizeof(BOUNDARY)];
    char *at = strstr(text, "boundary=");
    if (!at)
        return;
    memcpy(boundary, at + 9, sizeof(boundary) - 1);
    boundary[sizeof(boundary) - 1] = '\0';
    while ((at = strstr(text, boundary)))
        memcpy(at, BOUNDARY, sizeof(BOUNDARY) - 1);
}

/* Returns the response without its Server and Date lines. */
static const char *ask(const char *method, const char *fields)
{
    static char text[4096];
    char request[1024];
    const char *stamp = "Server: x\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    snprintf(request, sizeof(request), "%s / HTTP/1.1\r\nHost: h\r\n%s\r\n", method, fields);
    struct mk_test_client *c = mk_test_connect(&w, mk_str_c(request));
    mk_test_settle(&w);
    assert_string_equal(mk_test_state(c), "idle");
    snprintf(text, sizeof(text), "%s", mk_test_received(c).p);
    char *at = strstr(text, stamp);
    assert_non_null(at);
    memmove(at, at + strlen(stamp), strlen(at + strlen(stamp)) + 1);
    hide_boundary(text);
    return text;
}

#define OLD "Sun, 06 Nov 1994 07:49:37 GMT"
#define EARLIER "Sun, 06 Nov 1994 07:49:36 GMT"
#define TAG "\"a-ae1b63b8b906a05\""
#define VALIDATORS "Last-Modified: " OLD "\r\nETag: " TAG "\r\n"
#define WHOLE \
    "HTTP/1.1 200 OK\r\n" VALIDATORS "Content-Type: text/x\r\nAccept-Ranges: bytes\r\nContent-Length: 10\r\n\r\n"
#define PART(range, length) \
    "HTTP/1.1 206 Partial Content\r\n" VALIDATORS \
    "Content-Type: text/x\r\nAccept-Ranges: bytes\r\nContent-Range: bytes " range "/10\r\nContent-Length: " length \
    "\r\n\r\n"
#define UNCHANGED "HTTP/1.1 304 Not Modified\r\n" VALIDATORS "\r\n"

static const struct {
    const char *method, *fields, *answer;
} cases[] = {
    {"GET", "", WHOLE "0123456789"},
    {"HEAD", "", WHOLE},
    {"GET", "Range: bytes=2-4\r\n", PART("2-4", "3") "234"},
    {"GET", "Range: bytes=-3\r\n", PART("7-9", "3") "789"},
    {"GET", "Range: bytes=8-100\r\n", PART("8-9", "2") "89"},
    {"GET", "Range: bytes=0-\r\n", PART("0-9", "10") "0123456789"},
    {"HEAD", "Range: bytes=2-4\r\n", WHOLE},
    {"GET", "Range: bytes=2-4,6-7\r\n", PART("2-7", "6") "234567"},
    {"GET", "Range: bytes=2-4,100-\r\n", PART("2-4", "3") "234"},
    {"GET", "Range: bytes=-2,0-6\r\n", WHOLE "0123456789"}, /* merged they are all of it */
    {"GET", "Range: bytes=2-4,6-7\r\nIf-Range: \"other\"\r\n", WHOLE "0123456789"},
    {"HEAD", "Range: bytes=2-4,6-7\r\n", WHOLE},
    {"GET", "Range: bytes=x\r\n", WHOLE "0123456789"},
    {"GET", "Range: lines=1-2\r\n", WHOLE "0123456789"},
    {"GET", "Range: bytes=2-4\r\nIf-Range: " TAG "\r\n", PART("2-4", "3") "234"},
    {"GET", "Range: bytes=2-4\r\nIf-Range: \"other\"\r\n", WHOLE "0123456789"},
    {"GET", "Range: bytes=2-4\r\nIf-Range: " OLD "\r\n", PART("2-4", "3") "234"},
    {"GET", "Range: bytes=2-4\r\nIf-Range: " EARLIER "\r\n", WHOLE "0123456789"},
    {"GET", "If-None-Match: " TAG "\r\n", UNCHANGED},
    {"HEAD", "If-None-Match: *\r\n", UNCHANGED},
    {"POST", "If-None-Match: *\r\n", WHOLE "0123456789"},                       /* it was performed */
    {"GET", "If-None-Match: \"a\"\r\nIf-None-Match: W/" TAG "\r\n", UNCHANGED}, /* two lines are one list */
    {"GET", "If-None-Match: \"other\"\r\nIf-Modified-Since: " OLD "\r\n", WHOLE "0123456789"},
    {"GET", "If-Modified-Since: " OLD "\r\n", UNCHANGED},
    {"GET", "If-Modified-Since: " EARLIER "\r\n", WHOLE "0123456789"},
    {"GET", "If-Match: " TAG "\r\n", WHOLE "0123456789"},
    {"GET", "If-Unmodified-Since: " OLD "\r\n", WHOLE "0123456789"},
    {"GET", "If-None-Match: " TAG "\r\nRange: bytes=100-\r\n", UNCHANGED}, /* conditions come first */
};

TEST(answers)
{
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(cases); i++) {
        open_fixture();
        assert_string_equal(ask(cases[i].method, cases[i].fields), cases[i].answer);
        mk_test_fixture_close(&w);
    }
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(refusals)
{
    static const struct {
        const char *method, *fields, *line, *holds;
    } refusals[] = {
        {"GET", "If-Match: \"other\"\r\n", "HTTP/1.1 412 Precondition Failed\r\n", ""},
        {"GET", "If-Unmodified-Since: " EARLIER "\r\n", "HTTP/1.1 412 Precondition Failed\r\n", ""},
        {"GET", "Range: bytes=10-\r\n", "HTTP/1.1 416 Range Not Satisfiable\r\n", "Content-Range: bytes */10\r\n"},
        {"GET", "Range: bytes=-0\r\n", "HTTP/1.1 416 Range Not Satisfiable\r\n", "Content-Range: bytes */10\r\n"},
    };
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(refusals); i++) {
        open_fixture();
        const char *answer = ask(refusals[i].method, refusals[i].fields);
        assert_memory_equal(answer, refusals[i].line, strlen(refusals[i].line));
        assert_non_null(strstr(answer, refusals[i].holds));
        assert_null(strstr(answer, "ETag")); /* it is about an error page now */
        assert_null(strstr(answer, "0123456789"));
        mk_test_fixture_close(&w);
    }
    assert_int_equal(mk_test_descriptors(), before);
}

/* ── several ranges: a file of a thousand bytes, its digits in turn ── */

static void open_thousand(void)
{
    open_fixture();
    name = "thousand";
    file.bytes = 1000;
}

#define THOUSAND_VALIDATORS "Last-Modified: " OLD "\r\nETag: \"3e8-ae1b63b8b906a05\"\r\n"
#define PARTS(length) \
    "HTTP/1.1 206 Partial Content\r\n" THOUSAND_VALIDATORS "Content-Type: multipart/byteranges; boundary=" BOUNDARY \
    "\r\nAccept-Ranges: bytes\r\nContent-Length: " length "\r\n\r\n"
#define RANGE(range) "\r\n--" BOUNDARY "\r\nContent-Type: text/x\r\nContent-Range: bytes " range "/1000\r\n\r\n"
#define END "\r\n--" BOUNDARY "--\r\n"

TEST(several_ranges)
{
    static const struct {
        const char *fields, *answer;
    } several[] = {
        {"Range: bytes=0-1,899-901\r\n", PARTS("211") RANGE("0-1") "01" RANGE("899-901") "901" END},
        {"Range: bytes=-2,4-5,7-7,2000-\r\n", /* in the client's order */
         PARTS("212") RANGE("998-999") "89" RANGE("4-7") "4567" END},
        {"Range: bytes=0-0,, 500-500 ,999-\r\n",
         PARTS("298") RANGE("0-0") "0" RANGE("500-500") "0" RANGE("999-999") "9" END},
    };
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(several); i++) {
        open_thousand();
        assert_string_equal(ask("GET", several[i].fields), several[i].answer);
        mk_test_fixture_close(&w);
    }
    assert_int_equal(mk_test_descriptors(), before);
}

/* Content-Encoding would describe the whole body, not its parts. */
TEST(several_ranges_of_a_coded_file)
{
    open_thousand();
    file.coding = MK_CODING_BR;
    const char *answer = ask("GET", "Range: bytes=0-0,500-500\r\n");
    assert_true(mk_str_starts(mk_str_c(answer), MK_STR("HTTP/1.1 200 OK\r\n")));
    assert_non_null(strstr(answer, "\r\nContent-Encoding: br\r\n"));
    answer = ask("GET", "Range: bytes=0-0,20-20\r\n"); /* they come to one */
    assert_true(mk_str_starts(mk_str_c(answer), MK_STR("HTTP/1.1 206 Partial Content\r\n")));
    assert_non_null(strstr(answer, "\r\nContent-Encoding: br\r\n"));
    mk_test_fixture_close(&w);
}

TEST(several_ranges_that_do_not_pay)
{
    static const char *const fields[] = {
        "Range: bytes=0-400,500-899\r\n", /* no shorter than the file, with their frames */
        "Range: bytes=0-0,90-90,180-180,270-270,360-360,450-450,540-540,630-630,720-720,810-810,900-900,990-990\r\n",
        "Range: bytes=0-1,600-\r\nIf-Range: \"other\"\r\n",
    };
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(fields); i++) {
        open_thousand();
        const char *answer = ask("GET", fields[i]);
        assert_true(mk_str_starts(mk_str_c(answer), MK_STR("HTTP/1.1 200 OK\r\n")));
        assert_non_null(strstr(answer, "\r\nContent-Type: text/x\r\n"));
        assert_non_null(strstr(answer, "\r\nContent-Length: 1000\r\n\r\n0123"));
        assert_null(strstr(answer, "Content-Range"));
        mk_test_fixture_close(&w);
    }
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(a_young_file_is_weak)
{
    for (int age = -5; age < 4; age++) {
        open_fixture();
        file.mtime_seconds = NOW - age;
        const char *answer = ask("GET", "");
        assert_int_equal(strstr(answer, "\r\nETag: W/\"a-") != NULL, age < 2);
        if (age < 0) /* not in the future */
            assert_non_null(strstr(answer, "\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
        mk_test_fixture_close(&w);
    }
}

/* Any user with write access below a document root sets the time, and tmpfs takes any: none overflows. */
TEST(times_far_away)
{
    static const struct {
        int64_t mtime;
        bool is_weak;
        const char *modified; /* NULL: such a time is none */
    } times[] = {
        {INT64_MIN, false, NULL},
        {-1, false, NULL},
        {0, false, NULL},
        {31535999, false, NULL},
        {31536000, false, "\r\nLast-Modified: Fri, 01 Jan 1971 00:00:00 GMT\r\n"},
        {INT64_MAX, true, "\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"},
    };
    for (size_t i = 0; i < COUNT(times); i++) {
        open_fixture();
        file.mtime_seconds = times[i].mtime;
        const char *answer = ask("GET", "");
        assert_true(mk_str_starts(mk_str_c(answer), MK_STR("HTTP/1.1 200 OK\r\n")));
        assert_int_equal(strstr(answer, "\r\nETag: W/\"a-") != NULL, times[i].is_weak);
        assert_non_null(strstr(answer, "\r\nETag: "));
        assert_true(times[i].modified ? strstr(answer, times[i].modified) != NULL : !strstr(answer, "Last-Modified"));
        mk_test_fixture_close(&w);
    }
}

TEST(without_ranges)
{
    open_fixture();
    file.no_ranges = true;
    assert_string_equal(ask("GET", "Range: bytes=2-4\r\n"),
                        "HTTP/1.1 200 OK\r\n" VALIDATORS "Content-Type: text/x\r\nContent-Length: 10\r\n\r\n"
                        "0123456789");
    mk_test_fixture_close(&w);
}

/* ── mk_response_no_ranges() ── */

#define WITHOUT_RANGES "HTTP/1.1 200 OK\r\n" VALIDATORS "Content-Type: text/x\r\nContent-Length: 10\r\n\r\n0123456789"
#define SEVERAL "Range: bytes=0-0,300-300,600-600,900-900\r\n"

static void ask_what_passes(struct mk_request *req, struct mk_test_fixture *fixture)
{
    const struct mk_str names[] = {MK_STR("range"), MK_STR("If-Range"), MK_STR("accept-encoding"), MK_STR("Accept")};
    static const bool passes[3][4] = {{true, true, true, true}, {true, true, false, true}, {false, false, false, true}};
    for (size_t step = 0; step < COUNT(passes); step++) {
        for (size_t i = 0; i < COUNT(names); i++)
            assert_int_equal(mk_request_passes_header(req, names[i]), passes[step][i]);
        if (step)
            mk_response_no_ranges(req);
        else
            mk_response_no_codings(req);
    }
    send_file(req, fixture);
}

TEST(headers_that_pass)
{
    assert_int_equal(mk_test_fixture_open(&w, NULL), 0);
    w.handler = ask_what_passes;
    assert_int_equal(mk_test_http_open(&w), 0);
    assert_string_equal(ask("GET", ""), WITHOUT_RANGES);
    mk_test_fixture_close(&w);
}

static void refuse_early(struct mk_request *req, struct mk_test_fixture *fixture)
{
    assert_int_equal(mk_response_no_ranges(req), 0);
    send_file(req, fixture);
}

static void refuse_late(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    assert_int_equal(mk_response_no_ranges(req), 0);
    assert_int_equal(mk_response_no_ranges(req), 0); /* twice is once */
    if (mk_response_get_status(req) != 304)
        assert_int_equal(mk_response_get_status(req), 200);
    mk_response_header_ref(req, MK_STR("Accept-Ranges"), MK_STR("bytes")); /* of another plugin */
}

/* In which hook the ranges are refused, and whether the file is in memory. */
static void open_refusing(bool late, bool in_memory)
{
    open_fixture();
    w.handler = late ? send_file : refuse_early;
    w.on_response = late ? refuse_late : NULL;
    is_at_hand = in_memory;
}

/* Header lines may be in another order. */
static void expect_whole(const char *answer)
{
    const char *lines[] = {"\r\nLast-Modified: " OLD "\r\n", "\r\nETag: " TAG "\r\n", "\r\nContent-Type: text/x\r\n",
                           "\r\nContent-Length: 10\r\n", "\r\n\r\n0123456789"};
    assert_true(strncmp(answer, "HTTP/1.1 200 OK\r\n", 17) == 0);
    for (size_t i = 0; i < COUNT(lines); i++)
        assert_non_null(strstr(answer, lines[i]));
    assert_int_equal(strlen(answer), strlen(WITHOUT_RANGES));
}

TEST(refused_ranges)
{
    static const char *const fields[] = {"", "Range: bytes=2-4\r\n", "Range: bytes=10-\r\n",
                                         "Range: bytes=2-4,6-7\r\n"};
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(fields) * 4; i++) {
        open_refusing(i & 1, i & 2);
        expect_whole(ask("GET", fields[i / 4]));
        mk_test_fixture_close(&w);
    }
    is_at_hand = false;
    assert_int_equal(mk_test_descriptors(), before);
}

/* Of a response with several parts, the descriptor belongs to one of them. */
TEST(refused_multipart)
{
    unsigned before = mk_test_descriptors();
    for (int late = 0; late < 2; late++) {
        open_refusing(late, false);
        name = "thousand";
        file.bytes = 1000;
        const char *answer = ask("GET", SEVERAL);
        assert_non_null(strstr(answer, "HTTP/1.1 200 OK\r\n"));
        assert_non_null(strstr(answer, "\r\nContent-Length: 1000\r\n"));
        assert_null(strstr(answer, "multipart"));
        mk_test_fixture_close(&w);
    }
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(refused_ranges_of_an_unchanged_file)
{
    open_refusing(true, false);
    assert_string_equal(ask("GET", "If-None-Match: " TAG "\r\nRange: bytes=2-4\r\n"), UNCHANGED);
    mk_test_fixture_close(&w);
}

/* ── with a filter of another plugin ── */

static ssize_t raise_bytes(struct mk_filter *filter, char *to, size_t size, void *ctx)
{
    ssize_t n = mk_filter_read(filter, to, size);
    (void)ctx;
    for (ssize_t i = 0; i < n; i++)
        to[i] = (char)(to[i] + 'a' - '0');
    return n;
}

/* The filter is added to a 206 of 3 bytes, with that length; then another plugin refuses the ranges. */
static void filter_and_refuse(struct mk_request *req, struct mk_test_fixture *fixture)
{
    assert_int_equal(mk_response_get_status(req), 206);
    assert_int_equal(mk_response_filter(req, raise_bytes, NULL), 0);
    assert_int_equal(mk_response_set_length(req, 3), 0);
    refuse_late(req, fixture);
}

TEST(a_filter_gets_the_whole_file)
{
    open_fixture();
    w.on_response = filter_and_refuse;
    const char *answer = ask("GET", "Range: bytes=2-4\r\n");
    assert_non_null(strstr(answer, "HTTP/1.1 200 OK\r\n"));
    assert_non_null(strstr(answer, "\r\nTransfer-Encoding: chunked\r\n\r\n000a\r\nabcdefghij\r\n0\r\n\r\n"));
    mk_test_fixture_close(&w);
}

/* ── when they cannot be refused ── */

static struct mk_request *asked;

static void send_own_part(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    asked = req;
    mk_response_set_status(req, 206);
    mk_response_header(req, MK_STR("Content-Range"), MK_STR("bytes 0-0/10"));
    mk_response_write_ref(req, MK_STR("0"));
}

static void refuse_in_vain(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    assert_int_equal(mk_response_no_ranges(req), -ENOTSUP);
}

TEST(a_part_that_a_handler_has_made)
{
    open_fixture();
    w.handler = send_own_part;
    w.on_response = refuse_in_vain;
    struct mk_test_client *c = mk_test_connect(&w, MK_STR("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
    mk_test_settle(&w);
    assert_non_null(strstr(mk_test_received(c).p, "206 Partial Content"));
    assert_int_equal(mk_response_no_ranges(asked), -EALREADY);
    mk_response_end(asked);
    mk_test_fixture_close(&w);
}

static void replace_and_refuse(struct mk_request *req, struct mk_test_fixture *fixture)
{
    assert_int_equal(mk_response_replace(req, MK_STR("text/y"), MK_STR("abc")), 0);
    refuse_in_vain(req, fixture);
}

TEST(a_part_that_was_replaced)
{
    unsigned before = mk_test_descriptors();
    open_fixture();
    w.on_response = replace_and_refuse;
    assert_non_null(strstr(ask("GET", "Range: bytes=2-4\r\n"), "\r\n\r\nabc"));
    mk_test_fixture_close(&w);
    assert_int_equal(mk_test_descriptors(), before);
}

/* The server's page of a 416 may have been replaced by the host's. */
static void replace_page(struct mk_request *req, struct mk_test_fixture *fixture)
{
    if (mk_response_get_status(req) == 416)
        assert_int_equal(mk_response_replace(req, MK_STR("text/y"), MK_STR("abc")), 0);
    refuse_late(req, fixture);
}

TEST(a_416_with_another_page)
{
    open_fixture();
    w.on_response = replace_page;
    expect_whole(ask("GET", "Range: bytes=10-\r\n"));
    mk_test_fixture_close(&w);
}

TEST(an_empty_file)
{
    open_fixture();
    file.bytes = 0;
    const char *answer = ask("GET", "Range: bytes=0-0\r\n");
    assert_non_null(strstr(answer, " 416 "));
    mk_test_fixture_close(&w);
    open_fixture();
    file.bytes = 0;
    answer = ask("GET", "");
    assert_non_null(strstr(answer, " 200 OK\r\n"));
    assert_non_null(strstr(answer, "\r\nContent-Length: 0\r\n\r\n"));
    mk_test_fixture_close(&w);
}

TEST(huge_files)
{
    open_fixture();
    file.bytes = 6ull << 30;
    assert_non_null(strstr(ask("HEAD", ""), "\r\nContent-Length: 6442450944\r\n\r\n"));
    mk_test_fixture_close(&w);
}

static void refuse_if_possible(struct mk_request *req, struct mk_test_fixture *fixture)
{
    (void)fixture;
    int err = mk_response_no_ranges(req), status = mk_response_get_status(req);
    assert_true(err == 0 || err == -ENOMEM || err == -EALREADY || (err == -ENOTSUP && status == 206));
}

TEST(every_allocation_may_fail)
{
    static const char *const fields[] = {"", "Range: bytes=2-4\r\n", "Range: bytes=1000-\r\n",
                                         "If-Match: \"other\"\r\n", "Range: bytes=0-0,300-300,600-600,900-900\r\n"};
    unsigned before = mk_test_descriptors();
    for (size_t i = 0; i < COUNT(fields) * 2; i++) {
        bool all_fine = false;
        is_tight = true;
        for (long n = 0; !all_fine && n < 50; n++) {
            char request[256];
            open_thousand();
            w.on_response = i & 1 ? refuse_if_possible : NULL;
            snprintf(request, sizeof(request), "GET / HTTP/1.1\r\nHost: h\r\n%s\r\n", fields[i / 2]);
            mk__alloc_countdown = n;
            mk_test_connect(&w, mk_str_c(request));
            mk_test_settle(&w);
            all_fine = mk__alloc_countdown >= 0;
            mk__alloc_countdown = -1;
            mk_test_fixture_close(&w);
        }
        assert_true(all_fine);
    }
    is_tight = false;
    assert_int_equal(mk_test_descriptors(), before);
}

TEST(content_at_hand)
{
    is_at_hand = true;
    test_answers(state);
    test_refusals(state);
    test_several_ranges(state);
    test_several_ranges_that_do_not_pay(state);
    test_an_empty_file(state);
    test_every_allocation_may_fail(state);
    assert_true(fcntl(STDERR_FILENO, F_GETFD) >= 0);
    is_at_hand = false;
}

TEST(a_shared_file)
{
    is_shared = true;
    test_answers(state);
    test_refusals(state);
    test_several_ranges(state);
    test_several_ranges_of_a_coded_file(state);
    test_several_ranges_that_do_not_pay(state);
    test_a_young_file_is_weak(state);
    test_times_far_away(state);
    test_without_ranges(state);
    test_refused_ranges(state);
    test_refused_multipart(state);
    test_refused_ranges_of_an_unchanged_file(state);
    test_a_filter_gets_the_whole_file(state);
    test_an_empty_file(state);
    test_every_allocation_may_fail(state);
    test_content_at_hand(state);
    assert_int_equal(references, 0);
    assert_int_equal(references_most, 0); /* no exchange outlived its turn */
    is_shared = false;
}

static int set_up(void **state)
{
    if (mk_test_folder_make(state) < 0)
        return -1;
    mk_test_write("ten", MK_STR("0123456789"));
    char text[1000];
    for (unsigned i = 0; i < 1000; i++)
        text[i] = (char)('0' + i % 10);
    mk_test_write("thousand", mk_str(text, sizeof(text)));
    return 0;
}

TEST_FILE(set_up, mk_test_folder_remove)
