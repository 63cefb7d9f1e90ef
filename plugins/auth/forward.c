// SPDX-License-Identifier: Apache-2.0
/*
 * Opens sections with `Type Forward` (forward.h).
 */
#include "forward.h"

#include <monkey/http_client.h>
#include <monkey/via.h>

static int open_tls(struct forward *f, struct mk_host *host, const struct auth_conf *conf)
{
    const struct forward_conf *c = &conf->forward;
    size_t to = offsetof(struct auth_conf, forward.to);
    const struct mk_target_tls_keys keys = {
        .name = to,
        .server_name = c->tls_name.len ? offsetof(struct auth_conf, forward.tls_name) : to,
        .ca = offsetof(struct auth_conf, forward.tls_ca),
    };
    const struct mk_transport_client_conf settings = {.server_name = c->tls_name.len ? c->tls_name : c->to.dial->host,
                                                      .ca_file = c->tls_ca,
                                                      .skip_verify = !c->tls_verify};
    return mk_target_open_tls(host, conf, &keys, &settings, &f->transport, &f->settings);
}

int forward_open(struct forward *f, struct mk_host *host, const struct auth_conf *conf,
                 struct mk_stats_registry *registry)
{
    *f = (struct forward){.conf = &conf->forward,
                          .transport = &mk_transport_plain,
                          .registry = registry,
                          .via_mark = mk_via_seed(f)};
    if (!f->conf->to.dial)
        return 0; /* reported */
    mk_target_find_group(&f->conf->to, host, conf, offsetof(struct auth_conf, forward.to), &f->upstreams, &f->group);
    int err = mk_target_stats_open(&f->stats, registry, &f->conf->to, f->upstreams, f->group);
    return err == 0 && f->conf->to.is_tls ? open_tls(f, host, conf) : err;
}

void forward_close(struct forward *f)
{
    if (f->transport && f->transport->client_close)
        f->transport->client_close(f->settings);
    f->settings = NULL;
    mk_target_stats_close(&f->stats, f->registry);
}
