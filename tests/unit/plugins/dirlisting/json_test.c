// SPDX-License-Identifier: Apache-2.0
/* What clients say about a listing (query), and how names are written (JSON, Content-Disposition). */
#include "testing.h"

#include <monkey/base/buf.h>
#include <monkey/base/utf8.h>

#include "plugins/dirlisting/template.h"
#include "plugins/dirlisting/listing.h"

/* ── what clients say ── */

TEST(queries)
{
    static const struct {
        const char *text;
        int sort, order;
        const char *archive;
    } cases[] = {
        {"", -1, -1, NULL},
        {"sort=size", LISTING_BY_SIZE, -1, NULL},
        {"sort=date&order=desc", LISTING_BY_DATE, 1, NULL},
        {"order=asc&sort=name", LISTING_BY_NAME, 0, NULL},
        {"sort=name&sort=size", LISTING_BY_NAME, -1, NULL},
        {"sort=wrong&sort=size", LISTING_BY_SIZE, -1, NULL},
        {"sort", -1, -1, NULL},
        {"sort=&=&&&order=up", -1, -1, NULL},
        {"Sort=size", -1, -1, NULL},
        {"sort=%73ize", -1, -1, NULL},
        {"archive=tar.gz", -1, -1, "tar.gz"},
        {"archive", -1, -1, ""},
        {"x=1&archive=tar&archive=zip", -1, -1, "tar"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t len = strlen(cases[i].text);
        char *text = mk_test_guarded(cases[i].text, len);
        struct query q = query_parse(mk_str(text, len));
        assert_int_equal(q.sort, cases[i].sort);
        assert_int_equal(q.order, cases[i].order);
        assert_int_equal(q.archive.p != NULL, cases[i].archive != NULL);
        if (cases[i].archive)
            assert_str_equal(q.archive, cases[i].archive);
        mk_test_unguard(text, len);
    }
    assert_int_equal(query_parse(MK_STR_NONE).sort, -1);
}

/* ── names ── */

#define R "\xef\xbf\xbd"

TEST(json_entries)
{
    _Alignas(struct listing_entry) char storage[sizeof(struct listing_entry) + 16];
    struct listing_entry *entry = (struct listing_entry *)(void *)storage;
    *entry = (struct listing_entry){.bytes = 12, .mtime_seconds = 0, .name_len = 4};
    struct listing_view view = {.path = MK_STR("/a b/"), .is_complete = true, .descending = true};
    struct mk_buf out;
    memcpy(entry->name, "c\xff\"d", 5);
    mk_buf_init(&out, 4096);
    json_format.begin(&out, &view);
    json_format.entry(&out, &view, entry, 0);
    entry->is_dir = true;
    json_format.entry(&out, &view, entry, 1);
    entry->mtime_seconds = INT64_MAX;
    json_format.entry(&out, &view, entry, 2);
    json_format.end(&out, &view);
    assert_str_equal(mk_buf_str(&out),
                     "{\"path\":\"/a b/\",\"sort\":\"name\",\"order\":\"desc\",\"sorted\":true,\"entries\":[\n"
                     "{\"name\":\"c" R "\\\"d\",\"type\":\"file\",\"bytes\":12,\"mtime\":"
                     "\"1970-01-01T00:00:00Z\",\"url\":\"/a%20b/c%FF%22d\"},\n"
                     "{\"name\":\"c" R "\\\"d\",\"type\":\"folder\",\"bytes\":null,\"mtime\":"
                     "\"1970-01-01T00:00:00Z\",\"url\":\"/a%20b/c%FF%22d/\"},\n"
                     "{\"name\":\"c" R "\\\"d\",\"type\":\"folder\",\"bytes\":null,\"mtime\":null,"
                     "\"url\":\"/a%20b/c%FF%22d/\"}]}\n");
    mk_buf_release(&out);
}

TEST(dispositions)
{
    static const struct {
        const char *name, *value;
    } cases[] = {
        {"pub", "attachment; filename=\"pub.tar.gz\""},
        {"my files", "attachment; filename=\"my files.tar.gz\""},
        {"", "attachment; filename=\"files.tar.gz\""},
        {"..", "attachment; filename=\"files.tar.gz\""},
        {".git", "attachment; filename=\"git.tar.gz\""},
        {"a\"b", "attachment; filename=\"a_b.tar.gz\"; filename*=UTF-8''a_b.tar.gz"},
        {"a;b", "attachment; filename=\"a_b.tar.gz\"; filename*=UTF-8''a%3Bb.tar.gz"},
        {"a\r\nSet-Cookie: x", "attachment; filename=\"a__Set-Cookie_ x.tar.gz\"; "
                               "filename*=UTF-8''a__Set-Cookie_%20x.tar.gz"},
        {"\xc3\xa4", "attachment; filename=\"_.tar.gz\"; filename*=UTF-8''%C3%A4.tar.gz"},
        {"\xff", "attachment; filename=\"_.tar.gz\"; filename*=UTF-8''%EF%BF%BD.tar.gz"},
        {"\xc2\x85", "attachment; filename=\"_.tar.gz\"; filename*=UTF-8''_.tar.gz"},
        {"50%\\x", "attachment; filename=\"50__x.tar.gz\"; filename*=UTF-8''50%25_x.tar.gz"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mk_buf out;
        mk_buf_init(&out, 4096);
        disposition_write(&out, mk_str_c(cases[i].name), MK_STR("tar.gz"));
        assert_str_equal(mk_buf_str(&out), cases[i].value);
        mk_buf_release(&out);
    }
}
