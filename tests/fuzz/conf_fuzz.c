// SPDX-License-Identifier: Apache-2.0
/*
 * The configuration: bytes as a file of the server (first byte even) or of a host, in which further hosts may begin.
 * Whatever they are, each mistake is counted and printed; and what is read without one can be listed, read again and
 * listed the same. Texts in memory include nothing, so no file is touched.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "../unit/core/conf/sample.h"
#include "conf/internal.h"
#include "conf/scan.h"

enum { HOSTS_MAX = 30 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* The set of the file, and those of the hosts within it. */
struct sets {
    struct mk__conf *conf;
    struct mk__conf_set *items[HOSTS_MAX + 1];
    unsigned n;
};

static struct mk__conf_set *begin_host(void *ctx)
{
    struct sets *s = ctx;
    return s->n <= HOSTS_MAX ? s->items[s->n++] = mk__conf_set_new(s->conf, MK_CONF_SCOPE_HOST) : NULL;
}

static void check_set(struct sets *s, struct mk__conf_set *set, struct mk_buf *shown)
{
    if (set != s->items[0] && s->items[0]->scope == MK_CONF_SCOPE_SERVER)
        mk__conf_set_defaults(s->conf, set, s->items[0]);
    mk__conf_check(s->conf, set);
    mk__conf_show(set, shown);
    check(!shown->err);
}

static unsigned load(enum mk_conf_scope scope, struct mk_str text, struct mk_buf *shown)
{
    struct mk__conf *conf = sample_new();
    struct sets sets = {.conf = conf, .items = {mk__conf_set_new(conf, scope)}, .n = 1};
    struct mk_buf problems;

    mk_buf_init(&problems, 1 << 20);
    mk__conf_on_host(conf, &(struct mk__conf_hosts){"HOST", "ServerName", begin_host, &sets});
    int r = mk__conf_read_text(conf, sets.items[0], "t", text);
    unsigned errors = mk__conf_errors(conf) + (r == -ENOMEM);
    check((r == 0) == (errors == 0));
    for (unsigned i = 0; i < sets.n; i++)
        check_set(&sets, sets.items[i], shown);
    mk__conf_diagnostics(conf, &problems);
    check(!problems.err && (mk__conf_errors(conf) == 0 || problems.len > 0));
    mk_buf_release(&problems);
    mk__conf_free(conf);
    return errors;
}

/* Quotes and absolute paths may make a line longer than a file may have it. */
static bool fits(struct mk_str text)
{
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        len = text.p[i] == '\n' ? 0 : len + 1;
        if (len > MK__SCAN_LINE_MAX)
            return false;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_buf first, second, third;

    if (size == 0)
        return 0;
    enum mk_conf_scope scope = data[0] % 2 ? MK_CONF_SCOPE_HOST : MK_CONF_SCOPE_SERVER;
    mk_buf_init(&first, 16 << 20);
    mk_buf_init(&second, 16 << 20);
    mk_buf_init(&third, 16 << 20);
    if (load(scope, mk_str((const char *)data + 1, size - 1), &first) == 0 && fits(mk_buf_str(&first))) {
        check(load(scope, mk_buf_str(&first), &second) == 0);
        check(!fits(mk_buf_str(&second)) || load(scope, mk_buf_str(&second), &third) == 0);
        check(third.len == 0 || mk_str_eq(mk_buf_str(&second), mk_buf_str(&third)));
    }
    mk_buf_release(&first);
    mk_buf_release(&second);
    mk_buf_release(&third);
    return 0;
}
