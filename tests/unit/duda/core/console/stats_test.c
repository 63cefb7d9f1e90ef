// SPDX-License-Identifier: Apache-2.0
/* The pages of a range of memory, and the figures of a service without requests. */
#include "testing.h"

#include "service_slots.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "duda/core/console/console_page.h"
#include "duda/core/service/service.h"

enum { PAGES = 1500 }; /* more than are read at once */

TEST(pages_are_counted)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t resident, own;
    int fd = memfd_create("pages", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, (off_t)(PAGES * page)), 0);
    char *p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    madvise(p, PAGES * page, MADV_RANDOM);
    uintptr_t begin = (uintptr_t)p, end = begin + PAGES * page;
    int err = stats_count_pages(begin, end, &resident, &own);
    if (err == -EACCES || err == -ENOENT || err == -EPERM)
        skip();
    assert_int_equal(err, 0);
    assert_int_equal(own, 0);
    p[0] = p[700 * page] = p[1400 * page] = 1;
    assert_int_equal(stats_count_pages(begin, end, &resident, &own), 0);
    assert_int_equal(own, 3 * page);
    assert_true(resident >= own);
    assert_int_equal(stats_count_pages(begin, begin + page, &resident, &own), 0);
    assert_int_equal(own, page);
    assert_int_equal(stats_count_pages(begin, begin, &resident, &own), 0);
    assert_int_equal(resident, 0);
    munmap(p, PAGES * page);
    close(fd);
}

/* ── what is written of them ── */

static struct service service = {.host = MK_STR("example.org"), .conf = {.name = MK_STR("shop")}};

static struct stats *make_stats(void)
{
    static struct stats f;
    memset(&f, 0, sizeof(f));
    static struct mk_test_slots slots; /* ends with the process */
    if (!slots.service)
        mk_test_slots_open(&slots, &service, NULL);
    f.service = &service;
    f.wall_s = 1763614800; /* 2025-11-20T05:00:00Z */
    f.n = 1;
    f.rows[0] = (struct stats_row){.methods = MK_STR("GET"),
                                   .pattern = MK_STR("/<a>"),
                                   .responses = 3,
                                   .classes = {[1] = 3},
                                   .times = {3, 4500, 1280, 1536, 2000000}};
    f.total = f.rows[0];
    f.tasks = (struct stats_tasks){true, 4, 2, 7, 1};
    f.messages = f.n_lines = 1;
    f.lines[0] = (struct last_line){.wall_ms = 1763614800007, .len = 3, .kind = "bug", .text = "<i>"};
    return &f;
}

TEST(json)
{
    struct mk_buf out;
    mk_buf_init(&out, 1 << 20);
    console_json_write(&out, make_stats());
    assert_string_equal(
        mk_buf_cstr(&out),
        "{\"host\":\"example.org\",\"service\":\"shop\",\"url\":\"\",\"time_s\":1763614800,\"uptime_s\":0,"
        "\"active\":0,\"crashes\":0,\"responses\":3,\"1xx\":0,\"2xx\":3,\"3xx\":0,\"4xx\":0,\"5xx\":0,\"timeout\":0,"
        "\"aborted\":0,\"client_closed\":0,\"duration_us\":{\"count\":3,\"sum\":4500,\"p50\":1280,\"p90\":1536,\"p99\":"
        "2000000},"
        "\"routes\":[{\"method\":\"GET\",\"route\":\"/<a>\",\"responses\":3,\"1xx\":0,\"2xx\":3,\"3xx\":0,\"4xx\":0,"
        "\"5xx\":0,\"timeout\":0,\"aborted\":0,\"client_closed\":0,\"duration_us\":{\"count\":3,\"sum\":4500,\"p50\":"
        "1280,"
        "\"p90\":1536,\"p99\":2000000}}],\"packages\":{},\"tasks\":{\"queued\":4,\"running\":2,\"done\":7,\"refused\":"
        "1},"
        "\"memory_bytes\":{\"copy\":0,\"mapped\":0,\"settings\":0,\"requests\":0},\"messages_in_all\":1,\"messages\":[{"
        "\"time\":\"2025-11-20T05:00:00.007Z\",\"kind\":\"bug\","
        "\"text\":\"<i>\"}]}\n");
    mk_buf_release(&out);
}

TEST(html)
{
    struct mk_buf out;
    mk_buf_init(&out, 1 << 20);
    console_page_write(&out, make_stats(), true);
    const char *text = mk_buf_cstr(&out);
    static const char *const parts[] = {
        "GET /&lt;a&gt;",     "&lt;i&gt;",         "1.3 ms", "2.00 s", "2025-11-20T05:00:00.007Z",
        "http-equiv=refresh", "<dt>have run<dd>7<"};
    for (size_t i = 0; i < COUNT(parts); i++)
        assert_non_null(strstr(text, parts[i]));
    assert_null(strstr(text, "<i>"));
    assert_null(strstr(text, "<a>"));
    mk_buf_release(&out);
}

TEST(plain_text)
{
    struct mk_buf out;
    mk_buf_init(&out, 1 << 20);
    console_text_messages(&out, make_stats());
    console_text_map(&out, make_stats());
    assert_string_equal(mk_buf_cstr(&out), "2025-11-20T05:00:00.007Z bug   <i>\nGET /<a>\n");
    mk_buf_release(&out);
}

/* A page that is longer than its buffer fails, and writes nothing behind it. */
TEST(without_room)
{
    char storage[600];
    for (size_t size = 0; size < sizeof(storage); size += 7) {
        struct mk_buf out;
        mk_buf_init_fixed(&out, storage, size);
        console_json_write(&out, make_stats());
        assert_int_equal(out.err, -ENOBUFS);
        mk_buf_init_fixed(&out, storage, size);
        console_page_write(&out, make_stats(), false);
        assert_int_equal(out.err, -ENOBUFS);
    }
}
