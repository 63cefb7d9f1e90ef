// SPDX-License-Identifier: Apache-2.0
/* The pure parts of the plugin tls: sizes of records, keys of tickets, names of certificates, what the kernel said. */
#include "testing.h"

#include "plugins/tls/tls.h"

#include <openssl/x509v3.h>

#include <errno.h>

#define ZERO_KEYS ((struct ticket_keys){.n = 0})

/* ── records ── */

TEST(records_grow)
{
    struct record_size p = {0};
    size_t sent = 0, n = 0;
    while ((n = record_size_next(&p, 5000, 1000000)) == RECORD_SMALL_BYTES)
        sent += n;
    assert_int_equal(n, RECORD_LARGE_BYTES);
    assert_true(sent >= RECORD_WARMUP_BYTES && sent < RECORD_WARMUP_BYTES + RECORD_SMALL_BYTES);
    assert_int_equal(record_size_next(&p, 5000, 7), 7);
    assert_int_equal(record_size_next(&p, 5999, 1000000), RECORD_LARGE_BYTES); /* not idle */
    assert_int_equal(record_size_next(&p, 6999, 1000000), RECORD_SMALL_BYTES); /* idle for a second */
    assert_int_equal(record_size_next(&p, 6999, 1000000), RECORD_SMALL_BYTES);
}

TEST(small_answers_warm_up_too)
{
    struct record_size p = {0};
    for (int i = 0; i < 164; i++)
        assert_int_equal(record_size_next(&p, 100, 100), 100);
    assert_int_equal(record_size_next(&p, 100, 20000), RECORD_LARGE_BYTES);
}

/* ── tickets ── */

TEST(keys_rotate)
{
    struct ticket_keys keys = ZERO_KEYS;
    assert_int_equal(ticket_keys_rotate(&keys, 1000, 100), 0);
    assert_int_equal(keys.n, 1);
    struct ticket_key first = keys.items[0];
    assert_int_equal(ticket_keys_rotate(&keys, 1099, 100), 0);
    assert_memory_equal(&keys.items[0], &first, sizeof(first));
    assert_int_equal(ticket_keys_rotate(&keys, 1100, 100), 0);
    assert_int_equal(keys.n, 2);
    assert_memory_not_equal(&keys.items[0], &first, sizeof(first));
    assert_ptr_equal(ticket_keys_find(&keys, first.name), &keys.items[1]);
    struct ticket_key second = keys.items[0];
    assert_int_equal(ticket_keys_rotate(&keys, 1200, 100), 0);
    assert_int_equal(keys.n, 2);
    assert_null(ticket_keys_find(&keys, first.name)); /* its last ticket has expired */
    assert_non_null(ticket_keys_find(&keys, second.name));
    assert_int_equal(ticket_keys_rotate(&keys, 1400, 100), 0); /* no client for so long that all are old */
    assert_int_equal(keys.n, 1);
    assert_null(ticket_keys_find(&keys, second.name));
    ticket_keys_wipe(&keys);
    assert_int_equal(keys.n, 0);
}

TEST(keys_of_a_file)
{
    static const struct {
        size_t bytes;
        const char *sentence; /* NULL: fine */
    } rows[] = {{80, NULL}, {160, NULL}, {640, NULL}, {0, "has 0 bytes"}, {79, "has 79"}, {81, "80"}, {720, "1 to 8"}};
    char content[720], text[200];
    for (size_t i = 0; i < sizeof(content); i++)
        content[i] = (char)(i / 80 + i % 80 * 3);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct ticket_keys keys = ZERO_KEYS;
        struct mk_buf fault;
        mk_buf_init_fixed(&fault, text, sizeof(text));
        assert_int_equal(ticket_keys_parse(&keys, mk_str(content, rows[i].bytes), &fault), !rows[i].sentence);
        if (rows[i].sentence)
            assert_non_null(strstr(mk_buf_cstr(&fault), rows[i].sentence));
        else
            for (unsigned k = 0; k < rows[i].bytes / 80; k++)
                assert_ptr_equal(ticket_keys_find(&keys, (unsigned char *)content + k * 80), &keys.items[k]);
    }
}

/* ── names ── */

static X509 *certificate(const char *names)
{
    X509 *leaf = X509_new();
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names);
    assert_non_null(leaf);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(leaf, extension, -1), 1);
    X509_EXTENSION_free(extension);
    return leaf;
}

TEST(names_that_a_certificate_covers)
{
    static const struct {
        const char *name;
        bool covered;
    } rows[] = {
        {"a.example", true},
        {"A.Example", true},
        {"a.example.", true},
        {"b.a.example", false},
        {"x.wild.example", true},
        {"wild.example", false},
        {"*.wild.example", true},
        {"x.y.wild.example", false},
        {"*.a.example", false},
        {"192.0.2.1", true},
        {"192.0.2.2", false},
        {"192.0.2.a", false},
        {"[2001:db8::1]", true},
        {"[2001:DB8:0::1]", true},
        {"[2001:db8::2]", false},
        {"2001:db8::1", true},
        {"", false},
        {".", false},
        {"[]", false},
        {"evil.example", false},
    };
    X509 *leaf = certificate("DNS:a.example,DNS:*.wild.example,IP:192.0.2.1,IP:2001:db8::1");
    for (size_t i = 0; i < COUNT(rows); i++)
        if (tls_host_covers(leaf, mk_str_c(rows[i].name)) != rows[i].covered)
            fail_msg("%s", rows[i].name);
    assert_false(tls_host_covers(leaf, mk_str("a.example\0.evil", 15)));
    char longest[300];
    memset(longest, 'a', sizeof(longest));
    assert_false(tls_host_covers(leaf, mk_str(longest, sizeof(longest))));
    X509_free(leaf);
}

TEST(the_certificate_of_its_own_making)
{
    X509 *leaf, *again;
    EVP_PKEY *key;
    char group[32];
    assert_int_equal(selfsigned_get(&leaf, &key), 0);
    assert_int_equal(EVP_PKEY_get_group_name(key, group, sizeof(group), NULL), 1);
    assert_string_equal(group, "prime256v1"); /* which is P-256 */
    assert_int_equal(selfsigned_get(&again, &key), 0);
    assert_ptr_equal(leaf, again);
    assert_true(tls_host_covers(leaf, MK_STR("localhost")) && tls_host_covers(leaf, MK_STR("127.0.0.1")) &&
                tls_host_covers(leaf, MK_STR("[::1]")));
    assert_int_equal(X509_check_private_key(leaf, key), 1);
    assert_int_equal(X509_verify(leaf, key), 1);
    assert_true(X509_cmp_current_time(X509_get0_notBefore(leaf)) < 0);
    assert_true(X509_cmp_current_time(X509_get0_notAfter(leaf)) > 0);
    selfsigned_stop();
}

/* ── settings ── */

TEST(strict_transport_security)
{
    static const struct {
        const char *words[4];
        const char *value; /* NULL: refused */
    } rows[] = {
        {{"365d"}, "max-age=31536000"},
        {{"0"}, "max-age=0"},
        {{"60"}, "max-age=60"},
        {{"1h", "includesubdomains"}, "max-age=3600; includeSubDomains"},
        {{"2d", "preload", "includeSubDomains"}, "max-age=172800; includeSubDomains; preload"},
        {{"1y"}, NULL},
        {{"d"}, NULL},
        {{"-1d"}, NULL},
        {{"99999d"}, NULL},
        {{"preload"}, NULL},
        {{"1d", "1d"}, NULL},
        {{NULL}, NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mk_str words[4], hsts = MK_STR_NONE;
        struct mk_arena arena;
        struct mk_buf error;
        char text[200];
        uint32_t n = 0;
        for (; rows[i].words[n]; n++)
            words[n] = mk_str_c(rows[i].words[n]);
        struct mk_conf_value value = {.text = MK_STR(""), .words = words, .n = n};
        mk_arena_init(&arena, NULL, 1024, NULL, 0);
        mk_buf_init_fixed(&error, text, sizeof(text));
        int err = settings_parse_hsts(&value, &hsts, &arena, &error);
        assert_int_equal(err, rows[i].value ? 0 : -EINVAL);
        if (rows[i].value)
            assert_str_equal(hsts, rows[i].value);
        mk_arena_release(&arena);
    }
}

/* ── the kernel ── */

TEST(what_the_kernel_says)
{
    assert_true(ktls_is_supported(0));
    assert_true(ktls_is_supported(ENOTCONN)); /* it knows the protocol, and asks for a connection */
    assert_false(ktls_is_supported(ENOENT));
    assert_false(ktls_is_supported(ENOPROTOOPT));
    assert_false(ktls_is_supported(EPERM));
    assert_int_equal(ktls_option(false), 0);
    assert_int_equal(ktls_option(true) != 0, ktls_is_supported(ktls_probe()));
}
