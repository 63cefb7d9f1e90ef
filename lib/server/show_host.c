// SPDX-License-Identifier: Apache-2.0
/*
 * The effective configuration of one host (server/show_host.h).
 */
#include "server/show_host.h"

#include "server/server.h"

#include <errno.h>

/* Appends the name of the host's file. */
static void print_file(const struct mk_host *host, struct mk_buf *out)
{
    struct mk__conf_origin origin = mk__conf_origin(host->set, host->settings, MK__CONF_SECTION, 0);
    origin.line = 0;
    mk__conf_origin_print(origin, out);
}

void mk__show_host(const struct mk_host *host, struct mk_buf *out)
{
    mk_buf_addf(out, "\n# ");
    print_file(host, out);
    mk_buf_addc(out, '\n');
    mk__conf_show(host->set, out);
}

/* Returns whether the last part of the path of the host's file is `name`. */
static bool has_file_name(const struct mk_host *host, struct mk_str name)
{
    char storage[4096];
    struct mk_buf path;
    mk_buf_init_fixed(&path, storage, sizeof(storage));
    print_file(host, &path);
    struct mk_str text = mk_buf_str(&path);
    return name.len && text.len > name.len && text.p[text.len - name.len - 1] == '/' &&
           memcmp(text.p + text.len - name.len, name.p, name.len) == 0;
}

/* A name that a client can ask for comes first, then the name of a file. */
static const struct mk_host *find_host(const struct mk_generation *g, struct mk_str name)
{
    const struct mk_host *host = mk__vhost_find(&g->vhosts, name);
    for (const struct mk_host *each = g->hosts; each && !host; each = each->next)
        if (has_file_name(each, name))
            host = each;
    return host;
}

int mk_server_show_host(const struct mk_server *s, struct mk_str name, struct mk_buf *out)
{
    if (!s->current || !s->current->set)
        return -EINVAL;
    const struct mk_host *host = find_host(s->current, name);
    if (!host)
        return -ENOENT;
    mk__conf_show(s->current->set, out);
    mk__show_host(host, out);
    return out->err;
}
