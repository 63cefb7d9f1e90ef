// SPDX-License-Identifier: Apache-2.0
/*
 * Opens sections with `Type Forward` (forward.h).
 */
#include "forward.h"

#include <monkey/http_client.h>

#include <errno.h>

enum { ERROR_BYTES = 1024 };

/* Returns the offset of the key that a field of the transport's settings comes from. */
static size_t find_key(const struct auth_conf *conf, size_t field)
{
    if (field == offsetof(struct mk_transport_client_conf, ca_file))
        return offsetof(struct auth_conf, forward.tls_ca);
    return conf->forward.tls_name.len ? offsetof(struct auth_conf, forward.tls_name)
                                      : offsetof(struct auth_conf, forward.to);
}

static int open_tls(struct forward *f, struct mk_host *host, const struct auth_conf *conf)
{
    static const struct mk_str protocol = MK_STR("http/1.1");
    const struct forward_conf *c = &conf->forward;
    const struct mk_transport_client_conf settings = {.server_name = c->tls_name.len ? c->tls_name : c->to.dial->host,
                                                      .ca_file = c->tls_ca,
                                                      .protocols = &protocol,
                                                      .n_protocols = 1,
                                                      .skip_verify = !c->tls_verify};
    char text[ERROR_BYTES];
    struct mk_buf error;
    size_t field = 0, key = offsetof(struct auth_conf, forward.to);
    mk_buf_init_fixed(&error, text, sizeof(text));
    f->transport = mk_generation_transport(mk_host_generation(host), "tls", &error);
    int err = f->transport ? f->transport->client_open(&settings, &f->settings, &field, &error) : -EINVAL;
    if (err == -EINVAL)
        mk_host_error(host, conf, f->transport ? find_key(conf, field) : key, 0, "%s", mk_buf_cstr(&error));
    return err;
}

/* A name without dot and port that is a group's is the group. */
static void find_group(struct forward *f, struct mk_host *host, const struct auth_conf *conf)
{
    struct mk_str name = f->conf->to.authority;
    const struct mk_generation *g = mk_host_generation(host);
    if (!f->conf->to.dial->port || memchr(name.p, '.', name.len) || memchr(name.p, ':', name.len))
        return;
    f->upstreams = mk_generation_upstreams(g);
    f->group = f->upstreams ? f->upstreams->find(g, name) : NULL;
    if (!f->group && !mk_str_ieq(name, MK_STR("localhost")))
        mk_host_warn(host, conf, offsetof(struct auth_conf, forward.to), 0,
                     "no [UPSTREAM] has the name \"%.*s\", which is looked up as that of a server", MK_STR_ARG(name));
}

int forward_open(struct forward *f, struct mk_host *host, const struct auth_conf *conf)
{
    *f = (struct forward){.conf = &conf->forward, .transport = &mk_transport_plain};
    if (!f->conf->to.dial)
        return 0; /* reported */
    find_group(f, host, conf);
    return f->conf->to.is_tls ? open_tls(f, host, conf) : 0;
}

void forward_close(struct forward *f)
{
    if (f->transport && f->transport->client_close)
        f->transport->client_close(f->settings);
    f->settings = NULL;
}
