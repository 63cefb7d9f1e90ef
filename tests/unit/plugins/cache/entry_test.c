// SPDX-License-Identifier: Apache-2.0
/* Keys of the file cache, and what tells one version of a file from another. */
#include "testing.h"

#include "plugins/cache/entry.h"

static struct mk_store *store;

static int open_store(void **state)
{
    static const struct mk_store_kind kinds[] = {{.name = "all"}};
    (void)state;
    return mk_store_new(&(struct mk_store_conf){.bytes_max = 1 << 20, .kinds = kinds, .n_kinds = 1}, &store);
}

static int close_store(void **state)
{
    (void)state;
    mk_store_free(store);
    return 0;
}

static struct mk_file_name make_name(const char *name)
{
    return (struct mk_file_name){.device = 1, .inode = 2, .name = mk_str_c(name)};
}

static bool is_same_key(const struct mk_file_name *a, uint64_t a_types, const struct mk_file_name *b, uint64_t b_types)
{
    static struct entry_key x, y;
    assert_true(entry_make_key(&x, store, a, a_types));
    assert_true(entry_make_key(&y, store, b, b_types));
    bool same = x.len == y.len && memcmp(&x.bytes, &y.bytes, x.len) == 0;
    if (same)
        assert_true(x.hash == y.hash);
    return same;
}

/* Whatever decides what a client gets is part of the key. */
TEST(keys)
{
    struct mk_file_name a = make_name("a/b.css");
    assert_true(is_same_key(&a, 7, &(struct mk_file_name){.device = 1, .inode = 2, .name = MK_STR("a/b.css")}, 7));
    assert_false(is_same_key(&a, 7, &a, 8));
    const struct mk_file_name others[] = {
        {.device = 3, .inode = 2, .name = a.name},
        {.device = 1, .inode = 3, .name = a.name},
        {.device = 1, .inode = 2, .mount = 1, .name = a.name},
        {.device = 1, .inode = 2, .name = MK_STR("a/b.cs")},
        {.device = 1, .inode = 2, .name = MK_STR("a/b.csss")},
        {.device = 1, .inode = 2, .name = MK_STR("")},
        {.device = 1, .inode = 2, .name = a.name, .policy = 1},
        {.device = 1, .inode = 2, .name = a.name, .coding = 1},
        {.device = 1, .inode = 2, .name = a.name, .no_ranges = true},
    };
    for (size_t i = 0; i < COUNT(others); i++)
        assert_false(is_same_key(&a, 7, &others[i], 7));
    for (size_t i = 0; i < COUNT(others); i++)
        for (size_t j = 0; j < i; j++)
            assert_false(is_same_key(&others[i], 7, &others[j], 7));
}

/* Which bytes are in memory behind the name does not matter. */
TEST(names_of_all_lengths)
{
    static char long_name[5000];
    static struct entry_key key;
    memset(long_name, 'x', sizeof(long_name));
    struct mk_file_name name = make_name("");
    for (size_t len = 0; len <= sizeof(key.bytes.name); len += len < 40 ? 1 : 97) {
        name.name = mk_str(long_name, len);
        memset(&key, 0xaa, sizeof(key));
        assert_true(entry_make_key(&key, store, &name, 1));
        uint64_t hash = key.hash;
        memset(&key, 0x55, sizeof(key));
        assert_true(entry_make_key(&key, store, &name, 1));
        assert_true(key.hash == hash);
    }
    name.name = mk_str(long_name, sizeof(key.bytes.name) + 1);
    assert_false(entry_make_key(&key, store, &name, 1));
}

TEST(identities)
{
    struct stat st = {.st_dev = 1, .st_ino = 2, .st_size = 3, .st_mtim = {4, 5}, .st_ctim = {6, 7}};
    struct file_identity first = entry_identify(&st);
    struct stat others[] = {st, st, st, st, st, st, st};
    others[0].st_dev++;
    others[1].st_ino++;
    others[2].st_size++;
    others[3].st_mtim.tv_sec++;
    others[4].st_mtim.tv_nsec++;
    others[5].st_ctim.tv_sec++;
    others[6].st_ctim.tv_nsec++;
    struct file_identity again = entry_identify(&st);
    assert_true(entry_is_same(&first, &again));
    for (size_t i = 0; i < COUNT(others); i++) {
        struct file_identity other = entry_identify(&others[i]);
        assert_false(entry_is_same(&first, &other));
    }
}

TEST_FILE(open_store, close_store)
