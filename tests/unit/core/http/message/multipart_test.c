// SPDX-License-Identifier: Apache-2.0
/* The texts around several ranges, their exact length, and the boundary. */
#include "testing.h"

#include "http/message/multipart.h"

#include <errno.h>

static struct mk_arena arena;
static const struct mk__range ranges[MK__MULTIPART_MAX] = {{0, 0}, {100, 299}, {4294967296, 4294967299}};

static int set_up(void **state)
{
    (void)state;
    mk_arena_init(&arena, NULL, 512 * 1024, NULL, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mk_arena_release(&arena);
    return 0;
}

TEST(frame, set_up, tear_down)
{
    struct mk__multipart m;
    assert_int_equal(mk__multipart_build(&m, &arena, MK_STR("BO"), ranges, 3, MK_STR("text/x"), 5000000000), 0);
    assert_str_equal(m.type, "multipart/byteranges; boundary=BO");
    assert_str_equal(m.heads[0], "\r\n--BO\r\nContent-Type: text/x\r\nContent-Range: bytes 0-0/5000000000\r\n\r\n");
    assert_str_equal(m.heads[1], "\r\n--BO\r\nContent-Type: text/x\r\nContent-Range: bytes 100-299/5000000000\r\n\r\n");
    assert_str_equal(
        m.heads[2],
        "\r\n--BO\r\nContent-Type: text/x\r\nContent-Range: bytes 4294967296-4294967299/5000000000\r\n\r\n");
    assert_str_equal(m.heads[3], "\r\n--BO--\r\n");
    assert_int_equal(m.bytes, m.heads[0].len + 1 + m.heads[1].len + 200 + m.heads[2].len + 4 + m.heads[3].len);
}

/* The largest numbers fit, with any type. */
TEST(largest_frame, set_up, tear_down)
{
    static char type[2048];
    struct mk__range far[MK__MULTIPART_MAX];
    char boundary[MK__BOUNDARY_BYTES];
    for (unsigned i = 0; i < MK__MULTIPART_MAX; i++)
        far[i] = (struct mk__range){UINT64_MAX - 2, UINT64_MAX - 1};
    memset(type, 't', sizeof(type));
    memset(boundary, 'b', sizeof(boundary));
    for (size_t len = 0; len <= sizeof(type); len += sizeof(type) / 4) {
        struct mk__multipart m;
        assert_int_equal(mk__multipart_build(&m, &arena, mk_str(boundary, sizeof(boundary)), far, MK__MULTIPART_MAX,
                                             mk_str(type, len), UINT64_MAX),
                         0);
        assert_int_equal(m.heads[1].len, 133 + len);
        tear_down(state);
        set_up(state);
    }
}

static int make_frame(void *ctx)
{
    struct mk__multipart m;
    (void)ctx;
    mk_arena_init(&arena, NULL, 512 * 1024, NULL, 0);
    int r = mk__multipart_build(&m, &arena, MK_STR("BO"), ranges, 3, MK_STR("text/x"), 5000000000);
    mk_arena_release(&arena);
    return r;
}

TEST(every_allocation_may_fail, set_up, tear_down)
{
    struct mk__multipart m;
    assert_int_equal(mk_test_failing_allocs(make_frame, NULL), 1);
    mk_arena_init(&arena, NULL, 256, NULL, 0); /* the limit of the exchange */
    assert_int_equal(mk__multipart_build(&m, &arena, MK_STR("BO"), ranges, 3, MK_STR("text/x"), 5000000000), -ENOMEM);
}

TEST(boundaries)
{
    char boundaries[100][MK__BOUNDARY_BYTES];
    for (unsigned i = 0; i < COUNT(boundaries); i++) {
        char *guarded = mk_test_guarded(boundaries[i], MK__BOUNDARY_BYTES);
        assert_int_equal(mk__multipart_make_boundary(guarded), 0);
        memcpy(boundaries[i], guarded, MK__BOUNDARY_BYTES);
        mk_test_unguard(guarded, MK__BOUNDARY_BYTES);
        for (unsigned n = 0; n < MK__BOUNDARY_BYTES; n++)
            assert_non_null(strchr("abcdefghijklmnopqrstuvwxyz234567", boundaries[i][n]));
        for (unsigned other = 0; other < i; other++)
            assert_memory_not_equal(boundaries[other], boundaries[i], MK__BOUNDARY_BYTES);
    }
}
