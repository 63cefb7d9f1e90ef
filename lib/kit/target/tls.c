// SPDX-License-Identifier: Apache-2.0
/*
 * Opens settings for connections with TLS (<monkey/kit/target.h>).
 */
#include <monkey/kit/target.h>

#include <errno.h>

enum { ERROR_BYTES = 1024 };

/* Returns the offset of the key that a field of the transport's settings comes from. */
static size_t find_key(const struct mk_target_tls_keys *keys, size_t field)
{
    const struct {
        size_t field, key;
    } rows[] = {
        {offsetof(struct mk_transport_client_conf, ca_file), keys->ca},
        {offsetof(struct mk_transport_client_conf, certificate), keys->certificate},
        {offsetof(struct mk_transport_client_conf, key), keys->key},
    };
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (rows[i].field == field && rows[i].key)
            return rows[i].key;
    return keys->server_name;
}

int mk_target_open_tls(struct mk_host *host, const void *section, const struct mk_target_tls_keys *keys,
                       const struct mk_transport_client_conf *conf, const struct mk_transport **ret_transport,
                       struct mk_transport_client **ret_client)
{
    static const struct mk_str protocol = MK_STR_INIT("http/1.1");
    struct mk_transport_client_conf settings = *conf;
    size_t field = 0;
    settings.protocols = &protocol;
    settings.n_protocols = 1;
    MK_BUF_ON_STACK(error, ERROR_BYTES);
    const struct mk_transport *tls = mk_generation_transport(mk_host_generation(host), "tls", &error);
    int err = tls ? tls->client_open(&settings, ret_client, &field, &error) : -EINVAL;
    if (err == -EINVAL)
        mk_host_error(host, section, tls ? find_key(keys, field) : keys->name, 0, "%s", mk_buf_cstr(&error));
    if (err == 0)
        *ret_transport = tls;
    return err;
}
