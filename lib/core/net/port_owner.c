// SPDX-License-Identifier: Apache-2.0
/*
 * Searches /proc for the processes that listen on an address (net/port_owner.h).
 */
#include "net/port_owner.h"

#include "net/announce.h"

#include <monkey/base/arena.h>
#include <monkey/base/hash.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ARENA_BYTES_MAX = 4 * 1024 * 1024, PATH_BYTES = 300, TCP_SYN_RECV = 3, TCP_LISTEN = 10, UNIX_LISTENS = 0x10000 };

struct search {
    mk__port_owner_own_fn is_own;
    void *ctx;
    struct mk_arena arena;
    struct mk__port_owner_socket *sockets;
    size_t n;
    bool has_hidden; /* an own process whose descriptors cannot be read */
    unsigned hidden_uid;
    bool announces, changing; /* own processes name their sockets; but one of them not all */
};

/* ── tables of sockets ── */

/* An address is written as numbers of 32 bits in the byte order of this machine. */
static bool parse_address(const char *hex, unsigned port, struct mk__addr *ret)
{
    uint32_t words[4];
    size_t n = strlen(hex) / 8;
    for (size_t i = 0; i < n; i++)
        if (sscanf(hex + 8 * i, "%8x", &words[i]) != 1)
            return false;
    bool mapped = n == 4 && !words[0] && !words[1] && words[2] == htonl(0xffff);
    *ret = (struct mk__addr){.len = 0};
    if (n == 1 || mapped) {
        ret->in = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = words[n - 1]};
        ret->len = sizeof(ret->in);
    } else {
        ret->in6.sin6_family = AF_INET6;
        memcpy(&ret->in6.sin6_addr, words, sizeof(words));
        ret->len = sizeof(ret->in6);
        ret->any = IN6_IS_ADDR_UNSPECIFIED(&ret->in6.sin6_addr); /* IPv4 too, unless IPV6_V6ONLY is set */
    }
    mk__addr_set_port(ret, (uint16_t)port);
    return true;
}

static bool parse_tcp(const char *line, unsigned wanted_state, struct mk__port_owner_socket *ret)
{
    char hex[33], peer[48];
    unsigned port, state;
    *ret = (struct mk__port_owner_socket){.pid = 0};
    if (sscanf(line, " %*u: %32[0-9A-F]:%x %47s %x %*s %*s %*s %u %*u %lu", hex, &port, peer, &state, &ret->uid,
               &ret->inode) != 6)
        return false;
    ret->peer = mk_hash_add(MK_HASH_EMPTY, peer, strlen(peer));
    return state == wanted_state && (strlen(hex) == 8 || strlen(hex) == 32) && parse_address(hex, port, &ret->addr);
}

bool mk__port_owner_parse_tcp(const char *line, struct mk__port_owner_socket *ret)
{
    return parse_tcp(line, TCP_LISTEN, ret);
}

bool mk__port_owner_parse_handshake(const char *line, struct mk__port_owner_socket *ret)
{
    return parse_tcp(line, TCP_SYN_RECV, ret);
}

bool mk__port_owner_parse_unix(const char *line, struct mk__port_owner_socket *ret)
{
    unsigned flags;
    int path = 0;
    *ret = (struct mk__port_owner_socket){.addr = {.un.sun_family = AF_UNIX}};
    if (sscanf(line, "%*s %*s %*s %x %*s %*s %lu %n", &flags, &ret->inode, &path) != 2 || !(flags & UNIX_LISTENS))
        return false;
    size_t len = strcspn(line + path, "\n");
    if (line[path] != '/' || len >= sizeof(ret->addr.un.sun_path))
        return false;
    memcpy(ret->addr.un.sun_path, line + path, len);
    ret->addr.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
    return true;
}

static void add_sockets(struct search *s, const struct mk__addr *addr, const char *path,
                        bool (*parse)(const char *line, struct mk__port_owner_socket *ret))
{
    char line[512];
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        struct mk__port_owner_socket one;
        if (!parse(line, &one) || !mk__addr_conflicts(&one.addr, addr))
            continue;
        struct mk__port_owner_socket *items = mk_arena_grow(&s->arena, s->sockets, s->n, sizeof(*items));
        if (!items)
            break;
        s->sockets = items;
        s->sockets[s->n++] = one;
    }
    if (file)
        fclose(file);
}

/* ── handshakes ── */

static void add_handshakes(struct mk__handshakes *h, const struct mk__addr *addr, const char *path)
{
    char line[512];
    FILE *file = fopen(path, "re");
    while (file && h->n < MK__HANDSHAKES_MAX && fgets(line, sizeof(line), file)) {
        struct mk__port_owner_socket one;
        bool may = strstr(line, " 03 ") != NULL; /* a file may have 100,000 lines */
        if (may && mk__port_owner_parse_handshake(line, &one) && mk__addr_conflicts(&one.addr, addr))
            h->peers[h->n++] = one.peer;
    }
    if (file)
        fclose(file);
}

void mk__handshakes_find(struct mk__handshakes *h, const struct mk__addr *addr)
{
    h->n = 0; /* a connection of IPv4 to a socket of IPv6 is in the file of the latter */
    add_handshakes(h, addr, addr->sa.sa_family == AF_INET6 ? "/proc/net/tcp6" : "/proc/net/tcp");
}

static bool has_peer(const struct mk__handshakes *h, uint64_t peer)
{
    unsigned i = 0;
    while (i < h->n && h->peers[i] != peer)
        i++;
    return i < h->n;
}

void mk__handshakes_update(struct mk__handshakes *h, const struct mk__addr *addr)
{
    struct mk__handshakes now;
    unsigned n = 0;
    mk__handshakes_find(&now, addr);
    for (unsigned i = 0; i < h->n; i++)
        if (has_peer(&now, h->peers[i]))
            h->peers[n++] = h->peers[i];
    h->n = n;
}

/* ── processes ── */

/* Returns the first value of a line of /proc/PID/status ("Uid:"), or 0. */
static unsigned get_effective_uid(int pid)
{
    char path[PATH_BYTES], line[256];
    unsigned uid = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file) && sscanf(line, "Uid: %*u %u", &uid) != 1)
        ;
    if (file)
        fclose(file);
    return uid;
}

static void note_socket(struct search *s, int pid, unsigned long inode)
{
    for (size_t i = 0; i < s->n; i++) {
        struct mk__port_owner_socket *one = &s->sockets[i];
        if (one->inode != inode || one->own)
            continue;
        one->own = s->is_own && s->is_own(pid, s->ctx);
        one->pid = pid;
    }
}

static void search_process(struct search *s, int pid)
{
    char path[PATH_BYTES], target[64];
    unsigned long inode;
    snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    DIR *dir = opendir(path);
    bool hidden = !dir && errno == EACCES;
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
        hidden |= n < 0 && errno == EACCES;
        target[n > 0 ? n : 0] = '\0';
        if (sscanf(target, "socket:[%lu]", &inode) == 1)
            note_socket(s, pid, inode);
    }
    if (dir)
        closedir(dir);
    if (hidden && s->is_own && s->is_own(pid, s->ctx)) {
        s->has_hidden = true;
        s->hidden_uid = get_effective_uid(pid);
    }
}

/* Notes the sockets that an own process names. */
static void note_announced(struct search *s, const struct mk__announced *names)
{
    s->announces = true;
    s->changing |= names->changing;
    for (size_t i = 0; i < s->n; i++)
        for (unsigned k = 0; k < names->n; k++)
            s->sockets[i].announced |= s->sockets[i].inode == names->inodes[k];
}

static void search_names(struct search *s)
{
    char line[512];
    FILE *file = fopen("/proc/net/unix", "re");
    while (file && fgets(line, sizeof(line), file)) {
        struct mk__announced names;
        if (mk__announce_parse(line, &names) && s->is_own(names.pid, s->ctx))
            note_announced(s, &names);
    }
    if (file)
        fclose(file);
}

static void search_processes(struct search *s)
{
    DIR *dir = opendir("/proc");
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        uint64_t pid;
        if (mk_str_u64(mk_str_c(entry->d_name), INT_MAX, &pid))
            search_process(s, (int)pid);
    }
    if (dir)
        closedir(dir);
}

static void read_name(struct mk__port_owner *owner)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "/proc/%d/comm", owner->pid);
    FILE *file = fopen(path, "re");
    if (file && fgets(owner->name, sizeof(owner->name), file))
        owner->name[strcspn(owner->name, "\n")] = '\0';
    if (file)
        fclose(file);
}

/* A socket whose process is hidden may be that of a hidden process of ours: unless these name theirs, and not this. */
static bool is_own_socket(const struct search *s, const struct mk__port_owner_socket *one)
{
    bool may = one->uid == s->hidden_uid || one->uid == 0 || geteuid() == 0;
    bool named = one->announced || !s->announces || s->changing;
    return one->own || (!one->pid && s->has_hidden && may && named);
}

enum mk__port_owner_kind mk__port_owner_find(const struct mk__addr *addr, mk__port_owner_own_fn is_own, void *ctx,
                                             struct mk__port_owner *ret)
{
    struct search s = {.is_own = is_own, .ctx = ctx};
    enum mk__port_owner_kind kind = MK__PORT_OWNER_NONE;
    *ret = (struct mk__port_owner){.pid = 0};
    mk_arena_init(&s.arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    if (addr->sa.sa_family == AF_UNIX) {
        add_sockets(&s, addr, "/proc/net/unix", mk__port_owner_parse_unix);
    } else {
        add_sockets(&s, addr, "/proc/net/tcp", mk__port_owner_parse_tcp);
        add_sockets(&s, addr, "/proc/net/tcp6", mk__port_owner_parse_tcp);
    }
    if (s.n)
        search_processes(&s);
    if (s.has_hidden)
        search_names(&s);
    for (size_t i = 0; i < s.n && kind != MK__PORT_OWNER_OTHER; i++) {
        kind = is_own_socket(&s, &s.sockets[i]) ? MK__PORT_OWNER_OWN : MK__PORT_OWNER_OTHER;
        if (kind == MK__PORT_OWNER_OTHER)
            ret->pid = s.sockets[i].pid;
    }
    mk_arena_release(&s.arena);
    if (ret->pid)
        read_name(ret);
    return kind;
}
