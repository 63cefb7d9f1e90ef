// SPDX-License-Identifier: Apache-2.0
/* Addresses and networks: what can be read is printed, and what is printed is read as the same. */
#include <stdint.h>
#include <stdlib.h>

#include <monkey/base/address.h>

static void insist(int condition)
{
    if (!condition)
        abort();
}

static void check_address(struct mk_str text)
{
    struct mk_address address, again;
    char storage[64];
    struct mk_buf out;
    if (mk_address_parse(text, &address) < 0)
        return;
    mk_buf_init_fixed(&out, storage, sizeof(storage));
    mk_address_print(&address, &out);
    insist(out.err == 0 && mk_address_parse(mk_buf_str(&out), &again) == 0);
    insist(mk_address_equal(&address, &again));
}

static void check_network(struct mk_str text)
{
    struct mk_network network;
    struct mk_buf error;
    mk_buf_init(&error, 1 << 20);
    int r = mk_network_parse(text, &network, &error);
    insist((r < 0) == (error.len > 0));
    insist(r < 0 || mk_network_contains(&network, &network.address));
    mk_buf_release(&error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 4096)
        return 0;
    check_address(mk_str((const char *)data, size));
    check_network(mk_str((const char *)data, size));
    return 0;
}
