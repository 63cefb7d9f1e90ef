// SPDX-License-Identifier: Apache-2.0
/*
 * What the program prints about a configuration (<monkey/monkey.h>): its hosts, and its problems without those of
 * another one that is known.
 */
#include "server/server.h"

#include <errno.h>

/* ── hosts ── */

/* Appends the name of the host's file. */
static void print_file(const struct mk_host *host, struct mk_buf *out)
{
    struct mk__conf_origin origin = mk__conf_origin(host->set, host->settings, MK__CONF_SECTION, 0);
    origin.line = 0;
    mk__conf_origin_print(origin, out);
}

/* Appends an empty line, the host's file as a comment, and the effective values of its sections. */
static void show_host(const struct mk_host *host, struct mk_buf *out)
{
    mk_buf_addf(out, "\n# ");
    print_file(host, out);
    mk_buf_addc(out, '\n');
    mk__conf_show(host->set, out);
}

/* Returns whether the last part of the path of the host's file is `name`. */
static bool has_file_name(const struct mk_host *host, struct mk_str name)
{
    MK_BUF_ON_STACK(path, 4096);
    print_file(host, &path);
    struct mk_str text = mk_buf_str(&path);
    return name.len && text.len > name.len && text.p[text.len - name.len - 1] == '/' &&
           memcmp(text.p + text.len - name.len, name.p, name.len) == 0;
}

/* A name that a client can ask for comes first, then the name of a file. */
static const struct mk_host *find_host(const struct mk_generation *g, struct mk_str name)
{
    const struct mk_host *host = NULL;
    for (const struct mk_host *each = g->hosts; each && !host; each = each->next)
        host = mk_host_has_name(each, name) ? each : NULL;
    for (const struct mk_host *each = g->hosts; each && !host; each = each->next)
        host = has_file_name(each, name) ? each : NULL;
    return host;
}

void mk_server_show(const struct mk_server *s, struct mk_buf *out)
{
    if (!s->current || !s->current->set)
        return;
    mk__conf_show(s->current->set, out);
    for (const struct mk_host *host = s->current->hosts; host; host = host->next)
        show_host(host, out);
}

void mk_server_show_file(const struct mk_server *s, struct mk_buf *out)
{
    if (!s->current || !s->current->set)
        return;
    mk__conf_show_given(s->current->set, out);
    for (const struct mk_host *host = s->current->hosts; host; host = host->next) {
        mk_buf_addc(out, '\n');
        mk__conf_show_given(host->set, out);
    }
}

int mk_server_show_host(const struct mk_server *s, struct mk_str name, struct mk_buf *out)
{
    if (!s->current || !s->current->set)
        return -EINVAL;
    const struct mk_host *host = find_host(s->current, name);
    if (!host)
        return -ENOENT;
    mk__conf_show(s->current->set, out);
    show_host(host, out);
    return out->err;
}

/* ── problems ── */

static const struct mk_generation *get_generation(const struct mk_server *s)
{
    return !s ? NULL : s->failed ? s->failed : s->current;
}

struct mk_problem_counts mk_server_list_problems(const struct mk_server *s, const struct mk_server *known,
                                                 unsigned flags, struct mk_buf *out)
{
    const struct mk_generation *g = get_generation(s), *k = get_generation(known);
    struct mk__conf_list_format form = {.json = flags & MK_PROBLEMS_JSON,
                                        .as_warnings = flags & MK_PROBLEMS_AS_WARNINGS};
    struct mk__conf_counts count = {0, 0};
    if (g && g->load_conf)
        mk__conf_list_diagnostics(g->load_conf, k ? k->load_conf : NULL, form, out, &count);
    if (g && g->conf)
        mk__conf_list_diagnostics(g->conf, k ? k->conf : NULL, form, out, &count);
    return (struct mk_problem_counts){count.errors, count.warnings};
}
