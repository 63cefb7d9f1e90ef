// SPDX-License-Identifier: Apache-2.0
/* Names of Listen lines in a file of hosts: the first line is the name, the others are the file. */
#include <stdint.h>
#include <stdlib.h>

#include "server/listen/names.h"

enum { MAX = 3 };

static void insist(int condition)
{
    if (!condition)
        abort();
}

/* Each address can be printed, and read again as the same; none comes twice. */
static void check_addresses(const struct mk__addr *all, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct mk__addr again;
        char storage[64];
        const char *reason;
        struct mk_buf out;
        mk_buf_init_fixed(&out, storage, sizeof(storage));
        mk__addr_print(&all[i], &out);
        insist(out.err == 0 && mk__addr_parse(mk_buf_str(&out), &again, &reason) == 0);
        insist(mk__addr_equal(&all[i], &again));
        for (unsigned k = 0; k < i; k++)
            insist(!mk__addr_equal(&all[i], &all[k]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk__addr found[MAX];
    struct mk_str text = mk_str((const char *)data, size), name, split;
    const char *end = size ? memchr(text.p, '\n', size) : NULL;
    if (!end || size > 4096)
        return 0;
    name = mk_str(text.p, (size_t)(end - text.p));
    text = mk_str(end + 1, size - name.len - 1);
    unsigned n = mk__listen_names_find(text, name, found, MAX);
    insist(n <= MAX);
    check_addresses(found, n);
    if (mk__listen_names_split(name, &split))
        insist(split.p == name.p && split.len < name.len && name.p[split.len] == ':');
    return 0;
}
