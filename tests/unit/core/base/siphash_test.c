// SPDX-License-Identifier: Apache-2.0
/* SipHash-1-3 against values of the reference implementation, and at the end of readable memory. */
#include "testing.h"

#include <monkey/base/siphash.h>

/* Key 00 01 .. 0f, inputs 00 01 .. of growing length. */
static const uint64_t vectors[] = {
    0xabac0158050fc4dc, 0xc9f49bf37d57ca93, 0x82cb9b024dc7d44d, 0x8bf80ab8e7ddf7fb, 0xcf75576088d38328,
    0xdef9d52f49533b67, 0xc50d2b50c59f22a7, 0xd3927d989bb11140, 0x369095118d299a8e, 0x25a48eb36c063de4,
};

static const uint64_t key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

TEST(vectors)
{
    char bytes[COUNT(vectors)];
    for (size_t len = 0; len < COUNT(vectors); len++) {
        char *p = mk_test_guarded(bytes, len);
        for (size_t i = 0; i < len; i++)
            p[i] = (char)i;
        if (mk_siphash(key, p, len) != vectors[len])
            fail_msg("%zu bytes: %#llx", len, (unsigned long long)mk_siphash(key, p, len));
        mk_test_unguard(p, len);
    }
}

TEST(keys)
{
    uint64_t a[2] = {0}, b[2] = {0};
    assert_int_equal(mk_siphash_key(a), 0);
    assert_int_equal(mk_siphash_key(b), 0);
    assert_true(a[0] != b[0] && a[1] != b[1]);
    assert_true(mk_siphash(a, "x", 1) != mk_siphash(b, "x", 1));
    assert_true(mk_siphash(a, "x", 1) == mk_siphash(a, "x", 1));
}
