// SPDX-License-Identifier: Apache-2.0
/*
 * Names of files and what clients send about listings. Two names from the input are compared, sorted and written as
 * JSON and Content-Disposition, whose output must be UTF-8 without control characters; the order must be total.
 */
#include "../../plugins/dirlisting/template.h"
#include "../../plugins/dirlisting/listing.h"

#include <monkey/base/utf8.h>

#include <assert.h>
#include <stdlib.h>

enum { NAMES = 3, NAME_BYTES_MAX = 255 };

static int get_sign(int n)
{
    return (n > 0) - (n < 0);
}

static void check_order(const struct mk_str *names)
{
    int ab = get_sign(order_compare_names(names[0], names[1])), bc = get_sign(order_compare_names(names[1], names[2]));
    int ac = get_sign(order_compare_names(names[0], names[2]));
    assert(get_sign(order_compare_names(names[1], names[0])) == -ab);
    assert((ab == 0) == mk_str_eq(names[0], names[1]));
    assert(ab != bc || ac == ab);
}

/* Text has only whole characters, none of which is a control character. */
static void check_text(struct mk_str text, struct mk_str allowed)
{
    while (text.len) {
        const char *at = text.p;
        struct mk_str character = mk_utf8_next(&text);
        assert(character.p == at);
        assert(character.len > 1 || (unsigned char)*at >= 0x20 || (allowed.len && memchr(allowed.p, *at, allowed.len)));
    }
}

static void check_json(struct mk_str name)
{
    struct mk_buf out;
    struct listing_view view = {.path = MK_STR("/")};
    struct listing_entry *e = malloc(sizeof(*e) + name.len + 1);
    *e = (struct listing_entry){.name_len = (uint16_t)name.len, .is_dir = name.len % 2, .bytes = name.len};
    memcpy(e->name, name.p, name.len);
    e->name[name.len] = '\0';
    mk_buf_init(&out, LISTING_TEXT_BYTES);
    json_format.entry(&out, &view, e, 0);
    assert(!out.err);
    check_text(mk_buf_str(&out), MK_STR("\n"));
    mk_buf_release(&out);
    free(e);
}

static void check_disposition(struct mk_str name)
{
    struct mk_buf out;
    mk_buf_init(&out, 4096);
    disposition_write(&out, name, MK_STR("tar"));
    assert(!out.err);
    for (size_t i = 0; i < out.len; i++)
        assert(out.data[i] >= 0x20 && out.data[i] < 0x7f);
    mk_buf_release(&out);
}

static void check_query(struct mk_str text)
{
    struct query q = query_parse(text);
    assert(q.sort >= -1 && q.sort <= LISTING_BY_DATE && q.order >= -1 && q.order <= 1);
    assert(!q.archive.p || (q.archive.p >= text.p && q.archive.p + q.archive.len <= text.p + text.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1); /* its end is known to ASan */
    struct mk_str names[NAMES] = {{copy, 0}, {copy, 0}, {copy, 0}}, rest = {copy, size};
    memcpy(copy, data, size);
    check_query(rest);
    for (size_t i = 0; i < NAMES && rest.len; i++) {
        const char *end = memchr(rest.p, '/', rest.len);
        size_t n = end ? (size_t)(end - rest.p) : rest.len;
        names[i] = mk_str(rest.p, n > NAME_BYTES_MAX ? NAME_BYTES_MAX : n);
        rest = end ? mk_str(end + 1, rest.len - n - 1) : mk_str(rest.p + n, 0);
    }
    check_order(names);
    for (size_t i = 0; i < NAMES; i++) {
        check_json(names[i]);
        check_disposition(names[i]);
    }
    free(copy);
    return 0;
}
