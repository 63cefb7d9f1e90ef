// SPDX-License-Identifier: Apache-2.0
#include "gateway.h"

#include <monkey/base/time.h>
#include <monkey/kit/source.h>
#include <monkey/kit/spool.h>

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ── values of keys that sections of several plugins have ── */

const char *const mk_gateway_client_abort_names[] = {"Cancel", "Finish", NULL};

/* Parses 100, 100B, 256K, 64M or 1G. Returns false if it is no size. */
static bool parse_size(struct mk_str word, uint64_t *ret)
{
    static const struct {
        char suffix;
        unsigned shift;
    } units[] = {{'B', 0}, {'K', 10}, {'M', 20}, {'G', 30}};
    unsigned shift = 0, with_suffix = 0;
    for (size_t i = 0; i < MK_COUNT_OF(units) && word.len; i++)
        if (word.p[word.len - 1] == units[i].suffix) {
            shift = units[i].shift;
            with_suffix = 1;
        }
    if (!mk_str_u64(mk_str(word.p, word.len - with_suffix), UINT64_C(1) << (50 - shift), ret))
        return false;
    *ret <<= shift;
    return true;
}

int mk_gateway_parse_keep_alive(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                                struct mk_buf *error)
{
    enum { CONNECTIONS_MAX = 10000 };
    int64_t *keep_alive = field;
    uint64_t n;
    (void)arena;
    if (value->n == 1 && mk_str_ieq(value->text, MK_STR("Queue"))) {
        *keep_alive = MK_GATEWAY_KEEP_QUEUE;
        return 0;
    }
    if (value->n != 1 || !mk_str_u64(value->text, CONNECTIONS_MAX, &n))
        return mk_conf_fail(error, "it takes a number from 0 to 10000, or Queue");
    *keep_alive = (int64_t)n;
    return 0;
}

int mk_gateway_parse_buffer(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                            struct mk_buf *error)
{
    enum { MEMORY_MAX = 64 << 20 };
    struct mk_gateway_buffer *buffer = field;
    struct mk_gateway_buffer sizes = {0};
    (void)arena;
    if (mk_conf_is_off(value))
        return 0;
    if (value->n < 1 || value->n > 2 || !parse_size(value->words[0], &sizes.memory_bytes) ||
        (value->n == 2 && !parse_size(value->words[1], &sizes.file_bytes)))
        return mk_conf_fail(error, "it takes a size in memory and one in a file, such as `256K 64M`, or Off");
    if (sizes.memory_bytes < MK_SPOOL_MEMORY_MIN || sizes.memory_bytes > MEMORY_MAX)
        return mk_conf_fail(error, "the size in memory is from 128K to 64M");
    *buffer = sizes;
    return 0;
}

int mk_gateway_parse_spool(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    uint64_t *bytes = field;
    (void)arena;
    if (mk_conf_is_off(value))
        return 0;
    if (value->n == 1 && mk_str_ieq(value->text, MK_STR("On"))) {
        *bytes = UINT64_MAX;
        return 0;
    }
    if (value->n != 1 || !parse_size(value->text, bytes) || !*bytes)
        return mk_conf_fail(error, "it takes On, Off, or the length of the longest body, such as 64M");
    return 0;
}

int mk_gateway_parse_intercept(const struct mk_conf_value *value, void *field, struct mk_arena *arena,
                               struct mk_buf *error)
{
    enum { ERRORS_FIRST = 400 };
    struct mk_status_set set = {0};
    (void)arena;
    if (value->n == 1 && mk_str_ieq(value->text, MK_STR("On")))
        return mk_status_set_add(field, MK_STR("400-599"));
    for (uint32_t i = 0; i < value->n && !mk_conf_is_off(value); i++)
        if (mk_status_set_add(&set, value->words[i]) < 0)
            return mk_conf_fail(error, "it takes On, Off, or statuses from 400 to 599");
    for (unsigned status = MK_STATUS_SET_FIRST; status < ERRORS_FIRST; status++)
        if (mk_status_set_has(&set, status))
            return mk_conf_fail(error, "it takes On, Off, or statuses from 400 to 599");
    *(struct mk_status_set *)field = set;
    return 0;
}

bool mk_gateway_takes_source(const struct mk_gateway_conf *conf, const struct mk_source_query *of)
{
    bool may_send = of->kind == MK_SOURCE_FILE && conf->send_file.n;
    return mk_source_is_taken(of, &conf->match, may_send || mk_source_is_whole_site(&conf->match));
}

void mk_gateway_add_program(const struct mk_gateway_conf *conf, mk_program_fn fn, void *ctx)
{
    char name[MK_SOURCE_EXAMPLE_BYTES];
    struct mk_program program = {.section_struct = conf, .offset = offsetof(struct mk_gateway_conf, match)};
    if (!mk_source_make_example(&conf->match, name))
        return;
    program.name = mk_str_c(name);
    fn(&program, ctx);
}

void mk_gateway_conf_finish(struct mk_gateway_conf *conf)
{
    conf->limits = (struct mk_response_limits){
        .head_bytes_max = (uint16_t)conf->response_head_bytes_max,
        .fields_max = MK_GATEWAY_FIELDS_MAX,
        .chunked = {.line_bytes_max = 4096,
                    .ext_bytes_total_max = 65536,
                    .trailer_bytes_max = 8192,
                    .trailer_count_max = 64},
    };
}

/*
 * ── names of backends ──
 *
 * Looks up names of backends. A child process does, since getaddrinfo() cannot be interrupted, and a thread
 * of this module would have to end before the module is unloaded.
 */

enum { NAME_BYTES = 256 };

/* In the child: its status is 0 or an error of getaddrinfo(), which are negative. */
static _Noreturn void run_child(const char *name)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list;
    _exit(-getaddrinfo(name, NULL, &hints, &list));
}

/* Waits until the child has ended, which closes its end of the pipe, and ends it when the time is over. */
static int wait_for_child(pid_t pid, int fd, uint32_t ms)
{
    struct pollfd poll_fd = {.fd = fd};
    uint64_t end = mk_time_monotonic_ms() + ms;
    int n, status;
    do {
        uint64_t now = mk_time_monotonic_ms();
        n = poll(&poll_fd, 1, now < end ? (int)(end - now) : 0);
    } while (n < 0 && errno == EINTR);
    if (n <= 0)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return EAI_SYSTEM;
    return WIFEXITED(status) ? -WEXITSTATUS(status) : EAI_AGAIN;
}

/* Returns 0 or an error of getaddrinfo(); EAI_AGAIN if the time is over. */
static int look_up_host(struct mk_str host, uint32_t ms)
{
    char name[NAME_BYTES];
    int fds[2];
    if (host.len >= sizeof(name) || pipe2(fds, O_CLOEXEC) < 0)
        return EAI_SYSTEM;
    memcpy(name, host.p, host.len);
    name[host.len] = '\0';
    pid_t pid = fork();
    if (pid == 0)
        run_child(name);
    close(fds[1]);
    int err = pid < 0 ? EAI_SYSTEM : wait_for_child(pid, fds[0], ms);
    close(fds[0]);
    return err;
}

void mk__gw_names_check(struct mk_host *host, const struct mk_gateway_conf *conf, uint32_t *left_ms)
{
    const struct mk_dial_target *target = conf->to.dial;
    if (!*left_ms || !target->port || target->addr) /* an address, or a Unix socket */
        return;
    uint64_t began = mk_time_monotonic_ms();
    int err = look_up_host(target->host, *left_ms);
    uint64_t took = mk_time_monotonic_ms() - began;
    *left_ms -= took < *left_ms ? (uint32_t)took : *left_ms;
    if (err && err != EAI_SYSTEM)
        mk_host_warn(host, conf, offsetof(struct mk_gateway_conf, to), 0,
                     "%.*s has no address now (%s); it is looked up for each connection", MK_STR_ARG(target->host),
                     gai_strerror(err));
}
