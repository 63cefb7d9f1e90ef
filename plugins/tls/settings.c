// SPDX-License-Identifier: Apache-2.0
/*
 * The keys of [TLS]. certificates.c and handshake.c read the files.
 */
#include "tls.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static int parse_path(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct tls_paths *paths = field;
    if (!value->text.len)
        return mk_conf_fail(error, "the path of a file is missing");
    struct mk_str *items = mk_arena_grow(arena, paths->items, paths->n, sizeof(*items));
    struct mk_str path;
    int err = items ? mk_conf_read_path(value, value->text, &path, arena, error) : -ENOMEM;
    if (err < 0)
        return err;
    items[paths->n] = path;
    *paths = (struct tls_paths){items, paths->n + 1};
    return 0;
}

/* ── Strict-Transport-Security (RFC 6797) ── */

static const struct {
    const char *suffix;
    uint64_t seconds;
} units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};

static bool parse_age(struct mk_str word, uint64_t *ret_seconds)
{
    size_t digits = 0;
    while (digits < word.len && word.p[digits] >= '0' && word.p[digits] <= '9')
        digits++;
    for (size_t i = 0; i < MK_COUNT_OF(units); i++)
        if (mk_str_eq(mk_str_after(word, digits), mk_str_c(units[i].suffix)) &&
            mk_str_u64(mk_str(word.p, digits), UINT32_MAX, ret_seconds)) {
            *ret_seconds *= units[i].seconds;
            return *ret_seconds <= INT32_MAX;
        }
    return false;
}

int settings_parse_hsts(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    static const char *const options[] = {"includeSubDomains", "preload"};
    struct mk_str *hsts = field;
    uint64_t seconds;
    char text[80];
    bool wanted[2] = {false, false};
    if (value->n == 1 && mk_str_ieq(value->words[0], MK_STR("Off"))) {
        *hsts = MK_STR("");
        return 0;
    }
    if (value->n < 1 || !parse_age(value->words[0], &seconds)) {
        mk_buf_addf(error, "a time is needed, such as 365d, which includeSubDomains and preload may follow; or Off");
        return -EINVAL;
    }
    for (uint32_t i = 1; i < value->n; i++) {
        bool known = false;
        for (unsigned k = 0; k < 2; k++)
            if (mk_str_ieq(value->words[i], mk_str_c(options[k])))
                known = wanted[k] = true;
        if (!known)
            return mk_conf_fault(value, i, 0, error, "only includeSubDomains and preload may follow the time");
    }
    snprintf(text, sizeof(text), "max-age=%" PRIu64 "%s%s", seconds, wanted[0] ? "; includeSubDomains" : "",
             wanted[1] ? "; preload" : "");
    *hsts = mk_arena_dup(arena, mk_str_c(text));
    return hsts->p ? 0 : -ENOMEM;
}

/* ── rows ── */

/* Of the server; hosts have another name before them, which refers to the server's. */
static const char *const profiles[] = {"server", [1 + TLS_INTERMEDIATE] = "intermediate", [1 + TLS_MODERN] = "modern",
                                       NULL};
static const char *const redirects[] = {"server", [1 + TLS_REDIRECT_OFF] = "Off", [1 + TLS_REDIRECT_HTTPS] = "https",
                                        NULL};

#define PROFILE_DOC \
    "Mozilla's profiles: `intermediate` is TLS 1.2 and 1.3 with forward secrecy, `modern` is TLS 1.3 only."
#define HSTS_DOC \
    "Tells browsers to use only https for this host, for that time (RFC 6797): `365d`; `includeSubDomains` and " \
    "`preload` may follow. `Off`: not."
#define REDIRECT_DOC \
    "`https`: redirects unencrypted requests to the same URI with https, at the port of the first listener with " \
    "`tls`: 301, or 308 if the method is neither GET nor HEAD. A `Host` that is neither a name of this host nor the " \
    "address of the connection is replaced by the first name. Paths of `[HEALTH]` and `[STATUS]` are not redirected."

static const struct mk_conf_key server_keys[] = {
    MK_CONF_KEY_PATH(struct tls_server_conf, ticket_keys, "TicketKeys", NULL,
                     "A file of keys for session tickets, to share between machines: 80 random bytes for each key "
                     "(`openssl rand 80`), one behind the other. The first encrypts tickets, all decrypt them. Without "
                     "this key the process has random keys, which rotate."),
    MK_CONF_KEY_DURATION(struct tls_server_conf, ticket_lifetime_ms, "TicketLifetime", "12h",
                         "How long a client may resume its session with a ticket. Random keys rotate as often.",
                         .min = 60000, .max = 604800000, .unit = "s"),
    MK_CONF_KEY_BOOL(struct tls_server_conf, ktls, "KernelTLS", "On",
                     "Let the kernel encrypt what is sent (kTLS), if it can; `monkey -b` says so."),
    MK_CONF_KEY_BOOL(struct tls_server_conf, self_signed, "SelfSigned", "Off",
                     "For trials: if the default host has no certificate, the server makes a self-signed one, which no "
                     "client trusts. The option `--https` sets this."),
    MK_CONF_KEY_ENUM(struct tls_server_conf, profile, "Profile", "intermediate",
                     "For all hosts whose `[TLS]` does not set it. " PROFILE_DOC, .names = profiles + 1),
    MK_CONF_KEY_CUSTOM(struct tls_server_conf, hsts, "StrictTransportSecurity", NULL,
                       "For all hosts whose `[TLS]` does not set it. " HSTS_DOC,
                       .unit = "time [includeSubDomains] [preload]", .parse = settings_parse_hsts),
    MK_CONF_KEY_ENUM(struct tls_server_conf, redirect, "Redirect", "Off",
                     "For all hosts whose `[TLS]` does not set it. " REDIRECT_DOC, .names = redirects + 1),
    {0},
};

static const char *const modes[] = {
    [TLS_CLIENT_OFF] = "Off", [TLS_CLIENT_OPTIONAL] = "Optional", [TLS_CLIENT_REQUIRED] = "Required", NULL};

#define KEY_PATHS(field, key, manual) \
    MK_CONF_KEY_CUSTOM(struct tls_host_conf, field, key, NULL, manual, .flags = MK_CONF_REPEAT, .unit = "path", \
                       .parse = parse_path)

static const struct mk_conf_key host_keys[] = {
    KEY_PATHS(
        certificates, "Certificate",
        "The host's certificate in a PEM file, followed by the intermediate certificates. A second one, such as RSA "
        "in addition to ECDSA, has its own line."),
    KEY_PATHS(
        keys, "CertificateKey",
        "The private key of each `Certificate`, in the same order. Only owner and group of the file may read it."),
    KEY_PATHS(chains, "CertificateChain",
              "The intermediate certificates of each `Certificate`, if they are not in its file, in the same order."),
    KEY_PATHS(ocsp_files, "OCSPFile",
              "An OCSP response (DER) for each `Certificate`, in the same order, which is sent to clients that ask for "
              "it."),
    MK_CONF_KEY_ENUM(struct tls_host_conf, profile, "Profile", "server",
                     PROFILE_DOC " `server`: that of `[TLS]` in `monkey.conf`.", .names = profiles),
    MK_CONF_KEY_ENUM(struct tls_host_conf, client, "ClientCertificate", "Off",
                     "Whether clients are asked for a certificate. `Optional`: they may send none, but not an invalid "
                     "one. `Required`: without a valid one the handshake fails.",
                     .names = modes),
    MK_CONF_KEY_PATH(struct tls_host_conf, client_ca, "ClientCA", NULL,
                     "A PEM file of the authorities that sign client certificates. Each is trusted as it is: an "
                     "intermediate one needs no root."),
    MK_CONF_KEY_INT(struct tls_host_conf, depth, "ClientDepth", "3",
                    "How many authorities may stand between the client's certificate and one of `ClientCA`.", .min = 0,
                    .max = 20),
    MK_CONF_KEY_CUSTOM(struct tls_host_conf, hsts, "StrictTransportSecurity", NULL,
                       HSTS_DOC " Without this key that of `[TLS]` in `monkey.conf` holds.",
                       .unit = "time [includeSubDomains] [preload]", .parse = settings_parse_hsts),
    MK_CONF_KEY_ENUM(struct tls_host_conf, redirect, "Redirect", "server",
                     REDIRECT_DOC " `server`: as `[TLS]` in `monkey.conf` says.", .names = redirects),
    {0},
};

enum {
    CERTIFICATES = offsetof(struct tls_host_conf, certificates),
    CLIENT = offsetof(struct tls_host_conf, client),
    CLIENT_CA = offsetof(struct tls_host_conf, client_ca),
};

/* Checks that a key has one line for each certificate, or none. */
static void check_count(const struct mk_conf_check *check, const struct tls_paths *certificates,
                        const struct tls_paths *others, size_t offset, const char *name)
{
    if (mk_conf_is_wrong(check, offset) || mk_conf_is_wrong(check, CERTIFICATES))
        return; /* the line that is missing may be the one that was reported */
    if (others->n > certificates->n)
        mk_conf_error_nth(check, offset, certificates->n, "there is no \"Certificate\" for this \"%s\"", name);
    else if (others->n && others->n < certificates->n)
        mk_conf_error_nth(check, offsetof(struct tls_host_conf, certificates), others->n,
                          "there is no \"%s\" for this \"Certificate\", but one for another", name);
}

static void check_host(const struct mk_conf_check *check, void *section)
{
    const struct tls_host_conf *h = section;
    if (h->certificates.n && !h->keys.n && !mk_conf_is_wrong(check, offsetof(struct tls_host_conf, keys)))
        mk_conf_error(check, offsetof(struct tls_host_conf, certificates),
                      "there is no \"CertificateKey\" for this \"Certificate\"");
    check_count(check, &h->certificates, &h->keys, offsetof(struct tls_host_conf, keys), "CertificateKey");
    check_count(check, &h->certificates, &h->chains, offsetof(struct tls_host_conf, chains), "CertificateChain");
    check_count(check, &h->certificates, &h->ocsp_files, offsetof(struct tls_host_conf, ocsp_files), "OCSPFile");
    if (h->client != TLS_CLIENT_OFF && !h->client_ca.len && !mk_conf_is_wrong(check, CLIENT_CA))
        mk_conf_error(check, offsetof(struct tls_host_conf, client),
                      "\"ClientCA\" is missing: set the file of the authorities that sign client certificates");
    if (h->client == TLS_CLIENT_OFF && h->client_ca.len && !mk_conf_is_wrong(check, CLIENT))
        mk_conf_warn(check, offsetof(struct tls_host_conf, client_ca),
                     "\"ClientCA\" has no effect: \"ClientCertificate\" is Off, and all clients are served");
    if (h->client != TLS_CLIENT_OFF && !h->certificates.n && !mk_conf_is_wrong(check, CERTIFICATES))
        mk_conf_error(check, offsetof(struct tls_host_conf, client),
                      "a host that asks clients for certificates needs its own \"Certificate\"");
}

static const struct mk_conf_short_value short_values[] = {{"https", "https"}, {0}};

static const struct mk_conf_short_form short_form = {
    .name = "Redirect",
    .key = "Redirect",
    .values = short_values,
    .doc = MK_CONF_DOC("Redirects unencrypted requests to the same URI with https: `Redirect https`."),
};

enum { SERVER, HOST };

const struct mk_conf_section tls_sections[] = {
    [SERVER] = {.name = "TLS",
                .scope = MK_CONF_SCOPE_SERVER,
                .size = sizeof(struct tls_server_conf),
                .keys = server_keys,
                .doc = MK_CONF_DOC(
                    "Encrypted connections (`Listen 443 tls`), settings of the server, and defaults for its "
                    "hosts. Certificates are set in the hosts.")},
    [HOST] = {.name = "TLS",
              .scope = MK_CONF_SCOPE_HOST,
              .size = sizeof(struct tls_host_conf),
              .keys = host_keys,
              .short_form = &short_form,
              .check = check_host,
              .doc = MK_CONF_DOC("Certificates and settings of this host at listeners with `tls`. A host without a "
                                 "certificate uses that of the default host.")},
    {0},
};

const struct tls_server_conf *settings_get_server(const struct mk_generation *g)
{
    return mk_generation_conf(g, &tls_sections[SERVER]);
}

const struct tls_host_conf *settings_get_host(const struct mk_host *host)
{
    return mk_host_conf(host, &tls_sections[HOST]);
}

enum tls_profile settings_profile(const struct tls_server_conf *server, const struct tls_host_conf *host)
{
    return (enum tls_profile)(host->profile ? host->profile - 1 : server->profile);
}

enum tls_redirect settings_redirect(const struct tls_server_conf *server, const struct tls_host_conf *host)
{
    return (enum tls_redirect)(host->redirect ? host->redirect - 1 : server->redirect);
}

struct mk_str settings_hsts(const struct tls_server_conf *server, const struct tls_host_conf *host)
{
    return host->hsts.p ? host->hsts : server->hsts;
}
