// SPDX-License-Identifier: Apache-2.0
/* The name server of the tests (dns_fixture.h). */
#include "dns_fixture.h"

#include "testing.h"

#include "plugins/upstream/dns_answer.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { HEADER = 12, MESSAGE_BYTES = 4096, NXDOMAIN = 3, SERVFAIL = 2 };

static const struct dns_row *_Atomic table;
static struct mk_address address;
static int server_fd;
static pthread_t thread;
static atomic_uint questions;

static size_t add_name(uint8_t *to, const char *name)
{
    size_t n = 0;
    while (*name && *name != '.') {
        size_t len = strcspn(name, ".");
        to[n++] = (uint8_t)len;
        memcpy(to + n, name, len);
        n += len;
        name += len + (name[len] == '.');
    }
    to[n++] = 0;
    return n;
}

static size_t add_data(uint8_t *to, const struct dns_row *row)
{
    unsigned priority, weight, port;
    char target[256];
    if (row->type != DNS_SRV)
        return inet_pton(row->type == DNS_A ? AF_INET : AF_INET6, row->data, to) == 1 ? row->type == DNS_A ? 4 : 16 : 0;
    assert_int_equal(sscanf(row->data, "%u %u %u %255s", &priority, &weight, &port, target), 4);
    uint16_t numbers[] = {htons((uint16_t)priority), htons((uint16_t)weight), htons((uint16_t)port)};
    memcpy(to, numbers, sizeof(numbers));
    return sizeof(numbers) + add_name(to + sizeof(numbers), target);
}

static size_t add_record(uint8_t *to, const struct dns_row *row)
{
    uint8_t head[] = {0xc0, HEADER, 0, (uint8_t)row->type, 0, 1, 0, 0, (uint8_t)(row->ttl_s >> 8), (uint8_t)row->ttl_s};
    memcpy(to, head, sizeof(head));
    size_t len = add_data(to + sizeof(head) + 2, row);
    to[sizeof(head)] = (uint8_t)(len >> 8);
    to[sizeof(head) + 1] = (uint8_t)len;
    return sizeof(head) + 2 + len;
}

/* Turns a question into its answer. Returns the number of bytes; 0: there is none. */
static size_t make_answer(uint8_t *message, size_t len)
{
    uint8_t name[256];
    uint16_t type = message[len - 3];
    bool is_known = false;
    size_t at = len;
    message[2] |= 0x84;
    for (const struct dns_row *row = table; row->name; row++) {
        size_t name_len = add_name(name, row->name);
        if (len != HEADER + name_len + 4 || memcmp(name, message + HEADER, name_len) != 0)
            continue;
        is_known = true;
        if (row->type != type)
            continue;
        if (row->answer == ANSWER_NOTHING)
            return 0;
        message[3] |= row->answer == ANSWER_SERVFAIL ? SERVFAIL : 0;
        message[7] += row->data || row->answer == ANSWER_GARBAGE;
        at += row->data ? add_record(message + at, row) : 0;
    }
    message[3] |= is_known ? 0 : NXDOMAIN;
    return at;
}

static void *serve(void *ctx)
{
    uint8_t message[MESSAGE_BYTES];
    for (;;) {
        struct sockaddr_storage peer;
        socklen_t peer_len = sizeof(peer);
        ssize_t n = recvfrom(server_fd, message, 512, 0, (struct sockaddr *)&peer, &peer_len);
        if (n <= HEADER)
            return ctx; /* the message of dns_fixture_close() */
        atomic_fetch_add(&questions, 1);
        size_t len = make_answer(message, (size_t)n);
        if (len)
            sendto(server_fd, message, len, 0, (struct sockaddr *)&peer, peer_len);
    }
}

void dns_fixture_set(const struct dns_row *rows)
{
    table = rows;
}

void dns_fixture_open(const struct dns_row *rows)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(in);
    table = rows;
    questions = 0;
    server_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(server_fd >= 0);
    assert_int_equal(bind(server_fd, (struct sockaddr *)&in, sizeof(in)), 0);
    assert_int_equal(getsockname(server_fd, (struct sockaddr *)&in, &len), 0);
    mk_address_set(&address, AF_INET, &in.sin_addr, ntohs(in.sin_port));
    assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
}

void dns_fixture_close(void)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(address.port)};
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(sendto(server_fd, "", 1, 0, (struct sockaddr *)&in, sizeof(in)), 1);
    pthread_join(thread, NULL);
    close(server_fd);
}

struct lookup_servers dns_fixture_servers(void)
{
    return (struct lookup_servers){&address, 1};
}

unsigned dns_fixture_questions(void)
{
    return questions;
}
