// SPDX-License-Identifier: Apache-2.0
/*
 * Tells which clients are on this machine (<monkey/kit/local_client.h>).
 */
#include <monkey/kit/local_client.h>

static bool is_local(const struct mk_address *address)
{
    static const uint8_t loopback6[16] = {[15] = 1};
    if (address->family == AF_INET)
        return address->bytes[0] == 127;
    if (address->family == AF_INET6)
        return memcmp(address->bytes, loopback6, sizeof(loopback6)) == 0;
    return address->family == AF_UNIX;
}

bool mk_local_client_names_host(struct mk_request *req)
{
    struct mk_str name = mk_request_host(req);
    struct mk_address address;
    return !name.len || mk_str_ieq(name, MK_STR("localhost")) || mk_address_parse(name, &address) == 0 ||
           mk_host_has_name(mk_request_host_conf(req), name);
}

bool mk_local_client_is_here(struct mk_request *req)
{
    struct mk_address peer = mk_request_peer(req), client = mk_request_client(req);
    return is_local(&peer) && is_local(&client) && (peer.family == AF_UNIX || mk_local_client_names_host(req));
}
