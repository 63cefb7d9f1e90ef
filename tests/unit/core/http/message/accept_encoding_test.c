// SPDX-License-Identifier: Apache-2.0
/* Accept-Encoding: weights, exclusions, malformed values; each case flush against a guard page. */
#include "testing.h"

#include <monkey/request.h>

#include <stdio.h>

enum { GZIP = MK_CODING_GZIP, BR, ZSTD };

/* Weights of identity, gzip, br, zstd. */
static const struct {
    const char *value;
    uint16_t weight[MK_CODING_COUNT];
} cases[] = {
    {"", {1, 0, 0, 0}},
    {" , ,", {1, 0, 0, 0}},
    {"gzip", {1, 1000, 0, 0}},
    {"GZip", {1, 1000, 0, 0}},
    {"x-gzip", {1, 1000, 0, 0}},
    {"gzip, deflate, br, zstd", {1, 1000, 1000, 1000}},
    {"compress, gzip", {1, 1000, 0, 0}},
    {"compress;q=0.5, gzip;q=1.0", {1, 1000, 0, 0}},
    {"gzip;q=0.5,br;q=0.25\t,  zstd;q=0.125", {1, 500, 250, 125}},
    {"gzip ; q=0.5", {1, 500, 0, 0}},
    {"gzip;Q=1", {1, 1000, 0, 0}},
    {"gzip;q=1.", {1, 1000, 0, 0}},
    {"gzip;q=0.", {1, 0, 0, 0}},
    {"gzip;q=1.000", {1, 1000, 0, 0}},
    {"gzip;q=0.001", {1, 1, 0, 0}},
    {"gzip;q=0", {1, 0, 0, 0}},
    {"gzip;q=0.000", {1, 0, 0, 0}},
    {"identity", {1000, 0, 0, 0}},
    {"identity;q=0", {0, 0, 0, 0}},
    {"identity;q=0.5, gzip;q=0.4", {500, 400, 0, 0}},
    {"*", {1000, 1000, 1000, 1000}},
    {"*;q=0", {0, 0, 0, 0}},
    {"*;q=0, gzip", {0, 1000, 0, 0}},
    {"gzip;q=0, *;q=0.5", {500, 0, 500, 500}},
    {"*;q=0, identity;q=0.2, br", {200, 0, 1000, 0}},
    {"gzip, gzip;q=0.3", {1, 300, 0, 0}},
    /* malformed: as if it were absent */
    {"gzip;q=2", {1000, 0, 0, 0}},
    {"gzip;q=1.001", {1000, 0, 0, 0}},
    {"gzip;q=0.1234", {1000, 0, 0, 0}},
    {"gzip;q=", {1000, 0, 0, 0}},
    {"gzip;q=.5", {1000, 0, 0, 0}},
    {"gzip;q=-1", {1000, 0, 0, 0}},
    {"gzip;q=0,5", {1, 0, 0, 0}}, /* an unknown coding "5" */
    {"gzip;q=0x1", {1000, 0, 0, 0}},
    {"gzip;q= 1", {1000, 0, 0, 0}},
    {"gzip;q =1", {1000, 0, 0, 0}},
    {"gzip;", {1000, 0, 0, 0}},
    {"gzip;q", {1000, 0, 0, 0}},
    {"gzip;level=9", {1000, 0, 0, 0}},
    {"gzip;q=1;q=0", {1000, 0, 0, 0}},
    {";q=1", {1000, 0, 0, 0}},
    {"gzip br", {1000, 0, 0, 0}},
    {"br, \"gzip\"", {1000, 0, 0, 0}},
    {"br, \"", {1000, 0, 0, 0}},
    {"gz\x01p", {1000, 0, 0, 0}},
};

TEST(weights)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t len = strlen(cases[i].value);
        char *bytes = mk_test_guarded(cases[i].value, len);
        struct mk_accept accept;
        mk_accept_encoding(mk_str(bytes, len), &accept);
        for (unsigned c = 0; c < MK_CODING_COUNT; c++)
            if (accept.weight[c] != cases[i].weight[c])
                fail_msg("%s: %u is the weight of %s", cases[i].value, accept.weight[c], mk_coding_name(c).p);
        mk_test_unguard(bytes, len);
    }
}

TEST(absent)
{
    struct mk_accept accept;
    mk_accept_encoding(MK_STR_NONE, &accept);
    assert_int_equal(accept.weight[MK_CODING_IDENTITY], 1000);
    assert_int_equal(accept.weight[GZIP] + accept.weight[BR] + accept.weight[ZSTD], 0);
}

/* The codings selected one after the other from br, zstd, gzip in this order. */
static const struct {
    const char *value, *taken;
} orders[] = {
    {"", ""},
    {"gzip", "gzip "},
    {"gzip, br, zstd", "br zstd gzip "},
    {"gzip, br;q=0.5, zstd;q=0.7", "gzip zstd br "},
    {"*", "br zstd gzip "},
    {"*;q=0.5, gzip", "gzip br zstd "}, /* identity is one of the others */
    {"gzip, identity", "gzip "},
    {"gzip;q=0.9, identity", ""},
    {"gzip;q=0.5, br;q=0.2, identity;q=0.3", "gzip "},
    {"gzip;q=0.001", "gzip "},
    {"identity;q=0", ""},
    {"*;q=0, zstd", "zstd "},
    {"br;q=0, *", "zstd gzip "},
    {"deflate", ""},
};

TEST(order)
{
    static const uint8_t offered[] = {BR, ZSTD, GZIP};
    for (size_t i = 0; i < COUNT(orders); i++) {
        struct mk_accept accept;
        enum mk_coding coding;
        char taken[64] = "";
        mk_accept_encoding(mk_str_c(orders[i].value), &accept);
        while (mk_accept_next(&accept, offered, COUNT(offered), &coding))
            snprintf(taken + strlen(taken), sizeof(taken) - strlen(taken), "%s ", mk_coding_name(coding).p);
        assert_int_equal(coding, MK_CODING_IDENTITY);
        if (strcmp(taken, orders[i].taken) != 0)
            fail_msg("%s: %s, not %s", orders[i].value, taken, orders[i].taken);
        assert_false(mk_accept_next(&accept, offered, 0, &coding));
    }
}
