// SPDX-License-Identifier: Apache-2.0
/*
 * greet: a plugin in C++20, with a directive, states of the process and of workers, a filter and every header. It needs
 * nothing of the library of C++.
 */
#include <monkey/base/accept.h>
#include <monkey/base/address.h>
#include <monkey/base/arena.h>
#include <monkey/base/base64.h>
#include <monkey/base/buf.h>
#include <monkey/base/chunked.h>
#include <monkey/base/dial.h>
#include <monkey/base/epoch.h>
#include <monkey/base/escape.h>
#include <monkey/base/file.h>
#include <monkey/base/hash.h>
#include <monkey/base/header_id.h>
#include <monkey/base/library.h>
#include <monkey/base/list.h>
#include <monkey/base/log_limit.h>
#include <monkey/base/memory.h>
#include <monkey/base/pattern.h>
#include <monkey/base/poll.h>
#include <monkey/base/random.h>
#include <monkey/base/response_parser.h>
#include <monkey/base/sha1.h>
#include <monkey/base/siphash.h>
#include <monkey/base/str.h>
#include <monkey/base/thread_pool.h>
#include <monkey/base/thread_start.h>
#include <monkey/base/time.h>
#include <monkey/base/utf8.h>
#include <monkey/conf.h>
#include <monkey/counters.h>
#include <monkey/embed.h>
#include <monkey/file_cache.h>
#include <monkey/hooks.h>
#include <monkey/inspect.h>
#include <monkey/kit/backend_stats.h>
#include <monkey/kit/cgi.h>
#include <monkey/kit/child.h>
#include <monkey/kit/client_table.h>
#include <monkey/kit/command.h>
#include <monkey/kit/cookie.h>
#include <monkey/kit/counter_table.h>
#include <monkey/kit/embedded.h>
#include <monkey/kit/encoded_slash.h>
#include <monkey/kit/event_stream.h>
#include <monkey/kit/fastcgi.h>
#include <monkey/kit/gateway.h>
#include <monkey/kit/hash_table.h>
#include <monkey/kit/header_line.h>
#include <monkey/kit/http_client.h>
#include <monkey/kit/inbox.h>
#include <monkey/kit/json.h>
#include <monkey/kit/local_client.h>
#include <monkey/kit/log_writer.h>
#include <monkey/kit/open_file.h>
#include <monkey/kit/request_job.h>
#include <monkey/kit/routes.h>
#include <monkey/kit/source.h>
#include <monkey/kit/spool.h>
#include <monkey/kit/status_set.h>
#include <monkey/kit/store.h>
#include <monkey/kit/target.h>
#include <monkey/kit/threads.h>
#include <monkey/kit/upstream.h>
#include <monkey/kit/variables.h>
#include <monkey/kit/via.h>
#include <monkey/kit/watched.h>
#include <monkey/kit/websocket.h>
#include <monkey/kit/when.h>
#include <monkey/log.h>
#include <monkey/loop.h>
#include <monkey/monkey.h>
#include <monkey/plugin.h>
#include <monkey/program.h>
#include <monkey/request.h>
#include <monkey/request_ref.h>
#include <monkey/status.h>
#include <monkey/transport.h>
#include <monkey/tunnel.h>
#include <monkey/upstreams.h>

#include <errno.h>
#include <stdlib.h>

extern "C" const struct mk_plugin mk_plugin_greet;

namespace
{

struct settings {
    struct mk_str greeting;
    uint32_t wait_timeout_ms;
    struct mk_pattern match;
};

const struct mk_conf_key keys[] = {
    MK_CONF_KEY_STRING(settings, greeting, "Greeting", "hello", "What it says."),
    MK_CONF_KEY_DURATION(settings, wait_timeout_ms, "Patience", "1s", "How long it waits."),
    MK_CONF_KEY_PATTERN(settings, match, "Match", "/greet", "Where it answers."),
    {},
};

const struct mk_conf_section sections[] = {
    {.name = "GREET",
     .scope = MK_CONF_SCOPE_HOST,
     .flags = 0,
     .size = sizeof(settings),
     .keys = keys,
     .doc = MK_CONF_DOC("Greets."),
     .foreign = nullptr,
     .check = nullptr},
    {},
};

struct totals {
    unsigned greetings;
};

int start(void **ret_state)
{
    *ret_state = calloc(1, sizeof(totals));
    return *ret_state ? 0 : -ENOMEM;
}

void stop(void *state)
{
    mk_log_info("greet: %u greetings", static_cast<totals *>(state)->greetings);
    mk_log_debug("greet: the end");
    free(state);
}

int start_worker(struct mk_worker *worker, void **ret_state)
{
    *ret_state = mk_account_alloc(mk_worker_account(worker), sizeof(totals));
    if (!*ret_state)
        return -ENOMEM;
    *static_cast<totals *>(*ret_state) = {};
    return 0;
}

void stop_worker(struct mk_worker *worker, void *state)
{
    const struct mk_generation *g = mk_worker_generation(worker);
    auto all = static_cast<totals *>(mk_generation_plugin_state(g, &mk_plugin_greet));
    all->greetings += static_cast<totals *>(state)->greetings; /* the test has one worker */
    mk_account_free(mk_worker_account(worker), state, sizeof(totals));
}

ssize_t raise_filter(struct mk_filter *filter, char *to, size_t size, void *)
{
    ssize_t n = mk_filter_read(filter, to, size);
    for (ssize_t i = 0; i < n; i++)
        to[i] = to[i] >= 'a' && to[i] <= 'z' ? static_cast<char>(to[i] - 32) : to[i];
    return n;
}

int greet(struct mk_request *req)
{
    auto conf = static_cast<const settings *>(mk_host_conf(mk_request_host_conf(req), sections));
    auto counted = static_cast<totals *>(mk_worker_state(mk_request_worker(req), &mk_plugin_greet));
    if (mk_pattern_match(&conf->match, mk_request_path(req)) != 1)
        return MK_DECLINED;
    counted->greetings++;
    mk_response_header_ref(req, MK_STR("Content-Type"), MK_STR("text/plain"));
    mk_response_write_ref(req, conf->greeting);
    mk_response_end(req);
    return mk_request_set_state(req, &mk_plugin_greet, counted);
}

void raise_response(struct mk_request *req)
{
    if (mk_request_state(req, &mk_plugin_greet) && mk_str_eq(mk_request_query(req), MK_STR("loud")))
        mk_response_filter(req, raise_filter, nullptr);
}

} // namespace

static const struct mk_inspect_hooks inspect_hooks = {
    .about = [](struct mk_buf *out) { mk_buf_adds(out, MK_STR("written in C++")); },
};

MK_PLUGIN(greet) = {
    MK_PLUGIN_HEAD("greet", "1.0", "greets in C++"),
    .flags = MK_PLUGIN_TIMES,
    .sections = sections,
    .start = start,
    .stop = stop,
    .worker_start = start_worker,
    .worker_stop = stop_worker,
    .on_content = greet,
    .on_response = raise_response,
    .inspection = &inspect_hooks,
};
