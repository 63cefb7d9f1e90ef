// SPDX-License-Identifier: Apache-2.0
/* Whose bytes leave first: urgencies, turns, fields that cannot be read. */
#include "testing.h"

#include "http/h2/priority.h"

static struct mk__h2_scheduler order;
static struct mk__h2_priority places[8];

static struct mk__h2_priority *place(unsigned n)
{
    return &places[n];
}

static void start(void)
{
    mk__h2_scheduler_init(&order);
    for (unsigned i = 0; i < COUNT(places); i++)
        mk__h2_priority_init(place(i), (int32_t)(2 * i + 1));
}

static void say(unsigned n, const char *field)
{
    mk__h2_priority_parse(&order, place(n), mk_str_c(field));
}

static bool anybody(struct mk__h2_priority *p, void *ctx)
{
    (void)p, (void)ctx;
    return true;
}

static bool not_that_one(struct mk__h2_priority *p, void *ctx)
{
    return p != ctx;
}

/* The numbers of the streams that send the next frames, each of which leaves more to send. */
static const char *next(unsigned frames)
{
    static char text[64];
    for (unsigned i = 0; i < frames; i++) {
        struct mk__h2_priority *p = mk__h2_scheduler_pick(&order, anybody, NULL);
        text[i] = p ? (char)('0' + p->id / 2) : '-';
        if (p)
            mk__h2_scheduler_rotate(&order, p);
    }
    text[frames] = '\0';
    return text;
}

TEST(fields)
{
    static const struct {
        const char *field;
        uint8_t urgency;
        bool incremental;
    } cases[] = {
        {"", 3, false},           {"u=0", 0, false},     {"u=7", 7, false},       {"i", 3, true},
        {"u=5, i", 5, true},      {"i,u=5", 5, true},    {" u=1 ,\ti ", 1, true}, {"i=?1", 3, true},
        {"i=?0", 3, false},       {"i, i=?0", 3, false}, {"u=1, u=2", 2, false},  {"u=1;x=2, i;q", 1, true},
        {"u=8", 3, false},        {"u=-1", 3, false},    {"u=10", 3, false},      {"u", 3, false},
        {"u=", 3, false},         {"U=1", 3, false},     {"I", 3, false},         {"i=1", 3, false},
        {"i=?2", 3, false},       {"u=\"1\"", 3, false}, {"u = 1", 3, false},     {"x=1, u=2", 2, false},
        {",,u=2,,", 2, false},    {"u=1.0", 3, false},   {";", 3, false},         {"u=2;", 2, false},
        {"u=9, i, u=4", 4, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t len = strlen(cases[i].field);
        char *field = mk_test_guarded(cases[i].field, len);
        start();
        say(0, "u=6, i"); /* nothing of what was said before stays */
        mk__h2_priority_parse(&order, place(0), mk_str(field, len));
        mk_test_unguard(field, len);
        if (places[0].urgency != cases[i].urgency || places[0].incremental != cases[i].incremental)
            fail_msg("\"%s\": u=%u, i=%d", cases[i].field, places[0].urgency, places[0].incremental);
    }
}

TEST(turns)
{
    static const struct {
        const char *fields[8]; /* NULL: it has nothing to send */
        const char *turns;
    } cases[] = {
        {{NULL}, "--"},
        {{"", "", ""}, "0000"},
        {{"u=4", "", "u=2"}, "2222"},
        {{"i", "i", "i"}, "012012"},
        {{"i", "", "i"}, "1111"}, /* those that are not incremental stand before those that are */
        {{"u=1, i", "u=1, i", "u=7, i", "u=0"}, "3333"},
        {{"u=1, i", "u=1, i", "u=7, i", "u=2"}, "010101"},
        {{"u=7", "u=7, i"}, "0000"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        start();
        for (unsigned n = 8; n-- > 0;) /* in whatever order they come */
            if (cases[i].fields[n]) {
                say(n, cases[i].fields[n]);
                if (!strchr(cases[i].fields[n], 'i'))
                    mk__h2_scheduler_add(&order, place(n));
            }
        for (unsigned n = 0; n < 8; n++) /* which matters to the incremental ones */
            if (cases[i].fields[n])
                mk__h2_scheduler_add(&order, place(n));
        assert_string_equal(next((unsigned)strlen(cases[i].turns)), cases[i].turns);
    }
}

TEST(they_come_and_go)
{
    start();
    mk__h2_scheduler_remove(place(0)); /* was never there */
    mk__h2_scheduler_rotate(&order, place(0));
    assert_string_equal(next(1), "-");
    say(0, "i");
    say(1, "i");
    mk__h2_scheduler_add(&order, place(0));
    mk__h2_scheduler_add(&order, place(1));
    assert_string_equal(next(1), "0");
    mk__h2_scheduler_add(&order, place(1)); /* loses nothing by saying it twice */
    assert_string_equal(next(3), "101");
    mk__h2_scheduler_remove(place(0));
    assert_string_equal(next(3), "111");
    mk__h2_scheduler_remove(place(1));
    mk__h2_scheduler_remove(place(1));
    assert_string_equal(next(1), "-");
}

/* PRIORITY_UPDATE: a ready stream moves in the queue, another is not added to it. */
TEST(updates)
{
    start();
    for (unsigned n = 0; n < 3; n++)
        mk__h2_scheduler_add(&order, place(n));
    say(2, "u=0");
    assert_string_equal(next(2), "22");
    say(2, "nonsense");
    assert_string_equal(next(2), "00");
    say(0, "i");
    assert_string_equal(next(2), "11");
    say(3, "u=0");
    assert_string_equal(next(2), "11");
    mk__h2_scheduler_add(&order, place(3));
    assert_string_equal(next(2), "33");
}

TEST(blocked_streams_are_passed_over)
{
    start();
    mk__h2_scheduler_add(&order, place(0));
    assert_null(mk__h2_scheduler_pick(&order, not_that_one, place(0)));
    mk__h2_scheduler_add(&order, place(4));
    assert_ptr_equal(mk__h2_scheduler_pick(&order, not_that_one, place(0)), place(4));
    say(4, "u=7, i");
    assert_ptr_equal(mk__h2_scheduler_pick(&order, not_that_one, place(0)), place(4));
    assert_ptr_equal(mk__h2_scheduler_pick(&order, anybody, NULL), place(0));
}

/* What is said of streams that are still to come is kept, but not of many. */
TEST(those_to_come)
{
    struct mk__h2_priority p;
    start();
    for (int32_t id = 101; id < 101 + 2 * MK__H2_EARLY_MAX; id += 2)
        mk__h2_priority_parse(&order, mk__h2_scheduler_put_early(&order, id), MK_STR("u=1, i"));
    mk__h2_priority_parse(&order, mk__h2_scheduler_put_early(&order, 103),
                          MK_STR("u=2")); /* once more takes no other place */
    for (int32_t id = 101; id < 103 + 2 * MK__H2_EARLY_MAX; id += 2) {
        mk__h2_priority_init(&p, id);
        mk__h2_scheduler_take_early(&order, &p);
        assert_int_equal(p.updated, id < 101 + 2 * MK__H2_EARLY_MAX);
        assert_int_equal(p.urgency, id == 103 ? 2 : p.updated ? 1 : 3);
        assert_int_equal(p.incremental, id != 103 && p.updated);
    }
    mk__h2_priority_parse(&order, mk__h2_scheduler_put_early(&order, 201), MK_STR("u=0"));
    mk__h2_priority_init(&p, 101);
    mk__h2_scheduler_take_early(&order, &p); /* the oldest made room for it */
    assert_false(p.updated);
    assert_string_equal(next(1), "-"); /* none of them is ready */
}
