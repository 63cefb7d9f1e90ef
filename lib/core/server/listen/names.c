// SPDX-License-Identifier: Apache-2.0
/*
 * Resolves names of Listen lines (server/listen/names.h) by the file /etc/hosts.
 */
#include "server/listen/names.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 64 * 1024 };

bool mk__listen_names_split(struct mk_str text, struct mk_str *ret_name)
{
    bool is_path = mk_str_starts(text, MK_STR("unix:")), letters = false;
    const char *colon = text.len && !is_path ? memrchr(text.p, ':', text.len) : NULL;
    *ret_name = mk_str(text.p, colon ? (size_t)(colon - text.p) : 0);
    for (size_t i = 0; i < ret_name->len; i++) {
        char c = mk_lower(ret_name->p[i]);
        if (!mk_is_name_byte(c, "-._"))
            return false;
        letters = letters || (c >= 'a' && c <= 'z');
    }
    return letters;
}

static struct mk_str next_line(struct mk_str *rest)
{
    struct mk_str line = mk_str_split(rest, '\n');
    return mk_str_split(&line, '#'); /* a comment follows that */
}

static bool has_name(struct mk_str line, struct mk_str name)
{
    struct mk_str word;
    while ((word = mk_str_next_word(&line)).len)
        if (mk_str_ieq(word, name))
            return true;
    return false;
}

/* Parses an address as the file has it: IPv6 without brackets. A link-local one lacks its interface there. */
static bool parse_address(struct mk_str word, struct mk__addr *ret)
{
    char text[64];
    *ret = (struct mk__addr){0};
    if (!memchr(word.p, ':', word.len))
        return mk__addr_parse_host(word, ret) == 0;
    if (word.len + 2 > sizeof(text))
        return false;
    text[0] = '[';
    memcpy(text + 1, word.p, word.len);
    text[word.len + 1] = ']';
    return mk__addr_parse_host(mk_str(text, word.len + 2), ret) == 0 && !IN6_IS_ADDR_LINKLOCAL(&ret->in6.sin6_addr);
}

static unsigned add_address(const struct mk__addr *one, struct mk__addr *all, unsigned n, unsigned max)
{
    for (unsigned i = 0; i < n; i++)
        if (mk__addr_equal(&all[i], one))
            return n;
    if (n < max)
        all[n++] = *one;
    return n;
}

unsigned mk__listen_names_find(struct mk_str hosts, struct mk_str name, struct mk__addr *ret, unsigned max)
{
    unsigned n = 0;
    while (hosts.len) {
        struct mk_str line = next_line(&hosts), word;
        struct mk__addr one;
        if ((word = mk_str_next_word(&line)).len && has_name(line, name) && parse_address(word, &one))
            n = add_address(&one, ret, n, max);
    }
    return n;
}

static unsigned find_in_file(struct mk_str name, struct mk__addr *ret, unsigned max)
{
    char text[FILE_BYTES_MAX];
    int fd = open("/etc/hosts", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));
    if (fd >= 0)
        close(fd);
    return n > 0 ? mk__listen_names_find(mk_str(text, (size_t)n), name, ret, max) : 0;
}

/* An IPv6 address is missing in many containers. */
bool mk__listen_names_is_own(const struct mk__addr *addr)
{
    int fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool own = fd >= 0 && bind(fd, &addr->sa, addr->len) == 0; /* to any port */
    if (fd >= 0)
        close(fd);
    return own;
}

int mk__listen_names_resolve(struct mk_str name, struct mk__addr *ret, unsigned max, const char **ret_error)
{
    unsigned found, n = 0;
    if (mk_str_ieq(name, MK_STR("localhost"))) /* RFC 6761 section 6.3 */
        found = mk__listen_names_find(MK_STR("127.0.0.1 localhost\n::1 localhost"), MK_STR("localhost"), ret, max);
    else
        found = find_in_file(name, ret, max);
    for (unsigned i = 0; i < found; i++)
        if (mk__listen_names_is_own(&ret[i]))
            ret[n++] = ret[i];
    if (n)
        return (int)n;
    *ret_error = found ? "this machine has no address of that name"
                       : "the name is not in /etc/hosts, and DNS is not asked: use an address, such as 127.0.0.1:80, "
                         "[::1]:80 or *:80";
    return -EINVAL;
}
