// SPDX-License-Identifier: Apache-2.0
/*
 * Via of requests (<monkey/kit/via.h>).
 */
#include <monkey/base/escape.h>
#include <monkey/base/hash.h>
#include <monkey/base/random.h>
#include <monkey/kit/via.h>

#include <endian.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES = 23 }; /* of a pseudonym */

static const struct mk_str own_name = MK_STR_INIT("monkey");

uint64_t mk_via_seed(const void *section)
{
    uint64_t seed;
    const uint64_t other[] = {(uintptr_t)section, (uint64_t)getpid()};
    return mk_random(&seed, sizeof(seed)) == 0 ? seed : mk_hash_add(MK_HASH_EMPTY, other, sizeof(other));
}

static uint64_t add_text(uint64_t hash, struct mk_str text)
{
    return mk_hash_add(mk_hash_add(hash, text.p, text.len), " ", 1);
}

uint64_t mk_via_mark(uint64_t seed, struct mk_request *req)
{
    uint64_t hash = add_text(add_text(seed, mk_request_method_name(req)), mk_request_host(req));
    return add_text(add_text(hash, mk_request_path(req)), mk_request_query(req));
}

static struct mk_str print_name(char to[NAME_BYTES], uint64_t mark)
{
    uint64_t bytes = htobe64(mark);
    memcpy(to, own_name.p, own_name.len);
    to[own_name.len] = '-';
    char *end = mk_hex_write(to + own_name.len + 1, &bytes, sizeof(bytes));
    return mk_str(to, (size_t)(end - to));
}

/* Tells whether a name is that of a server like this one, with a mark or as former versions have written it. */
static bool is_own(struct mk_str name, size_t marked_len)
{
    if (name.len == marked_len && name.p[own_name.len] == '-')
        name.len = own_name.len;
    return mk_str_ieq(name, own_name);
}

/* An element is a protocol, a name and perhaps a comment. */
bool mk_via_is_loop(struct mk_str via, uint64_t mark)
{
    char text[NAME_BYTES];
    struct mk_str element, own = via.len ? print_name(text, mark) : MK_STR("");
    unsigned n = 0;
    while (mk_str_next(&via, &element)) {
        mk_str_next_word(&element);
        struct mk_str name = mk_str_next_word(&element);
        if (mk_str_ieq(name, own))
            return true;
        n += is_own(name, own.len);
    }
    return n >= MK_VIA_HOPS_MAX;
}

void mk_via_write(struct mk_buf *out, struct mk_request *req, uint64_t mark)
{
    static const struct mk_str versions[] = {MK_STR_INIT("1.0 "), MK_STR_INIT("1.1 "), MK_STR_INIT("2.0 ")};
    char text[NAME_BYTES];
    unsigned version = mk_request_major(req) > 1 ? 2 : mk_request_minor(req) > 0;
    struct mk_str former = mk_request_header_by_name(req, MK_STR("Via"));
    mk_buf_adds(out, MK_STR("Via: "));
    mk_buf_adds(out, former);
    mk_buf_adds(out, former.len ? MK_STR(", ") : MK_STR(""));
    mk_buf_adds(out, versions[version]);
    mk_buf_adds(out, print_name(text, mark));
    mk_buf_adds(out, MK_STR("\r\n"));
}
