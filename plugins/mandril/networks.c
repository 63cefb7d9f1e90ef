// SPDX-License-Identifier: Apache-2.0
/*
 * The set of networks: a prefix tree whose nodes skip bits that all networks below them share, and branch
 * by as many bits at once as half of their slots are used. The networks are sorted, and those that others contain are
 * dropped, so that no address is in two of them. 10,000 networks need two or three steps.
 *
 *     bits 0-3 ─┬─ 0000: 10.0.0.0/8         an address in a network takes the same slots as the network, which is
 *               ├─ 0001: nothing            compared as a whole at the end
 *               └─ 1100: bit 18 ─┬─ 192.0.2.0/24
 *                                └─ 192.0.34.0/24
 */
#include "networks.h"

#include <monkey/base/arena.h>
#include <monkey/base/file.h>

#include <errno.h>
#include <stdlib.h>

enum { KEY_BITS = 128, BRANCH_MAX = 16, NODES_EACH = 8 };
#define NOTHING UINT32_MAX

/* A network, or an address, with its bits from the first one on; IPv4 uses the first 32. */
struct prefix {
    uint64_t high, low;
    uint8_t bits;
};

/* Branches by `branch` bits from `bit` on; 0: a leaf. */
struct tree_node {
    uint32_t first; /* the node of the first slot; of a leaf: the index of its network, or NOTHING */
    uint8_t bit, branch;
};

struct prefix_tree {
    struct prefix *prefixes;
    struct tree_node *nodes; /* the first is the root */
    uint32_t n, n_nodes;
};

struct network_set {
    struct prefix_tree v4, v6;
    size_t room; /* for so many networks */
    bool unix_sockets;
    struct prefix storage[];
};

static uint64_t read_u64(const uint8_t *bytes)
{
    uint64_t n;
    memcpy(&n, bytes, sizeof(n));
    return __builtin_bswap64(n);
}

static struct prefix make_prefix(const struct mk_address *address, uint8_t bits)
{
    return (struct prefix){read_u64(address->bytes), read_u64(address->bytes + 8), bits};
}

/* Returns `n` bits of the key from `bit` on; all of them are in one half of it. */
static uint32_t get_bits(const struct prefix *p, unsigned bit, unsigned n)
{
    uint64_t half = bit < 64 ? p->high : p->low;
    return (uint32_t)(half << bit % 64 >> (64 - n));
}

/* Returns the number of leading bits that both have in common, at most 128. */
static unsigned count_common_bits(const struct prefix *a, const struct prefix *b)
{
    uint64_t high = a->high ^ b->high, low = a->low ^ b->low;
    return high ? (unsigned)__builtin_clzll(high) : low ? 64 + (unsigned)__builtin_clzll(low) : KEY_BITS;
}

/* Returns whether `inner`, a network or an address, is within `outer`. */
static bool is_within(const struct prefix *outer, const struct prefix *inner)
{
    return inner->bits >= outer->bits && count_common_bits(outer, inner) >= outer->bits;
}

/* ── building ── */

static int compare_prefixes(const void *first, const void *second)
{
    const struct prefix *a = first, *b = second;
    if (a->high != b->high)
        return a->high < b->high ? -1 : 1;
    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    return a->bits - b->bits;
}

/* Returns whether two networks are the halves of a larger one. */
static bool are_halves(const struct prefix *a, const struct prefix *b)
{
    return a->bits == b->bits && a->bits > 0 && count_common_bits(a, b) == (unsigned)a->bits - 1;
}

/* Sorts the networks, drops those within others and joins halves. */
static void normalize_prefixes(struct prefix_tree *t)
{
    uint32_t n = 0;
    qsort(t->prefixes, t->n, sizeof(*t->prefixes), compare_prefixes);
    for (uint32_t i = 0; i < t->n; i++) {
        if (n && is_within(&t->prefixes[n - 1], &t->prefixes[i]))
            continue;
        t->prefixes[n++] = t->prefixes[i];
        for (; n > 1 && are_halves(&t->prefixes[n - 2], &t->prefixes[n - 1]); n--)
            t->prefixes[n - 2].bits--;
    }
    t->n = n;
}

/* Returns the number of slots that the prefixes `from` to `to` begin in, if a node branches by `n` bits. */
static uint32_t count_slots(const struct prefix_tree *t, uint32_t from, uint32_t to, unsigned bit, unsigned n)
{
    uint32_t slots = 1;
    for (uint32_t i = from + 1; i < to; i++)
        slots += get_bits(&t->prefixes[i], bit, n) != get_bits(&t->prefixes[i - 1], bit, n);
    return slots;
}

/* Returns by how many bits a node branches: as many as half of its slots are used, and at least one. */
static unsigned choose_branch(const struct prefix_tree *t, uint32_t from, uint32_t to, unsigned bit)
{
    unsigned n = 1, most = 64 - bit % 64;
    most = most < BRANCH_MAX ? most : BRANCH_MAX;
    while (n < most && (uint64_t)(to - from) * 2 >= 2U << n && count_slots(t, from, to, bit, n + 1) * 2 >= 2U << n)
        n++;
    return n;
}

/* Returns the end of the prefixes from `from` on that are in the same slot as the first. */
static uint32_t find_slot_end(const struct prefix_tree *t, uint32_t from, uint32_t to, const struct tree_node *node)
{
    uint32_t slot = get_bits(&t->prefixes[from], node->bit, node->branch), i = from + 1;
    while (i < to && get_bits(&t->prefixes[i], node->bit, node->branch) == slot)
        i++;
    return i;
}

/* Makes `*node` the top of the prefixes `from` to `to`. Each call below it has fewer bits left: 128 deep at most. */
static void make_node(struct prefix_tree *t, struct tree_node *node, uint32_t from, uint32_t to)
{
    *node = (struct tree_node){.first = from};
    if (to - from == 1)
        return;
    node->bit = (uint8_t)count_common_bits(&t->prefixes[from], &t->prefixes[to - 1]);
    node->branch = (uint8_t)choose_branch(t, from, to, node->bit);
    node->first = t->n_nodes;
    struct tree_node *slots = &t->nodes[t->n_nodes];
    unsigned end = node->bit + node->branch;
    t->n_nodes += 1U << node->branch;
    for (uint32_t slot = 0; slot < 1U << node->branch;) {
        bool used = from < to && get_bits(&t->prefixes[from], node->bit, node->branch) == slot;
        uint32_t next = used ? find_slot_end(t, from, to, node) : from;
        if (!used) {
            slots[slot++] = (struct tree_node){.first = NOTHING};
        } else if (t->prefixes[from].bits >= end) {
            make_node(t, &slots[slot++], from, next);
        } else { /* a network of several slots */
            for (uint32_t n = 1U << (end - t->prefixes[from].bits); n; n--)
                slots[slot++] = (struct tree_node){.first = from};
        }
        from = next;
    }
}

static void build_tree(struct prefix_tree *t)
{
    normalize_prefixes(t);
    t->n_nodes = 1;
    if (t->n)
        make_node(t, &t->nodes[0], 0, t->n);
}

static size_t count_bytes(size_t room)
{
    return sizeof(struct network_set) + room * sizeof(struct prefix) +
           (room + 1) * 2 * NODES_EACH * sizeof(struct tree_node);
}

struct network_set *networks_new(const struct mk_network *items, size_t n)
{
    size_t v4 = 0;
    struct network_set *set = mk_account_alloc(NULL, count_bytes(n));
    if (!set)
        return NULL;
    for (size_t i = 0; i < n; i++)
        v4 += items[i].address.family == AF_INET;
    struct tree_node *nodes = (struct tree_node *)(void *)(set->storage + n);
    *set = (struct network_set){.room = n,
                                .v4 = {.prefixes = set->storage, .nodes = nodes},
                                .v6 = {.prefixes = set->storage + v4, .nodes = nodes + (v4 + 1) * NODES_EACH}};
    for (size_t i = 0; i < n; i++) {
        struct prefix_tree *t = items[i].address.family == AF_INET ? &set->v4 : &set->v6;
        if (items[i].address.family == AF_UNIX)
            set->unix_sockets = true;
        else
            t->prefixes[t->n++] = make_prefix(&items[i].address, items[i].bits);
    }
    build_tree(&set->v4);
    build_tree(&set->v6);
    return set;
}

void networks_free(struct network_set *set)
{
    if (set)
        mk_account_free(NULL, set, count_bytes(set->room));
}

size_t networks_count(const struct network_set *set)
{
    return (size_t)set->v4.n + set->v6.n + set->unix_sockets;
}

/* ── looking up ── */

/* Returns the leaf for a key; counts the nodes that were read. */
static const struct tree_node *find_leaf(const struct prefix_tree *t, const struct prefix *key, unsigned *ret_nodes)
{
    const struct tree_node *node = t->nodes;
    *ret_nodes = 1;
    for (; node->branch; ++*ret_nodes)
        node = &t->nodes[node->first + get_bits(key, node->bit, node->branch)];
    return node;
}

static bool find_prefix(const struct prefix_tree *t, const struct prefix *key)
{
    unsigned nodes;
    if (!t->n)
        return false;
    const struct tree_node *leaf = find_leaf(t, key, &nodes);
    return leaf->first != NOTHING && is_within(&t->prefixes[leaf->first], key);
}

bool networks_contain(const struct network_set *set, const struct mk_address *address)
{
    struct prefix key = make_prefix(address, KEY_BITS);
    switch (address->family) {
    case AF_INET:
        return find_prefix(&set->v4, &key);
    case AF_INET6:
        return find_prefix(&set->v6, &key);
    default:
        return address->family == AF_UNIX && set->unix_sockets;
    }
}

unsigned networks_count_nodes(const struct network_set *set, const struct mk_address *address)
{
    const struct prefix_tree *t = address->family == AF_INET ? &set->v4 : &set->v6;
    struct prefix key = make_prefix(address, KEY_BITS);
    unsigned nodes = 0;
    if (t->n)
        find_leaf(t, &key, &nodes);
    return nodes;
}

static bool covers_tree(const struct prefix_tree *t, const struct prefix_tree *other)
{
    uint32_t i = 0;
    while (i < other->n && find_prefix(t, &other->prefixes[i]))
        i++;
    return i == other->n;
}

bool networks_cover(const struct network_set *set, const struct network_set *other)
{
    return covers_tree(&set->v4, &other->v4) && covers_tree(&set->v6, &other->v6) &&
           (set->unix_sockets || !other->unix_sockets);
}

/* ── lines ── */

static const char blanks[] = " \t\r";

/* Cuts the next line off `text`. Returns false after the last one. */
static bool split_line(struct mk_str *text, struct mk_str *ret_line)
{
    if (!text->len)
        return false;
    *ret_line = mk_str_split(text, '\n');
    return true;
}

/* Returns the line without its comment and the blanks around it. */
static struct mk_str trim_line(struct mk_str line)
{
    line = mk_str_strip_end(mk_str_until(line, "#"), blanks);
    while (line.len && mk_is_one_of(line.p[0], blanks))
        line = mk_str_after(line, 1);
    return line;
}

/* Returns the offset of the second word of a line; 0 if it has only one. */
static size_t find_second_word(struct mk_str word)
{
    size_t i = mk_str_until(word, blanks).len;
    while (i < word.len && mk_is_one_of(word.p[i], blanks))
        i++;
    return i < word.len ? i : 0;
}

/* Reads the network of a line. Returns 0, or -EINVAL with a sentence and the offset of the mistake. */
static int read_network(struct mk_str word, struct mk_network *ret, size_t *ret_offset, struct mk_buf *message)
{
    const char *nul = memchr(word.p, '\0', word.len);
    *ret_offset = nul ? (size_t)(nul - word.p) : find_second_word(word);
    if (nul) {
        mk_buf_adds(message, MK_STR("a byte is 0: is this a text file, in UTF-8?"));
        return -EINVAL;
    }
    if (!*ret_offset)
        return mk_network_parse(word, ret, message);
    mk_buf_adds(message, MK_STR("a line has one network"));
    return -EINVAL;
}

/* Adds the networks of a text to `networks`. */
static int read_lines(struct mk_str text, struct mk_str name, struct mk_buf *networks, struct mk_buf *message)
{
    struct mk_str line;
    struct mk_network network;
    size_t offset;
    for (unsigned n = 1; split_line(&text, &line); n++) {
        struct mk_str word = trim_line(line);
        if (!word.len)
            continue;
        MK_BUF_ON_STACK(error, 256);
        int err = read_network(word, &network, &offset, &error);
        if (err < 0) {
            mk_buf_addf(message, "%.*s:%u:%u: ", MK_STR_ARG(name), n, (unsigned)(word.p - line.p + offset) + 1);
            mk_buf_adds(message, mk_buf_str(&error));
            return err;
        }
        mk_buf_add(networks, &network, sizeof(network));
        if (networks->err)
            return networks->err == -ENOMEM ? -ENOMEM : -EFBIG;
    }
    return 0;
}

int networks_read(struct mk_str text, struct mk_str name, struct network_set **ret, struct mk_buf *message)
{
    struct mk_buf networks;
    *ret = NULL;
    mk_buf_init(&networks, NETWORKS_MAX * sizeof(struct mk_network));
    int err = read_lines(text, name, &networks, message);
    if (err == -EFBIG)
        mk_buf_addf(message, "%.*s has more than %d networks", MK_STR_ARG(name), NETWORKS_MAX);
    if (err == 0) {
        *ret = networks_new((const struct mk_network *)(const void *)networks.data,
                            networks.len / sizeof(struct mk_network));
        err = *ret ? 0 : -ENOMEM;
    }
    mk_buf_release(&networks);
    return err;
}

/* ── files ── */

int networks_load(const char *path, struct network_set **ret, struct mk_buf *message)
{
    struct mk_arena arena;
    struct mk_file_bytes text;
    *ret = NULL;
    mk_arena_init(&arena, NULL, 2 * NETWORKS_BYTES_MAX, NULL, 0);
    int err = mk_file_read(path, NETWORKS_BYTES_MAX, &arena, &text);
    if (err < 0) {
        mk_buf_addf(message, "%s ", path);
        mk_file_add_read_error(message, err, NETWORKS_BYTES_MAX);
    } else {
        err = networks_read(mk_str(text.data, text.len), mk_str_c(path), ret, message);
    }
    mk_arena_release(&arena);
    return err;
}
