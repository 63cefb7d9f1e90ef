// SPDX-License-Identifier: Apache-2.0
/*
 * Sessions in Redis, for the object `session` (<duda/session.h>).
 *
 *     duda:session:{NAME@FILE/SERVICE}:DIGEST    a hash: e: when it ends, u: the last use, kKEY: a value
 *     duda:session:{NAME@FILE/SERVICE}:          a sorted set of the digests by their last use, in microseconds
 *
 * Each call is one script, which the server runs as one step: so two requests cannot lose a key of each other. Times
 * are those of Redis, so that the clocks of the servers that share it need not agree. Redis removes what has expired by
 * itself; the script checks it nevertheless, for an `idle_s` that has become shorter. When memory is out, Redis refuses
 * a script at the first write that takes memory, and lets one continue that has written before: so a commit begins with
 * HSET, and fails as a whole, and a load with EXPIRE, and works. Digests are made by the core: Redis never sees an id.
 */
#include "format.h"
#include "redis.h"

#include <duda/mem.h>
#include <duda/msg.h>
#include <duda/session.h>
#include <monkey/base/escape.h>
#include <monkey/base/sha1.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* KEYS: the set. ARGV: idle_s, and what each of the two needs. `forget` ends a session. */
#define SCRIPT_BEGIN \
    "local set, idle, time = KEYS[1], tonumber(ARGV[1]), redis.call('TIME')\n" \
    "local now = tonumber(time[1])\n" \
    "local function forget(id)\n" \
    "    redis.call('DEL', set .. id)\n" \
    "    redis.call('ZREM', set, id)\n" \
    "end\n" \
    "local function find(id)\n" \
    "    local times = redis.call('HMGET', set .. id, 'e', 'u')\n" \
    "    local ends, used = tonumber(times[1] or nil), tonumber(times[2] or nil)\n" \
    "    if ends and used and now < ends and now - used < idle then return ends end\n" \
    "    forget(id)\n" \
    "    return nil\n" \
    "end\n" \
    "local function use(id, ends)\n" \
    "    redis.call('EXPIRE', set .. id, math.min(idle, ends - now))\n" \
    "    redis.call('HSET', set .. id, 'u', now)\n" \
    "    redis.call('ZADD', set, now * 1000000 + tonumber(time[2]), id)\n" \
    "    redis.call('EXPIRE', set, 31622400)\n" \
    "end\n"

/* ARGV: idle_s, digest. Returns the fields of the hash, or nil. */
static const char load_script[] = SCRIPT_BEGIN "local ends = find(ARGV[2])\n"
                                               "if not ends then return nil end\n"
                                               "use(ARGV[2], ends)\n"
                                               "return redis.call('HGETALL', set .. ARGV[2])\n";

/*
 * ARGV: idle_s, from, to ("": none), drops, life_s, session_bytes, keys at most, sessions_max, then three for each
 * change: whether it sets, key, value. Returns "ok", "stale" or "full".
 */
static const char commit_script[] =
    SCRIPT_BEGIN "local from, to, drops, ends = ARGV[2], ARGV[3], ARGV[4] == '1', nil\n"
                 "local values, bytes, keys = {}, 0, 0\n"
                 "if from ~= '' then\n"
                 "    ends = find(from)\n"
                 "    if not ends and not drops then return 'stale' end\n"
                 "    if ends and not drops then\n"
                 "        local old = redis.call('HGETALL', set .. from)\n"
                 "        for i = 1, #old, 2 do\n"
                 "            if string.sub(old[i], 1, 1) == 'k' then values[old[i]] = old[i + 1] end\n"
                 "        end\n"
                 "    end\n"
                 "end\n"
                 "if to == '' then\n"
                 "    forget(from)\n"
                 "    return 'ok'\n"
                 "end\n"
                 "for i = 9, #ARGV, 3 do\n"
                 "    values['k' .. ARGV[i + 1]] = ARGV[i] == '1' and ARGV[i + 2] or nil\n"
                 "end\n"
                 "for key, value in pairs(values) do\n"
                 "    keys = keys + 1\n"
                 "    bytes = bytes + 4 + #key + #value\n" /* 5, and the key without the "k" */
                 "end\n"
                 "if bytes > tonumber(ARGV[6]) or keys > tonumber(ARGV[7]) then return 'full' end\n"
                 "if from ~= to then ends = now + tonumber(ARGV[5]) end\n"
                 "redis.call('HSET', set .. to, 'e', ends)\n"
                 "for i = 9, #ARGV, 3 do\n"
                 "    if ARGV[i] ~= '1' then redis.call('HDEL', set .. to, 'k' .. ARGV[i + 1]) end\n"
                 "end\n"
                 "for key, value in pairs(values) do redis.call('HSET', set .. to, key, value) end\n"
                 "use(to, ends)\n"
                 "if from ~= '' and from ~= to then forget(from) end\n"
                 "if from ~= to then\n"
                 "    local first = (now - idle) * 1000000\n"
                 "    for _, id in ipairs(redis.call('ZRANGEBYSCORE', set, '-inf', first, 'LIMIT', 0, 32)) do\n"
                 "        forget(id)\n"
                 "    end\n"
                 "    local over = redis.call('ZCARD', set) - tonumber(ARGV[8])\n"
                 "    if over > 0 then\n"
                 "        for _, id in ipairs(redis.call('ZRANGE', set, 0, over)) do\n"
                 "            if over > 0 and id ~= to then\n"
                 "                forget(id)\n"
                 "                over = over - 1\n"
                 "            end\n"
                 "        end\n"
                 "    end\n"
                 "end\n"
                 "return 'ok'\n";

enum {
    HEX_BYTES = 2 * MK_SHA1_BYTES,
    SET_BYTES_MAX = 600,
    NUMBER_BYTES = 12,
    COMMIT_HEAD = 12, /* words before the changes: EVALSHA, script, 1, set, and 8 */
    WORDS_MAX = COMMIT_HEAD + 3 * DUDA_SESSION_KEYS_MAX,
    LOG_INTERVAL_MS = 10000,
};

enum script { SCRIPT_LOAD, SCRIPT_COMMIT };

static const char *const scripts[] = {[SCRIPT_LOAD] = load_script, [SCRIPT_COMMIT] = commit_script};

/* A call of a backend, until its last reply. */
struct session_call {
    struct redis_client *client;
    enum script script;
    bool has_script; /* the script itself was sent */
    duda_session_backend_fn fn;
    void *ctx;
};

/* ── errors ── */

/* Logs a failure, at most one line in ten seconds of a worker, and returns -EIO. */
static int fail_call(struct redis_worker *w, const char *text)
{
    uint64_t now_ms = mk_loop_now_ms(w->loop);
    if (w->sessions_logged_ms && now_ms - w->sessions_logged_ms < LOG_INTERVAL_MS)
        return -EIO;
    w->sessions_logged_ms = now_ms;
    msg->err("the sessions in Redis cannot be used: %s", text);
    return -EIO;
}

/* ── replies ── */

/* Makes pairs of the fields of a hash. Returns their number. */
static unsigned make_pairs(const redisReply *reply, struct duda_session_pair pairs[DUDA_SESSION_KEYS_MAX])
{
    unsigned n = 0;
    for (size_t i = 0; i + 1 < reply->elements && n < DUDA_SESSION_KEYS_MAX; i += 2) {
        const redisReply *key = reply->element[i], *value = reply->element[i + 1];
        if (!key->str || !value->str || *key->str != 'k')
            continue;
        pairs[n++] = (struct duda_session_pair){.key = key->str + 1,
                                                .value = value->str,
                                                .key_len = key->len - 1,
                                                .value_len = value->len};
    }
    return n;
}

static void report_load(const struct session_call *call, const redisReply *reply)
{
    struct duda_session_pair pairs[DUDA_SESSION_KEYS_MAX];
    if (reply->type == REDIS_REPLY_ARRAY)
        call->fn(call->ctx, 0, pairs, make_pairs(reply, pairs));
    else
        call->fn(call->ctx, -ENOENT, NULL, 0);
}

static void report_commit(const struct session_call *call, const redisReply *reply)
{
    const char *text = reply->str ? reply->str : "";
    int result = strcmp(text, "ok") == 0      ? 0
                 : strcmp(text, "stale") == 0 ? -ESTALE
                 : strcmp(text, "full") == 0
                     ? -ENOSPC
                     : fail_call(call->client->commands.worker, "the script has returned nonsense");
    call->fn(call->ctx, result, NULL, 0);
}

static int send_words(struct session_call *call, const struct duda_redis_arg *words, unsigned n);

/* Sends the words of a command again, with the script instead of its digest. */
static int send_script(struct session_call *call, struct mk_str command)
{
    struct duda_redis_arg words[WORDS_MAX];
    struct mk_str word;
    unsigned n = 0;
    while (n < WORDS_MAX && redis_format_next(&command, &word))
        words[n++] = (struct duda_redis_arg){word.p, (ssize_t)word.len};
    words[0] = (struct duda_redis_arg){"EVAL", -1};
    words[1] = (struct duda_redis_arg){scripts[call->script], -1};
    call->has_script = true;
    return send_words(call, words, n);
}

/* Tells an error, which is logged. */
static void report_error(const struct session_call *call, int err, const char *text)
{
    call->fn(call->ctx, err == -ENOMEM ? err : fail_call(call->client->commands.worker, text), NULL, 0);
}

static void finish_query(void *owner, const struct redis_result *result)
{
    struct session_call *call = owner;
    const char *text = result->text ? result->text : "";
    int err = result->err;
    if (err == -EREMOTEIO && !call->has_script && strncmp(text, "NOSCRIPT", 8) == 0) {
        err = send_script(call, result->command);
        if (err == 0)
            return;
        text = call->client->commands.up.text;
    }
    if (err < 0)
        report_error(call, err, text);
    else if (call->script == SCRIPT_LOAD)
        report_load(call, result->reply);
    else
        report_commit(call, result->reply);
    mem->free(result->reply);
    mem->free(call);
}

/* ── calls ── */

static void print_hex(char to[HEX_BYTES + 1], const unsigned char *bytes)
{
    *mk_hex_write(to, bytes, MK_SHA1_BYTES) = '\0';
}

static int send_words(struct session_call *call, const struct duda_redis_arg *words, unsigned n)
{
    size_t len = redis_format_measure(words, n);
    struct redis_call *command = len && len <= REDIS_COMMAND_BYTES_MAX ? redis_call_new(len, finish_query, call) : NULL;
    if (!command)
        return -ENOMEM;
    redis_format_write(command->bytes, words, n);
    return redis_conn_send(&call->client->commands, command);
}

/* Runs a script with its words, of which the first three are set here. Returns 0, -EIO (logged) or -ENOMEM. */
static int run_script(struct duda_redis *db, enum script script, struct duda_redis_arg *words, unsigned n,
                      duda_session_backend_fn fn, void *ctx)
{
    struct redis_worker *w = redis_worker_find("sessions");
    struct redis_client *client = w ? redis_worker_client(w, db) : NULL;
    struct session_call *call = client ? mem->alloc(sizeof(*call)) : NULL;
    if (!call)
        return w ? -ENOMEM : -EIO;
    *call = (struct session_call){.client = client, .script = script, .fn = fn, .ctx = ctx};
    words[0] = (struct duda_redis_arg){"EVALSHA", -1};
    words[1] = (struct duda_redis_arg){w->service->script_digests[script], -1};
    words[2] = (struct duda_redis_arg){"1", -1};
    int err = send_words(call, words, n);
    if (err == 0)
        return 0;
    mem->free(call);
    return err == -ENOMEM ? err : fail_call(w, client->commands.up.text);
}

static void print_set(char to[SET_BYTES_MAX], const struct duda_session_scope *scope)
{
    snprintf(to, SET_BYTES_MAX, "duda:session:{%s/%s}:", scope->host, scope->service);
}

static int load_session(void *data, const struct duda_session_scope *scope, const unsigned char *digest,
                        duda_session_backend_fn fn, void *ctx)
{
    char set[SET_BYTES_MAX], idle[NUMBER_BYTES], id[HEX_BYTES + 1];
    print_set(set, scope);
    snprintf(idle, sizeof(idle), "%u", scope->idle_s);
    print_hex(id, digest);
    struct duda_redis_arg words[] = {{0}, {0}, {0}, {set, -1}, {idle, -1}, {id, -1}};
    return run_script(data, SCRIPT_LOAD, words, 6, fn, ctx);
}

/* Writes the changes as words. */
static void add_changes(struct duda_redis_arg *to, const struct duda_session_commit *commit)
{
    for (unsigned i = 0; i < commit->n; i++) {
        const struct duda_session_pair *pair = &commit->changes[i];
        *to++ = (struct duda_redis_arg){pair->removes ? "0" : "1", 1};
        *to++ = (struct duda_redis_arg){pair->key, (ssize_t)pair->key_len};
        *to++ = (struct duda_redis_arg){pair->value ? pair->value : "", (ssize_t)pair->value_len};
    }
}

static int commit_session(void *data, const struct duda_session_scope *scope, const struct duda_session_commit *c,
                          duda_session_backend_fn fn, void *ctx)
{
    char set[SET_BYTES_MAX], numbers[5][NUMBER_BYTES], from[HEX_BYTES + 1] = "", to[HEX_BYTES + 1] = "";
    struct duda_redis_arg words[WORDS_MAX] = {{0}, {0}, {0}, {set, -1}, {numbers[0], -1}, {from, -1}, {to, -1}};
    const uint32_t values[] = {scope->idle_s, c->life_s, scope->session_bytes, DUDA_SESSION_KEYS_MAX,
                               scope->sessions_max};
    print_set(set, scope);
    for (unsigned i = 0; i < 5; i++)
        snprintf(numbers[i], sizeof(numbers[i]), "%u", values[i]);
    if (c->from)
        print_hex(from, c->from);
    if (c->to)
        print_hex(to, c->to);
    words[7] = (struct duda_redis_arg){c->drops ? "1" : "0", -1};
    for (unsigned i = 1; i < 5; i++)
        words[7 + i] = (struct duda_redis_arg){numbers[i], -1};
    add_changes(words + COMMIT_HEAD, c);
    return run_script(data, SCRIPT_COMMIT, words, COMMIT_HEAD + 3 * c->n, fn, ctx);
}

const struct duda_session_backend *redis_sessions(duda_redis_t *db)
{
    struct redis_service *service = redis_service_find("sessions");
    if (!service || !db)
        return NULL;
    if (!db->backend)
        db->backend = mk_arena_zalloc(&service->arena, sizeof(*db->backend));
    if (!db->backend)
        return NULL;
    for (unsigned i = 0; i < MK_COUNT_OF(scripts); i++) {
        uint8_t digest[MK_SHA1_BYTES];
        mk_sha1(digest, scripts[i], strlen(scripts[i]));
        print_hex(service->script_digests[i], digest);
    }
    *db->backend = (struct duda_session_backend){.data = db, .load = load_session, .commit = commit_session};
    return db->backend;
}
