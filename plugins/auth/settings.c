// SPDX-License-Identifier: Apache-2.0
#include "rules.h"

#include <monkey/base/thread_pool.h>

#include <errno.h>

/* ── Require ── */

static const struct {
    const char *word;
    enum auth_require_kind kind;
} kinds[] = {{"valid", AUTH_REQUIRE_VALID}, {"user", AUTH_REQUIRE_USER}, {"group", AUTH_REQUIRE_GROUP}};

enum { KINDS = MK_COUNT_OF(kinds) };

/* Finds the kind of a line; KINDS: it is wrong. */
static unsigned find_kind(const struct mk_conf_value *value)
{
    unsigned i = 0;
    while (i < KINDS && !(value->n && mk_str_ieq(value->words[0], mk_str_c(kinds[i].word))))
        i++;
    bool has_names = value->n > 1;
    return i < KINDS && has_names == (kinds[i].kind != AUTH_REQUIRE_VALID) ? i : KINDS;
}

static int parse_require(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct auth_require **last = field;
    unsigned i = find_kind(value);
    if (i == KINDS)
        return mk_conf_fail(error, "\"valid\", \"user\" with names, or \"group\" with names is needed");
    while (*last)
        last = &(*last)->next;
    struct auth_require *r = mk_arena_zalloc(arena, sizeof(*r));
    if (!r || mk_conf_add_words(value, 1, &r->names, arena) < 0)
        return -ENOMEM;
    r->kind = kinds[i].kind;
    *last = r;
    return 0;
}

/* ── tokens ── */

static int add_key_file(const struct mk_conf_value *value, struct auth_key_files *files, enum keys_kind kind,
                        struct mk_arena *arena, struct mk_buf *error)
{
    if (!value->text.len)
        return mk_conf_fail(error, "the path of a file is missing");
    struct keys_file *items = mk_arena_grow(arena, files->items, files->n, sizeof(*items));
    struct mk_str path;
    int err = items ? mk_conf_read_path(value, value->text, &path, arena, error) : -ENOMEM;
    if (err < 0)
        return err;
    items[files->n] = (struct keys_file){path, kind};
    *files = (struct auth_key_files){items, files->n + 1};
    return 0;
}

static int parse_keys(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    return add_key_file(value, field, KEYS_PUBLIC, arena, error);
}

static int parse_secret(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    return add_key_file(value, field, KEYS_SECRET, arena, error);
}

static int parse_claim(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct auth_claims *claims = field;
    if (value->n < 1 || value->n > 2)
        return mk_conf_fail(error, "the name of a claim is needed, and perhaps a value");
    struct claims_need *items = mk_arena_grow(arena, claims->items, claims->n, sizeof(*items));
    if (!items)
        return -ENOMEM;
    struct claims_need need = {.name = mk_arena_dup(arena, value->words[0])};
    if (value->n > 1)
        need.value = mk_arena_dup(arena, value->words[1]);
    if (!need.name.p || (value->n > 1 && !need.value.p))
        return -ENOMEM;
    items[claims->n] = need;
    *claims = (struct auth_claims){items, claims->n + 1};
    return 0;
}

/* ── rows ── */

static const char *const types[] = {
    [AUTH_OFF] = "Off", [AUTH_BASIC] = "Basic", [AUTH_BEARER] = "Bearer", [AUTH_FORWARD] = "Forward", NULL};
static const char *const satisfies[] = {[AUTH_ALL] = "all", [AUTH_ANY] = "any", NULL};

static const struct mk_conf_key host_keys[] = {
    MK_CONF_KEY_PATTERN(struct auth_conf, match, "Match", "/",
                        "Which paths: `=/exact`, `/prefix` with everything below it, a glob such as `*.pdf`, or a "
                        "regular expression such as `~^/v[0-9]+/` (`~*` ignores the case)."),
    MK_CONF_KEY_ENUM(
        struct auth_conf, type, "Type", "Basic",
        "How clients log in. `Basic`: a name and a password (RFC 7617), which should be sent over TLS "
        "only. `Bearer`: a signed token (RFC 6750, RFC 7519), whose `sub` is the name of the user. `Forward`: the "
        "server in `To` is asked about each request. `Off`: not at all, for public paths below protected ones.",
        .names = types),
    MK_CONF_KEY_STRING(struct auth_conf, realm, "Realm", "restricted",
                       "What browsers show when they ask for the password. Paths of one realm share a login."),
    MK_CONF_KEY_PATH(struct auth_conf, users, "Users", NULL,
                     "The file of users and password hashes, which `mk_passwd` writes: `name:hash` in each line, of "
                     "yescrypt, bcrypt, SHA-512, SHA-256 or `$apr1$`. It is read again when it changes."),
    MK_CONF_KEY_PATH(struct auth_conf, groups, "Groups", NULL,
                     "The file of groups: `group: user user` in each line. It is read again when it changes."),
    MK_CONF_KEY_CUSTOM(
        struct auth_conf, require, "Require", NULL,
        "Which users may come in: `valid` (each user of the file, which is the default), `user` with names or "
        "`group` with names. With several lines one of them is enough. Others get 403.",
        .flags = MK_CONF_REPEAT, .unit = "valid | user name ... | group name ...", .parse = parse_require),
    MK_CONF_KEY_BOOL(struct auth_conf, client_certificate, "ClientCertificate", "Off",
                     "Whether a verified client certificate is needed, too; without one: 403. The host must ask for it "
                     "in the handshake: `ClientCertificate Optional` or `Required` in its [TLS]. With `Type Off` the "
                     "certificate is the login, and its subject the name of the user."),
    MK_CONF_KEY_ENUM(struct auth_conf, satisfy, "Satisfy", "all",
                     "`all`: the rules for addresses must not deny the client, and it must log in. `any`: a client "
                     "that such a rule allows needs no login, and a login is enough for one that is denied.",
                     .names = satisfies),
    MK_CONF_KEY_CUSTOM(struct auth_conf, keys, "Keys", NULL,
                       "A file of public keys that tokens are signed with, in PEM or as a JWK set. Further lines add "
                       "files. They are read again when they change.",
                       .flags = MK_CONF_REPEAT, .unit = "path", .parse = parse_keys),
    MK_CONF_KEY_CUSTOM(struct auth_conf, secrets, "Secret", NULL,
                       "A file whose text is the secret of HS256, of 32 bytes or more. It is read again when it "
                       "changes.",
                       .flags = MK_CONF_REPEAT, .unit = "path", .parse = parse_secret),
    MK_CONF_KEY_LIST(struct auth_conf, issuers, "Issuer", NULL,
                     "The claim `iss` of a token must be one of these. Without this key it may be any.",
                     .flags = MK_CONF_REPEAT),
    MK_CONF_KEY_LIST(struct auth_conf, audiences, "Audience", NULL,
                     "The claim `aud` of a token must name one of these. Without this key a token with `aud` is "
                     "refused, since it is for others.",
                     .flags = MK_CONF_REPEAT),
    MK_CONF_KEY_LIST(struct auth_conf, scopes, "Scope", NULL,
                     "The claim `scope` of a token must have all of these; otherwise 403.", .flags = MK_CONF_REPEAT),
    MK_CONF_KEY_CUSTOM(struct auth_conf, claims, "Claim", NULL,
                       "A claim that a token must have, perhaps with a value (`Claim groups staff`; a dot leads into "
                       "an object); otherwise 403. With several lines all are needed.",
                       .flags = MK_CONF_REPEAT, .unit = "name [value]", .parse = parse_claim),
    MK_CONF_KEY_DURATION(struct auth_conf, leeway_ms, "Leeway", "0s",
                         "How much the clocks of the issuer and of this server may differ, for `exp` and `nbf`.",
                         .min = 0, .max = 600000, .unit = "s"),
    MK_CONF_KEY_BOOL(struct auth_conf, expiry_required, "RequireExpiry", "On",
                     "Whether a token without `exp` is refused."),
    MK_CONF_KEY_BOOL(
        struct auth_conf, allow_preflight, "AllowPreflight", "Off",
        "Whether CORS preflight requests pass without a login: browsers never send one with them. With `Satisfy "
        "any`, the client's address must be allowed."),
    MK_CONF_KEY_CUSTOM(
        struct auth_conf, forward.to, "To", NULL,
        "The server that is asked whether a request may pass (`Type Forward`): `http://127.0.0.1:9000/verify`, "
        "`https://auth.example.org/verify`, `unix:/run/auth.sock /verify`, or `http://NAME/verify` with the name of an "
        "`[UPSTREAM]`. It gets a GET with the headers of the client and X-Forwarded-Method, -Proto, -Host, -Uri and "
        "-For. A status of 2xx lets the request pass; the client gets other ones, up to 499.",
        .unit = "URL", .parse = forward_parse_to),
    MK_CONF_KEY_CUSTOM(
        struct auth_conf, forward.copy, "CopyHeaders", NULL,
        "Headers of that answer that are set in the request, for handlers and backends. What the client has sent in "
        "these names is removed in any case, also from requests that need no login here (`Type Off`).",
        .flags = MK_CONF_REPEAT, .unit = "name ...", .parse = forward_parse_names),
    MK_CONF_KEY_CUSTOM(struct auth_conf, forward.user_header, "UserHeader", NULL,
                       "The header of the answer that has the name of the user, for logs and `Require`.",
                       .unit = "name", .parse = forward_parse_name),
    MK_CONF_KEY_DURATION(struct auth_conf, forward.timeout_ms, "ForwardTimeout", "5s",
                         "How long an answer may take, with the connection and other servers of a group; then the "
                         "response is 503.",
                         .min = 1, .max = 3600000, .unit = "s"),
    MK_CONF_KEY_DURATION(struct auth_conf, forward.cache_ms, "ForwardCache", "0",
                         "How long each worker keeps an answer that lets a request pass, for further requests with "
                         "the same method, host, path, query, client address and headers of `ForwardCacheBy`. 0: "
                         "each request is asked about.",
                         .min = 0, .max = 3600000, .unit = "s"),
    MK_CONF_KEY_CUSTOM(struct auth_conf, forward.cache_by, "ForwardCacheBy", "Cookie Authorization",
                       "All headers of the client by which that server decides.", .unit = "name ...",
                       .parse = forward_parse_names),
    MK_CONF_KEY_BOOL(struct auth_conf, forward.set_cookie, "ForwardSetCookie", "Off",
                     "Whether cookies of an answer that lets a request pass are set in its response."),
    MK_CONF_KEY_BOOL(struct auth_conf, forward.tls_verify, "TlsVerify", "On",
                     "Whether the certificate of a server with `https://` is verified."),
    MK_CONF_KEY_STRING(struct auth_conf, forward.tls_name, "TlsName", NULL,
                       "The name or address that this certificate must cover; a name is sent to the server (SNI). If "
                       "it is not set: the host in `To`."),
    MK_CONF_KEY_PATH(struct auth_conf, forward.tls_ca, "TlsCA", NULL,
                     "A PEM file of the authorities to trust, in place of the system's. It is read again when it "
                     "changes."),
    {0},
};

static const struct mk_conf_foreign foreign[] = {
    MK_CONF_RENAMED("Location", "Match"),
    MK_CONF_RENAMED("Title", "Realm"),
    MK_CONF_RENAMED("AuthName", "Realm"),
    MK_CONF_RENAMED("AuthType", "Type"),
    MK_CONF_RENAMED("AuthUserFile", "Users"),
    MK_CONF_RENAMED("AuthGroupFile", "Groups"),
    MK_CONF_RENAMED("auth_basic_user_file", "Users"),
    {"auth_request", "that is `Type Forward` with `To`"},
    {"authResponseHeaders", "that is `CopyHeaders`"},
    {0},
};

static const struct mk_conf_key limit_keys[] = {
    MK_CONF_KEY_INT(struct auth_limits, threads, "HashThreads", "2", "How many password hashes are computed at once.",
                    .min = 1, .max = MK_THREAD_POOL_THREADS_MAX),
    MK_CONF_KEY_INT(struct auth_limits, queue, "HashQueue", "64",
                    "How many requests may wait for a hash; the next ones get 503.", .min = 1, .max = 100000),
    MK_CONF_KEY_DURATION(struct auth_limits, cache_ms, "CacheTime", "5m",
                         "How long a right password is remembered (as a keyed hash), so that not each request "
                         "costs a password hash; 0: not at all. A change of the user's line has its effect at once.",
                         .min = 0, .max = 3600000, .unit = "s"),
    MK_CONF_KEY_DURATION(struct auth_limits, delay_ms, "FailureDelay", "1s",
                         "How long the response to a wrong password or token is held back.", .min = 0, .max = 10000,
                         .unit = "s"),
    MK_CONF_KEY_INT(struct auth_limits, failures, "MaxFailures", "10",
                    "How many wrong passwords and tokens a client (an IPv4 address, an IPv6 /64) may send within "
                    "`FailureTime`; then it gets 429 until that has passed. 0: any number.",
                    .min = 0, .max = 1000000),
    MK_CONF_KEY_DURATION(struct auth_limits, failures_ms, "FailureTime", "5m",
                         "How long failures count, from the first one on.", .min = 1000, .max = 86400000, .unit = "s"),
    MK_CONF_KEY_INT(struct auth_limits, questions, "ForwardRequests", "1024",
                    "How many requests of a worker may wait for an answer with `Type Forward`; further ones get 503.",
                    .min = 1, .max = 100000),
    {0},
};

/* ── checks ── */

/* Reports control characters of a realm, which cannot be sent. */
static void check_realm(const struct mk_conf_check *check, const struct auth_conf *c)
{
    for (size_t i = 0; i < c->realm.len; i++) {
        unsigned char byte = (unsigned char)c->realm.p[i];
        if (byte >= 0x20 && byte < 0x7f)
            continue;
        mk_conf_error(check, offsetof(struct auth_conf, realm), "a realm is printable ASCII (RFC 7235)");
        return;
    }
}

static bool needs_groups(const struct auth_conf *c)
{
    const struct auth_require *r = c->require;
    while (r && r->kind != AUTH_REQUIRE_GROUP)
        r = r->next;
    return r;
}

/* Reports keys of tokens in a section of another type. */
static void check_no_tokens(const struct mk_conf_check *check, const struct auth_conf *c)
{
    if (c->keys.n || c->secrets.n)
        mk_conf_error(check, c->keys.n ? offsetof(struct auth_conf, keys) : offsetof(struct auth_conf, secrets),
                      "only \"Type Bearer\" has tokens and their keys");
}

/* Reports keys of `Type Forward` in a section of another type. With Off, CopyHeaders removes headers. */
static void check_no_forward(const struct mk_conf_check *check, const struct auth_conf *c)
{
    const struct forward_conf *f = &c->forward;
    const struct {
        bool is_set;
        size_t offset;
    } rows[] = {
        {f->to.text.p, offsetof(struct auth_conf, forward.to)},
        {f->copy.n && c->type != AUTH_OFF, offsetof(struct auth_conf, forward.copy)},
        {f->user_header.len, offsetof(struct auth_conf, forward.user_header)},
        {f->cache_ms, offsetof(struct auth_conf, forward.cache_ms)},
        {f->set_cookie, offsetof(struct auth_conf, forward.set_cookie)},
        {f->tls_name.len, offsetof(struct auth_conf, forward.tls_name)},
        {f->tls_ca.len, offsetof(struct auth_conf, forward.tls_ca)},
    };
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (rows[i].is_set)
            mk_conf_error(check, rows[i].offset, "only \"Type Forward\" asks another server");
}

static void check_basic(const struct mk_conf_check *check, const struct auth_conf *c)
{
    check_no_tokens(check, c);
    check_no_forward(check, c);
    if (!c->users.len && !mk_conf_is_wrong(check, offsetof(struct auth_conf, users)))
        mk_conf_error(check, offsetof(struct auth_conf, type),
                      "\"Users\" is missing: the file of users, which mk_passwd writes");
    if (needs_groups(c) && !c->groups.len && !mk_conf_is_wrong(check, offsetof(struct auth_conf, groups)))
        mk_conf_error(check, offsetof(struct auth_conf, require), "\"Groups\" is missing: the file of groups");
    if (c->groups.len && !needs_groups(c) && !mk_conf_is_wrong(check, offsetof(struct auth_conf, require)))
        mk_conf_warn(check, offsetof(struct auth_conf, groups),
                     "\"Groups\" has no effect without a line \"Require group\"");
}

static void check_bearer(const struct mk_conf_check *check, const struct auth_conf *c)
{
    bool is_wrong = mk_conf_is_wrong(check, offsetof(struct auth_conf, keys)) ||
                    mk_conf_is_wrong(check, offsetof(struct auth_conf, secrets));
    check_no_forward(check, c);
    if (!c->keys.n && !c->secrets.n && !is_wrong)
        mk_conf_error(check, offsetof(struct auth_conf, type),
                      "\"Keys\" or \"Secret\" is missing: the files of the keys that tokens are signed with");
    if (c->users.len || c->groups.len)
        mk_conf_error(check, c->users.len ? offsetof(struct auth_conf, users) : offsetof(struct auth_conf, groups),
                      "the users and groups of tokens are in their claims: use \"Require user\" and \"Claim\"");
    else if (needs_groups(c))
        mk_conf_error(check, offsetof(struct auth_conf, require),
                      "the groups of tokens are in their claims: use a line such as \"Claim groups staff\"");
}

/* Checks the keys of TLS, which a server without TLS has no use for. */
static void check_forward_tls(const struct mk_conf_check *check, const struct forward_conf *f)
{
    if (!f->to.is_tls && (f->tls_name.len || f->tls_ca.len))
        mk_conf_error(check,
                      f->tls_name.len ? offsetof(struct auth_conf, forward.tls_name)
                                      : offsetof(struct auth_conf, forward.tls_ca),
                      "connections to this server have no TLS: To must begin with https://");
    if (!f->tls_verify)
        mk_conf_warn(check, offsetof(struct auth_conf, forward.tls_verify),
                     "the certificate of the server is not verified, so that anyone on the way can let requests pass; "
                     "TlsCA names an authority of your own");
}

static void check_forward(const struct mk_conf_check *check, const struct auth_conf *c)
{
    check_no_tokens(check, c);
    if (!c->forward.to.text.p && !mk_conf_is_wrong(check, offsetof(struct auth_conf, forward.to)))
        mk_conf_error(check, offsetof(struct auth_conf, type), "\"To\" is missing: the server that is asked");
    else if (c->forward.to.dial)
        check_forward_tls(check, &c->forward);
    if (c->users.len || c->groups.len)
        mk_conf_error(check, c->users.len ? offsetof(struct auth_conf, users) : offsetof(struct auth_conf, groups),
                      "the server in \"To\" knows the users and groups");
    else if (needs_groups(c))
        mk_conf_error(check, offsetof(struct auth_conf, require), "the server in \"To\" knows the groups");
    else if (c->require && !c->forward.user_header.len &&
             !mk_conf_is_wrong(check, offsetof(struct auth_conf, forward.user_header)))
        mk_conf_error(check, offsetof(struct auth_conf, require),
                      "\"UserHeader\" is missing: the header of the answer that has the name of the user");
}

static void check_off(const struct mk_conf_check *check, const struct auth_conf *c)
{
    check_no_tokens(check, c);
    check_no_forward(check, c);
    if (c->users.len)
        mk_conf_warn(check, offsetof(struct auth_conf, users), "\"Users\" has no effect: \"Type\" is Off");
    if (c->require)
        mk_conf_error(check, offsetof(struct auth_conf, require), "\"Require\" needs a login, but \"Type\" is Off");
}

static void check_auth(const struct mk_conf_check *check, void *section)
{
    const struct auth_conf *c = section;
    if (mk_conf_is_wrong(check, offsetof(struct auth_conf, type)))
        return;
    mk_conf_warn_one_level(check, offsetof(struct auth_conf, match), &c->match);
    check_realm(check, c);
    static void (*const checks[])(const struct mk_conf_check *check,
                                  const struct auth_conf *c) = {[AUTH_OFF] = check_off,
                                                                [AUTH_BASIC] = check_basic,
                                                                [AUTH_BEARER] = check_bearer,
                                                                [AUTH_FORWARD] = check_forward};
    checks[c->type](check, c);
}

static const struct mk_conf_short_form short_form = {
    .name = "Login",
    .key = "Users",
    .doc = MK_CONF_DOC(
        "Clients must log in as one of the users in a file that `mk_passwd` has written: `Login users.txt`, "
        "or for some paths only `Login /private users.txt`."),
};

enum { HOST, LIMITS };

const struct mk_conf_section auth_sections[] = {
    [HOST] = {.name = "AUTH",
              .scope = MK_CONF_SCOPE_HOST,
              .flags = MK_CONF_REPEAT,
              .size = sizeof(struct auth_conf),
              .keys = host_keys,
              .foreign = foreign,
              .short_form = &short_form,
              .check = check_auth,
              .doc =
                  MK_CONF_DOC("Paths for which clients must log in. The first section that matches a path is used, as "
                              "a whole; paths that none matches are public.")},
    [LIMITS] = {.name = "AUTH_LIMITS",
                .scope = MK_CONF_SCOPE_SERVER,
                .size = sizeof(struct auth_limits),
                .keys = limit_keys,
                .doc = MK_CONF_DOC("What logins may cost, for the whole server.")},
    {0},
};

const struct auth_conf *settings_first(const struct mk_host *host)
{
    return mk_host_conf(host, &auth_sections[HOST]);
}

const struct auth_conf *settings_next(const struct mk_host *host, const struct auth_conf *conf)
{
    return mk_host_conf_next(host, &auth_sections[HOST], conf);
}

const struct auth_limits *settings_limits(const struct mk_generation *g)
{
    return mk_generation_conf(g, &auth_sections[LIMITS]);
}

int settings_check_order(struct mk_host *host)
{
    return mk_host_check_patterns(host, &auth_sections[HOST], offsetof(struct auth_conf, match));
}
