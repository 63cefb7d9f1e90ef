// SPDX-License-Identifier: Apache-2.0
/* Sets of networks: the same answers as a comparison with each network, and files with their mistakes. */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>

#include "../../../plugins/mandril/networks.h"

static struct mk_network read_one(const char *text)
{
    struct mk_network network;
    struct mk_buf error;
    char storage[256];
    mk_buf_init_fixed(&error, storage, sizeof(storage));
    assert_int_equal(mk_network_parse(mk_str_c(text), &network, &error), 0);
    return network;
}

static struct network_set *read_set(const char *text)
{
    struct network_set *set;
    struct mk_buf message;
    mk_buf_init(&message, 1000);
    assert_int_equal(networks_read(mk_str_c(text), MK_STR("nets"), &set, &message), 0);
    assert_int_equal(message.len, 0);
    mk_buf_release(&message);
    return set;
}

static bool has(const struct network_set *set, const char *address)
{
    struct mk_network one = read_one(address);
    return networks_contain(set, &one.address);
}

static void test_contains(void **state)
{
    (void)state;
    struct network_set *set =
        read_set("# comment\n10.0.0.0/8\r\n192.0.2.1 # one\n\n2001:db8::/32\n::1\n\t172.16.0.0/12 \nunix");
    assert_true(has(set, "10.0.0.0") && has(set, "10.255.255.255") && !has(set, "11.0.0.0") &&
                !has(set, "9.255.255.255"));
    assert_true(has(set, "192.0.2.1") && !has(set, "192.0.2.0") && !has(set, "192.0.2.2"));
    assert_true(has(set, "172.31.255.255") && !has(set, "172.32.0.0"));
    assert_true(has(set, "::1") && !has(set, "::2") && has(set, "2001:db8:ffff::1") && !has(set, "2001:db9::"));
    assert_true(has(set, "unix") && has(set, "::ffff:10.1.1.1"));
    struct mk_address unknown = {0};
    assert_false(networks_contain(set, &unknown));
    networks_free(set);
}

static void test_empty_and_all(void **state)
{
    (void)state;
    struct network_set *none = read_set("\n  # nothing\n"), *all = read_set("0.0.0.0/0\n::/0\n10.0.0.0/8");
    assert_false(has(none, "10.0.0.1") || has(none, "::1") || has(none, "unix"));
    assert_true(has(all, "10.0.0.1") && has(all, "255.255.255.255") && has(all, "::1") && !has(all, "unix"));
    assert_int_equal(networks_count(none), 0);
    assert_int_equal(networks_count(all), 2);
    assert_true(networks_cover(all, none) && networks_cover(none, none) && !networks_cover(none, all));
    networks_free(none);
    networks_free(all);
    networks_free(NULL);
}

static void test_joins_and_covers(void **state)
{
    (void)state;
    struct network_set *halves =
        read_set("10.64.0.0/10\n10.128.0.0/9\n10.0.0.0/10\n10.1.2.3\n2001:db8::/33\n2001:db8:8000::/33");
    struct network_set *whole = read_set("10.0.0.0/8\n2001:db8::/32"), *more = read_set("10.0.0.0/7");
    assert_int_equal(networks_count(halves), 2);
    assert_true(networks_cover(halves, whole) && networks_cover(whole, halves));
    assert_true(networks_cover(more, whole) == false && !networks_cover(whole, more));
    networks_free(halves);
    networks_free(whole);
    networks_free(more);
}

static uint32_t seed = 1;

static uint32_t get_random(void)
{
    return seed = seed * 1664525 + 1013904223;
}

static struct mk_network make_network(bool v6)
{
    struct mk_network n = {.bits = (uint8_t)(v6 ? get_random() >> 16 & 127 : 4 + (get_random() >> 16) % 29)};
    uint8_t bytes[16];
    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(get_random() >> 29); /* few values, so that networks overlap */
    for (unsigned i = n.bits; i < 128; i++)
        bytes[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
    bytes[0] |= v6 ? 0x20 : 0;
    mk_address_set(&n.address, v6 ? AF_INET6 : AF_INET, bytes, 0);
    return n;
}

static void test_as_one_by_one(void **state)
{
    (void)state;
    enum { NETWORKS = 60, ROUNDS = 300, LOOKUPS = 200 };
    struct mk_network items[NETWORKS];
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < NETWORKS; i++)
            items[i] = make_network(i % 2);
        struct network_set *set = networks_new(items, NETWORKS);
        struct mk_networks plain = {items, NETWORKS};
        for (unsigned i = 0; i < LOOKUPS; i++) {
            struct mk_network other = make_network(i % 2);
            assert_int_equal(networks_contain(set, &other.address), mk_networks_contain(&plain, &other.address));
        }
        networks_free(set);
    }
}

static const struct {
    struct mk_str text;
    const char *message;
} mistakes[] = {
    {MK_STR("10.0.0.0/8\n\n x y"), "nets:3:4: a line has one network"},
    {MK_STR("bad"), "nets:1:1: \"bad\" is not a network, such as 192.0.2.1, 10.0.0.0/8, 2001:db8::/32 or unix"},
    {MK_STR("#\n\t10.0.0.0/33"), "nets:2:2: \"10.0.0.0/33\": the number of bits is from 0 to 32"},
    {MK_STR("10.0.0.0/8\n1\0\0.0"), "nets:2:2: a byte is 0: is this a text file, in UTF-8?"},
    {MK_STR("\0001\0000\000.\000"), "nets:1:1: a byte is 0: is this a text file, in UTF-8?"},
};

static void test_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        struct network_set *set;
        struct mk_buf message;
        mk_buf_init(&message, 1000);
        size_t len = mistakes[i].text.len;
        char *copy = mk_test_guarded(mistakes[i].text.p, len);
        assert_int_equal(networks_read(mk_str(copy, len), MK_STR("nets"), &set, &message), -EINVAL);
        assert_null(set);
        assert_str_equal(mk_buf_str(&message), mistakes[i].message);
        mk_test_unguard(copy, len);
        mk_buf_release(&message);
    }
}

static int load_folder(void *ctx)
{
    (void)ctx;
    struct network_set *set;
    struct mk_buf message;
    mk_buf_init(&message, 1000);
    int err = networks_read(MK_STR("10.0.0.0/8\n::1\n"), MK_STR("nets"), &set, &message);
    mk_buf_release(&message);
    networks_free(set);
    return err;
}

static void test_files_and_memory(void **state)
{
    (void)state;
    struct network_set *set;
    struct mk_buf message;
    mk_buf_init(&message, 1000);
    assert_int_equal(networks_load("/", &set, &message), -EISDIR);
    assert_int_equal(networks_load("/dev/null", &set, &message), -EINVAL);
    assert_int_equal(networks_load("/nowhere/x", &set, &message), -ENOENT);
    mk_buf_release(&message);
    assert_true(mk_test_failing_allocs(load_folder, NULL) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contains),         cmocka_unit_test(test_empty_and_all),
        cmocka_unit_test(test_joins_and_covers), cmocka_unit_test(test_as_one_by_one),
        cmocka_unit_test(test_mistakes),         cmocka_unit_test(test_files_and_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
