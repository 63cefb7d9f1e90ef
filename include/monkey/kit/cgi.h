// SPDX-License-Identifier: Apache-2.0
/*
 * What plugins for scripts share, whatever carries the bytes (a process of CGI, FastCGI, SCGI): which file is the
 * script, the variables of a request (RFC 3875), the head of the response, and lines of error output.
 *
 *     path ─► mk_cgi_split(), or a walk along the folders ─► mk_cgi_lookup()
 *         ─► mk_cgi_write_variables() ─► environment, FastCGI pairs or netstring
 *     output ─► mk_cgi_head_parse() ─► mk_cgi_find_local_redirect(), mk_cgi_pass_head() ─► response
 *
 * In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_CGI_H
#define MONKEY_CGI_H

#include "../base/response_parser.h"
#include "../plugin.h"
#include "variables.h"

MK_C_BEGIN

/* ── scripts ── */

enum { MK_CGI_SEGMENTS_MAX = 64, MK_CGI_PATH_BYTES = 4096 };

/*
 * Splits a decoded path after the first segment that ends with one of the extensions (".php"): `*ret_script` and the
 * rest, which is empty or begins with a slash. Compares bytes, so ".PHP" and letters of other scripts never match. A
 * segment that is the extension alone has no name and does not match. Pure.
 * Returns false if no segment matches.
 */
MK_API bool mk_cgi_split(struct mk_str path, const struct mk_conf_list *extensions, struct mk_str *ret_script,
                         struct mk_str *ret_info);

/* Where scripts are. */
struct mk_cgi_place {
    const struct mk_host *host;
    /*
     * A folder, with a NUL after it, in which links may not lead outside and names that begin with a dot are not
     * found. `.p` NULL: what the host serves as files, by its rules (mk_host_open_path() with MK_OPEN_SOURCE).
     */
    struct mk_str root;
};

/* A script that was found. */
struct mk_cgi_script {
    struct mk_str name, info; /* the two parts of the path; `info` is empty or begins with a slash */
    uint32_t mode;            /* st_mode of the file, which is a regular one */
    bool may_run;             /* the server's user may execute it */
    char file[MK_CGI_PATH_BYTES], root[MK_CGI_PATH_BYTES]; /* real paths of the file and of the folder */
};

enum mk_cgi_find {
    MK_CGI_FIND_EXACT, /* the path is that of the script */
    MK_CGI_FIND_WALK,  /* the first regular file along the path is the script; what follows it is `info` */
};

/*
 * Finds a script below a place. `path` is decoded, normalized and begins with a slash. May block: see mk_cgi_lookup().
 * Any thread. The strings of `ret` point into `path`.
 * Returns 0, -ENOENT and similar (there is none), -EISDIR (a folder) or another -errno.
 */
MK_API int mk_cgi_find_script(const struct mk_cgi_place *place, enum mk_cgi_find how, struct mk_str path,
                              struct mk_cgi_script *ret);

/* Gets the result of mk_cgi_find_script(); `script` is valid during the call. Is not called if the request has ended.
 */
typedef void (*mk_cgi_found_fn)(struct mk_request *req, int err, const struct mk_cgi_script *script, void *ctx);
/*
 * Runs mk_cgi_find_script() on a disk thread, then `fn` in the worker. Copies `path`; `place->root` and the host must
 * be of the generation of the request.
 * Returns 0, -ENOMEM or -EAGAIN (the server ends).
 */
MK_API int mk_cgi_lookup(struct mk_request *req, const struct mk_cgi_place *place, enum mk_cgi_find how,
                         struct mk_str path, mk_cgi_found_fn fn, void *ctx);

/* ── requests ── */

/*
 * Responds to TRACE with 405: an application that sends the request back would show its cookies and logins to scripts
 * of the client. Returns whether it has.
 */
MK_API bool mk_cgi_refuse_method(struct mk_request *req);
/*
 * Has rules and logins decide about the path of the script, where that of the request differs (it is a folder's, or a
 * PATH_INFO follows): mk_request_decide_access(). `name` is decoded, as in struct mk_cgi_script. In on_content, or
 * later.
 * Returns true if the script may run now. Else another response is made, or on_content of the caller is called again.
 */
MK_API bool mk_cgi_may_run(struct mk_request *req, struct mk_str name);

/* ── variables ── */

/* A variable that the configuration sets. */
struct mk_cgi_extra {
    struct mk_cgi_extra *next;
    struct mk_str name;
    const struct mk_text_piece *value;
};

/* In the order of the lines. */
struct mk_cgi_extras {
    struct mk_cgi_extra *first, **last;
};

/* Parses a name and a value with variables of the request (<monkey/kit/variables.h>), an mk_conf_parse_fn; repeats. */
MK_API int mk_cgi_parse_extra(const struct mk_conf_value *value, void *extras, struct mk_arena *arena,
                              struct mk_buf *error);

/* What else the variables of a request need. Strings with `.p` NULL are left out. */
struct mk_cgi_params {
    struct mk_str script_name, path_info; /* decoded */
    struct mk_str script_filename, document_root;
    bool has_length;         /* the length of the body is known */
    uint64_t length;         /* with has_length */
    bool pass_authorization; /* HTTP_AUTHORIZATION */
    const struct mk_cgi_extras *extras;
    /* For a redirect that the server follows: what is asked for instead, with GET and without a body. */
    bool is_redirected;
    struct mk_str uri, query;
};

typedef int (*mk_cgi_variable_fn)(struct mk_str name, struct mk_str value, void *ctx);
/*
 * Calls `fn` for each variable, until it returns a negative result: those of RFC 3875, those that applications read
 * besides (REQUEST_URI, SCRIPT_FILENAME, DOCUMENT_ROOT, DOCUMENT_URI, SERVER_ADDR, REMOTE_PORT, REQUEST_SCHEME, HTTPS,
 * REDIRECT_STATUS, SSL_*), HTTP_* and those of `extras`, which replace others of the same name. No name comes twice.
 *
 * Only headers whose names have nothing but letters, digits and hyphens become HTTP_*: "_" would be taken for "-".
 * Repeated headers are joined. Left out are Proxy (HTTP_PROXY would be a setting of the script's HTTP client),
 * Content-Length and Content-Type (which have variables of another name), Authorization unless told, and all that
 * belongs to the connection.
 * Returns 0, the result of `fn` or -ENOMEM.
 */
MK_API int mk_cgi_write_variables(struct mk_request *req, const struct mk_cgi_params *params, mk_cgi_variable_fn fn,
                                  void *ctx);

/*
 * Writes the name of a header's variable: HTTP_ and the name in capitals with "_" for "-", as much of it as fits; at
 * least five bytes do. Returns its length.
 */
MK_API size_t mk_cgi_header_variable(struct mk_str header, char *to, size_t size);

/* ── the head of a response (RFC 3875 section 6) ── */

struct mk_cgi_head {
    const struct mk_response_limits *limits;
    struct mk_head_parser lines; /* private */
    bool has_status;
    /* Valid once mk_cgi_head_parse() has returned 0: */
    bool has_length, has_type;
    uint16_t status; /* 200 to 999; without Status 200, or 302 with Location */
    uint16_t n_fields;
    uint16_t head_bytes;            /* with the empty line; the body follows */
    uint64_t length;                /* with has_length */
    struct mk_span location;        /* Location; len 0: none */
    struct mk_response_fault fault; /* after -EINVAL */
};

/* Begins a head. `limits` must stay valid; of them those of chunks are not used. */
MK_API void mk_cgi_head_init(struct mk_cgi_head *h, const struct mk_response_limits *limits);
/*
 * Continues with a head, as mk_response_parser_head(): `head` begins with its first byte and has grown since the last
 * call, and may have moved; `fields` has room for limits->fields_max and keeps its content. Accepts and refuses lines
 * as that does. Pure and resumable: reads nothing, allocates nothing and keeps no pointer to the bytes.
 * Returns 0 (the head is complete), MK_AGAIN (more bytes are needed), -EINVAL (malformed: no field at all, Status,
 * Location, Content-Type or Content-Length twice or with a value that is none, Transfer-Encoding, the status line of a
 * non-parsed header script) or -EMSGSIZE (above a limit). Errors are final.
 */
MK_API int mk_cgi_head_parse(struct mk_cgi_head *h, struct mk_field *fields, struct mk_str head);

/*
 * Parses a head as mk_response_parser_head() does an HTTP head, with its limits, and sets the fields of `p`: its other
 * functions continue with the body. `h` is zeroed at first, and may have moved since the last call.
 * Returns 0, MK_AGAIN, -EINVAL or -EMSGSIZE. Errors are final.
 */
MK_API int mk_cgi_parse_response(struct mk_cgi_head *h, struct mk_response_parser *p, struct mk_field *fields,
                                 struct mk_str head);

/*
 * Finds a redirect that the server may follow itself: a path of this server in Location, without Status (RFC 3875
 * section 6.2.2).
 * Returns the path with its query, which points into `head`; `.p` NULL: it is none.
 */
MK_API struct mk_str mk_cgi_find_local_redirect(const struct mk_cgi_head *h, struct mk_str head);
/*
 * Sets status, length and headers of the response; copies them. Left out are what belongs to a connection or to the
 * server, and what tells a server to send a file (X-Sendfile, X-Accel-*).
 * Returns 0, -ENOBUFS (too many headers) or another -errno.
 */
MK_API int mk_cgi_pass_head(struct mk_request *req, const struct mk_cgi_head *h, const struct mk_field *fields,
                            struct mk_str head);

/*
 * Sets one header of the response, valid as long as the request, if it is for the client and Connection does not name
 * it. Returns 0 or -errno.
 */
MK_API int mk_cgi_pass_header(struct mk_request *req, struct mk_str name, struct mk_str value);

/* ── error output ── */

enum { MK_CGI_STDERR_LINE_BYTES = 400 };

/* Splits what a script writes to stderr into lines of the log. Set the first three members, the others are zeros. */
struct mk_cgi_stderr {
    const char *prefix;     /* of each line: "cgi: /srv/cgi/a.py" */
    struct mk_request *req; /* whose lines they are; NULL: it has ended */
    const struct mk_host *host;
    uint16_t len;
    bool is_truncated;
    char line[MK_CGI_STDERR_LINE_BYTES];
};

/*
 * Takes bytes and logs the lines that are complete, each cut at MK_CGI_STDERR_LINE_BYTES; the log escapes them. Lines
 * of blanks and control bytes are left out. All scripts of a host may write what mk_request_log_text() allows.
 */
MK_API void mk_cgi_stderr_add(struct mk_cgi_stderr *s, struct mk_str bytes);
/* Logs a last line without an end. */
MK_API void mk_cgi_stderr_end(struct mk_cgi_stderr *s);

MK_C_END

#endif
