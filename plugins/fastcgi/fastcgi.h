// SPDX-License-Identifier: Apache-2.0
#ifndef FASTCGI_FASTCGI_H
#define FASTCGI_FASTCGI_H

#include <monkey/kit/cgi.h>
#include <monkey/kit/child.h>
#include <monkey/kit/fastcgi.h>
#include <monkey/kit/gateway.h>
#include <monkey/kit/target.h>

/*
 * Processes of applications that the server starts itself (Spawn): they accept connections at one socket of the server,
 * which is their standard input, as FastCGI says. One that ends is started again, after a delay that grows.
 *
 *     worker_serve ─► spawns_hold ─► pool: socket, children ─► (ends) ─► timer ─► started again
 *     worker_stop  ─► spawns_put  ─► without a hold, in the next turn: SIGTERM, SIGKILL after a time
 *
 * Pools are of the process: a reload that leaves the line as it is leaves the children alone. All in the thread of the
 * first worker, of one server of the process.
 */
enum { SPAWN_CHILDREN_MAX = 256 };

/* What a section says; constant. */
struct spawn_conf {
    struct mk_str text;      /* as it was written; empty: not set */
    struct mk_str args;      /* each ends with a NUL */
    const char *program;     /* absolute */
    const char *folder;      /* of the socket; it does not exist before a pool is made */
    struct mk_target target; /* the socket */
};

/* Parses a program and its arguments into a struct spawn_conf; mk_conf_parse_fn. */
int spawn_parse(const struct mk_conf_value *value, void *conf, struct mk_arena *arena, struct mk_buf *error);

struct spawns;

/* Makes the state of the process, and frees it when all workers have stopped. Returns NULL without memory. */
struct spawns *spawns_new(void);
void spawns_free(struct spawns *all);

/*
 * A worker serves that may hold pools, in its thread. Returns false if it cannot: its children are another server's, or
 * there is no memory, which is logged.
 */
bool spawns_begin(struct spawns *all, struct mk_worker *worker);
/* Tells whether it has begun. */
bool spawns_has(struct spawns *all, const struct mk_worker *worker);
/* Holds the pool of a section, with so many children; and ends that. Between begin and end. */
void spawns_hold(struct spawns *all, const struct spawn_conf *conf, unsigned n_children);
void spawns_put(struct spawns *all, const struct spawn_conf *conf);
/* The worker has put all of them, and stops. With the last one all children are ended. */
void spawns_end(struct spawns *all, const struct mk_worker *worker);

/* ── sockets of Spawn, each in a folder that only this user may enter ── */

/* How the names of folders begin; the number of the process and a dash follow. */
#define SPAWN_SOCKET_PREFIX "monkey-fastcgi-"
#define SPAWN_SOCKET_NAME "/socket"

/*
 * Makes the folder, which must not exist, and listens at the socket in it. Removes folders that killed servers have
 * left next to it. Returns a descriptor or -errno.
 */
int spawn_socket_open(const char *folder);
/* Closes the socket, and removes both. */
void spawn_socket_close(const char *folder, int fd);
/* Removes folders that servers of this user have left in `parent`: nothing listens there, for a minute at least. */
void spawn_socket_sweep(const char *parent);

/* ── the directives of [FASTCGI] and [SCGI] ── */

enum { FASTCGI_TRIES_MAX = 16 };

/* What an entry of TryFiles is. */
enum fastcgi_try_kind {
    FASTCGI_TRY_FILE,   /* $path */
    FASTCGI_TRY_FOLDER, /* $path/ */
    FASTCGI_TRY_SCRIPT, /* a name that Split matches, after $path or alone */
    FASTCGI_TRY_STATUS, /* =404 */
};

struct fastcgi_try {
    enum fastcgi_try_kind kind;
    bool has_path;      /* FASTCGI_TRY_SCRIPT: it begins with $path */
    struct mk_str text; /* of a script, after $path */
    int status;
};

struct fastcgi_tries {
    struct fastcgi_try items[FASTCGI_TRIES_MAX];
    uint32_t n;
};

/* A section; constant once the configuration is loaded. */
struct fastcgi_conf {
    struct mk_gateway_conf gateway;
    struct mk_conf_list split;  /* extensions with their dots; empty: each path is the application's */
    struct mk_str index;        /* empty: none */
    struct fastcgi_tries tries; /* none: by Split and Index alone */
    struct mk_str remote_root;  /* empty: scripts are below the document root of the host */
    struct mk_cgi_extras params;
    bool pass_authorization;
    int encoded_slash;       /* enum mk_encoded_slash */
    struct spawn_conf spawn; /* in place of To */
    int64_t children;        /* of it; 0: not set */
};

enum { FASTCGI_SECTION, SCGI_SECTION };
extern const struct mk_conf_section fastcgi_sections[];

/*
 * What a path means for a section with Split: which script is run for it, or that it is a file. Looks at files, and so
 * may block.
 */
enum resolve_kind {
    RESOLVE_RUN,      /* a script */
    RESOLVE_DECLINE,  /* a file, or nothing that this section knows: for other plugins */
    RESOLVE_REDIRECT, /* a folder, to which the path with a slash leads */
    RESOLVE_STATUS,
};

struct resolution {
    enum resolve_kind kind;
    int status;                   /* of RESOLVE_STATUS */
    struct mk_cgi_script script;  /* of RESOLVE_RUN */
    char path[MK_CGI_PATH_BYTES]; /* that `script` points into */
};

/* Finds what a path means, which is decoded, normalized, begins with a slash and ends with a NUL. Any thread. */
void resolve_path(const struct fastcgi_conf *conf, const struct mk_host *host, struct mk_str path,
                  struct resolution *ret);
/* Adds what a path means, as a sentence without a full stop; nothing for RESOLVE_DECLINE. */
void resolve_explain(const struct resolution *found, struct mk_buf *out);

/* ── what a path means, found on a disk thread ── */

/* Gets the result, valid during the call. Is not called if the request has ended. */
typedef void (*lookup_fn)(struct mk_request *req, const struct fastcgi_conf *conf, const struct resolution *found);

/* Runs resolve_path() for the path of a request, then `fn` in the worker. Returns 0, -ENOMEM or -EAGAIN. */
int lookup_start(struct mk_request *req, const struct fastcgi_conf *conf, lookup_fn fn);

/* ── requests: FastCGI records, or an SCGI netstring, with the variables of RFC 3875 ── */

/* What a request asks for; in the arena of the request. */
struct fastcgi_script {
    struct mk_str name, info;     /* SCRIPT_NAME and PATH_INFO */
    struct mk_str filename, root; /* SCRIPT_FILENAME and DOCUMENT_ROOT; `.p` NULL: there is none */
    const char *log_prefix;       /* of lines that the application writes to stderr */
};

extern const struct mk_gateway_frames request_stdin; /* of FastCGI */

/*
 * Scripts that were found in the last second, by the paths of requests: a busy script is not looked for on a disk
 * thread each time. That a file was removed or replaced is seen a second later, as with the root of a host. Of a worker
 * and a host; in the worker's thread.
 */
enum { RECENT_MS = 1000, RECENT_SLOTS = 64 };

struct recent_script {
    const struct fastcgi_conf *conf; /* NULL: the slot is empty */
    uint64_t end_ms;
    struct mk_str path;           /* of the request */
    struct fastcgi_script script; /* without a prefix for the log */
    size_t bytes;                 /* of the strings, from path.p on */
};

/* Zeros at first. */
struct recent {
    struct recent_script slots[RECENT_SLOTS];
};

/* Returns the script of a path, valid until the next recent_add(); NULL: it must be looked for. */
const struct fastcgi_script *recent_find(const struct recent *r, const struct fastcgi_conf *conf, struct mk_str path,
                                         uint64_t now_ms);
/* Adds a script, whose strings are copied, in place of another one; does nothing without memory. */
void recent_add(struct recent *r, const struct fastcgi_conf *conf, struct mk_str path,
                const struct fastcgi_script *script, uint64_t now_ms);
void recent_release(struct recent *r);

/*
 * Reads responses: FastCGI records, and the head that an application writes as one of CGI. Functions of struct
 * mk_gateway_protocol.
 */

/* What is kept of a response, of mk_gateway_call.state. Zeros at first. */
struct fastcgi_response {
    struct mk_cgi_head head;
    struct mk_fastcgi_decoder decoder;
    bool is_kept; /* the connection, by both sides */
    struct mk_cgi_stderr error_output;
};

int response_unwrap(const struct mk_gateway_call *c, char *bytes, size_t *len, bool *ret_has_excess);
bool response_keeps_conn(const struct mk_gateway_call *c);
int response_parse_head(const struct mk_gateway_call *c, struct mk_response_parser *p, struct mk_field *fields,
                        struct mk_str bytes);
const char *response_describe_fault(const struct mk_gateway_call *c, int err);

/* ── FastCGI and SCGI, as <monkey/kit/gateway.h> uses them ── */

extern const struct mk_gateway_protocol fastcgi_protocol, scgi_protocol;

#endif
