// SPDX-License-Identifier: Apache-2.0
/*
 * What clients and files say about paths to the file cache. The first byte tells what the rest is: a query, a list of
 * paths or a sitemap. Each path that is read is normalized, and reading it again gives the same path.
 */
#include "../../plugins/cache/calls.h"

#include <monkey/base/escape.h>

#include <stdlib.h>

static struct path_list_url url;
static struct scan_cursor cursor;

static void require(bool right)
{
    if (!right)
        abort();
}

static void check_path(const char *path, size_t len)
{
    char again[PATH_BYTES];
    char text[3 * PATH_BYTES];
    struct mk_buf encoded;
    require(len && path[0] == '/' && path[len] == '\0' && !memchr(path, '\0', len));
    mk_buf_init_fixed(&encoded, text, sizeof(text));
    mk_path_encode(&encoded, mk_str(path, len));
    require(!encoded.err);
    require(mk_path_normalize(mk_buf_str(&encoded), again, sizeof(again)) == (ssize_t)len);
    require(memcmp(again, path, len) == 0);
}

static void read_query(struct mk_str text)
{
    struct path_list_pair pair;
    char value[64];
    while (path_list_next_pair(&text, &pair)) {
        ssize_t n = path_list_decode(pair.value, value, sizeof(value));
        require(n < (ssize_t)sizeof(value) && (n < 0 || value[n] == '\0'));
        for (unsigned sort = 0; n >= 0 && sort < SCAN_SORTS; sort++)
            if (scan_read_cursor(mk_str(value, (size_t)n), sort, &cursor) && sort == SCAN_NAME)
                check_path(cursor.path, cursor.path_len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mk_str entry, text = mk_str((const char *)data + (size > 0), size ? size - 1 : 0);
    unsigned kind = size ? data[0] % 3 : 0;
    if (kind == 0)
        read_query(text);
    while (kind && (kind == 1 ? path_list_next_line : path_list_next_location)(&text, &entry))
        if (path_list_read(entry, kind == 2, &url) == 0)
            check_path(url.path, url.path_len);
    return 0;
}
