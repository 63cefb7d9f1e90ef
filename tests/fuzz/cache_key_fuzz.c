// SPDX-License-Identifier: Apache-2.0
/*
 * Keys of the file cache: two names have the same key only if all is the same that decides what a client gets. The
 * first byte tells what the second name has in common with the first, the next how often the bytes of the names are
 * repeated; numbers follow, the length of the first name, and both names.
 */
#include "../../plugins/cache/entry.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES_MAX = 5000, REPEATS_MAX = 64 };

/* What is the same of both names. */
enum same {
    SAME_DEVICE = 1,
    SAME_MOUNT = 2,
    SAME_INODE = 4,
    SAME_TYPES = 8,
    SAME_POLICY = 16,
    SAME_CODING = 32,
    SAME_RANGES = 64,
    SAME_NAME = 128
};

struct input {
    const uint8_t *p;
    size_t left;
};

struct tuple {
    struct mk_file_name name;
    uint64_t types;
    char bytes[NAME_BYTES_MAX];
};

static struct mk_store *store;
static struct tuple a, b;
static struct entry_key keys[3];

static void require(bool right)
{
    if (!right)
        abort();
}

/* Reads up to 8 bytes; those behind the end are 0. */
static uint64_t read_number(struct input *in, size_t bytes)
{
    uint64_t n = 0;
    size_t taken = bytes < in->left ? bytes : in->left;
    if (taken)
        memcpy(&n, in->p, taken);
    in->p += taken;
    in->left -= taken;
    return n;
}

static void read_tuple(struct input *in, struct tuple *t)
{
    t->name = (struct mk_file_name){.device = read_number(in, 8), .inode = read_number(in, 8)};
    t->name.mount = read_number(in, 8);
    t->types = read_number(in, 8);
    t->name.policy = (uint8_t)read_number(in, 1);
    t->name.coding = (uint8_t)read_number(in, 1);
    t->name.no_ranges = read_number(in, 1) & 1;
}

static void read_name(struct input *in, struct tuple *t, size_t len, unsigned repeats)
{
    size_t n = 0, taken = len < in->left ? len : in->left;
    for (unsigned i = 0; taken && i < repeats && n + taken <= sizeof(t->bytes); i++, n += taken)
        memcpy(t->bytes + n, in->p, taken);
    in->p += taken;
    in->left -= taken;
    t->name.name = mk_str(t->bytes, n);
}

static void copy_same(unsigned same)
{
    if (same & SAME_DEVICE)
        b.name.device = a.name.device;
    if (same & SAME_MOUNT)
        b.name.mount = a.name.mount;
    if (same & SAME_INODE)
        b.name.inode = a.name.inode;
    if (same & SAME_TYPES)
        b.types = a.types;
    if (same & SAME_POLICY)
        b.name.policy = a.name.policy;
    if (same & SAME_CODING)
        b.name.coding = a.name.coding;
    if (same & SAME_RANGES)
        b.name.no_ranges = a.name.no_ranges;
    if (same & SAME_NAME)
        b.name.name = a.name.name;
}

static bool is_same_tuple(void)
{
    return a.name.device == b.name.device && a.name.mount == b.name.mount && a.name.inode == b.name.inode &&
           a.types == b.types && a.name.policy == b.name.policy && a.name.coding == b.name.coding &&
           a.name.no_ranges == b.name.no_ranges && mk_str_eq(a.name.name, b.name.name);
}

/* Makes a key in memory that has other bytes before, and checks that all of the name can be read from it. */
static bool make_key(struct entry_key *key, const struct tuple *t, int filler)
{
    memset(key, filler, sizeof(*key));
    bool fits = entry_make_key(key, store, &t->name, t->types);
    require(fits == (t->name.name.len <= sizeof(key->bytes.name)));
    if (!fits)
        return false;
    require(key->len == sizeof(key->bytes) - sizeof(key->bytes.name) + t->name.name.len);
    require(key->bytes.device == t->name.device && key->bytes.inode == t->name.inode);
    require(key->bytes.mount == t->name.mount && key->bytes.types == t->types);
    require(key->bytes.policy == t->name.policy && key->bytes.coding == t->name.coding);
    require(key->bytes.no_ranges == t->name.no_ranges);
    require(mk_str_eq(mk_str(key->bytes.name, key->bytes.name_len), t->name.name));
    return true;
}

static bool is_same_key(const struct entry_key *x, const struct entry_key *y)
{
    return x->len == y->len && memcmp(&x->bytes, &y->bytes, x->len) == 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const struct mk_store_kind kinds[] = {{.name = "all"}};
    (void)argc;
    (void)argv;
    require(mk_store_new(&(struct mk_store_conf){.bytes_max = MK_STORE_BYTES_MIN, .kinds = kinds, .n_kinds = 1},
                         &store) == 0);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    unsigned same = (unsigned)read_number(&in, 1), repeats = (unsigned)read_number(&in, 1) % REPEATS_MAX + 1;
    read_tuple(&in, &a);
    read_tuple(&in, &b);
    size_t len = read_number(&in, 2);
    read_name(&in, &a, len, repeats);
    read_name(&in, &b, in.left, repeats);
    copy_same(same);
    bool both = make_key(&keys[0], &a, 0xaa);
    both = make_key(&keys[1], &b, 0x55) && both;
    if (!both)
        return 0;
    require(is_same_key(&keys[0], &keys[1]) == is_same_tuple());
    require(!is_same_tuple() || keys[0].hash == keys[1].hash);
    require(make_key(&keys[2], &a, 0x55) && is_same_key(&keys[0], &keys[2]) && keys[0].hash == keys[2].hash);
    return 0;
}
