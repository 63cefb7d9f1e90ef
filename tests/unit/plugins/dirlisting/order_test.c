// SPDX-License-Identifier: Apache-2.0
/* The order of entries in a listing. */
#include "testing.h"

#include <stdio.h>

#include "plugins/dirlisting/listing.h"

TEST(names)
{
    static const char *const names[] = {/* in this order */
                                        "",
                                        "0",
                                        "00",
                                        "01",
                                        "1",
                                        "1a",
                                        "2",
                                        "9",
                                        "10",
                                        "010b",
                                        "18446744073709551616",
                                        "99999999999999999999999999",
                                        "a",
                                        "A1",
                                        "a01",
                                        "a1",
                                        "a1b",
                                        "a2",
                                        "a10",
                                        "B",
                                        "b",
                                        "file 2",
                                        "file 10",
                                        "file-2.txt",
                                        "file-10.txt",
                                        "z",
                                        "\xc3\xa4",
                                        "\xff"};
    for (size_t i = 0; i < COUNT(names); i++)
        for (size_t j = 0; j < COUNT(names); j++) {
            int r = order_compare_names(mk_str_c(names[i]), mk_str_c(names[j]));
            if ((r > 0) - (r < 0) != (i > j) - (i < j))
                fail_msg("\"%s\" and \"%s\": %d", names[i], names[j], r);
        }
}

static struct listing_entry *entries[8];

static struct listing make_listing(void)
{
    static const struct {
        const char *name;
        bool is_dir;
        uint64_t bytes;
        int64_t mtime;
    } rows[] = {
        {"b10", false, 5, 30}, {"z", true, 0, 1}, {"b2", false, 5, 10}, {"A", false, UINT64_MAX, 20},
        {"c", false, 0, -5},   {"y", true, 0, 2}, {"d", false, 5, 10},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t n = strlen(rows[i].name);
        entries[i] = test_malloc(sizeof(struct listing_entry) + n + 1);
        *entries[i] = (struct listing_entry){.bytes = rows[i].bytes,
                                             .mtime_seconds = rows[i].mtime,
                                             .name_len = (uint16_t)n,
                                             .is_dir = rows[i].is_dir};
        memcpy(entries[i]->name, rows[i].name, n + 1);
    }
    return (struct listing){.entries = entries, .n = COUNT(rows)};
}

static const struct {
    enum listing_sort sort;
    bool descending;
    const char *expected;
} orders[] = {
    {LISTING_BY_NAME, false, "y z A b2 b10 c d "}, {LISTING_BY_NAME, true, "z y d c b10 b2 A "},
    {LISTING_BY_SIZE, false, "y z c b2 b10 d A "}, {LISTING_BY_SIZE, true, "y z A b2 b10 d c "},
    {LISTING_BY_DATE, false, "z y c b2 d A b10 "}, {LISTING_BY_DATE, true, "y z b10 A b2 d c "},
};

TEST(orders)
{
    for (size_t i = 0; i < COUNT(orders); i++) {
        char text[64] = "";
        size_t n = 0;
        struct listing listing = make_listing();
        order_sort(&listing, orders[i].sort, orders[i].descending);
        for (uint32_t j = 0; j < listing.n; j++) {
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s ", listing.entries[j]->name);
            test_free(listing.entries[j]);
        }
        assert_string_equal(text, orders[i].expected);
    }
}

TEST(nothing_to_sort)
{
    struct listing empty = {.n = 0};
    order_sort(&empty, LISTING_BY_SIZE, true);
    assert_int_equal(empty.n, 0);
}
