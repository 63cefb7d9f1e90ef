# SPDX-License-Identifier: Apache-2.0
"""libmonkey.so, through cffi: the declarations of <monkey/embed.h> and <monkey/request.h> that the package needs."""

import os

from cffi import FFI

ffi = FFI()
ffi.cdef("""
struct mk_str { const char *p; size_t len; };
struct mk_server;
struct mk_request;
struct mk_arena;

struct mk_server *mk_server_new(void);
void mk_server_free(struct mk_server *server);
int mk_server_text(struct mk_server *server, const char *text);
int mk_server_folder(struct mk_server *server, const char *folder);
int mk_server_in_caller(struct mk_server *server);
int mk_server_handle(struct mk_server *server, const char *methods, const char *pattern,
                     int (*fn)(struct mk_request *, void *), void *ctx);
int mk_server_start(struct mk_server *server);
int mk_server_stop(struct mk_server *server);
void mk_server_stop_now(struct mk_server *server);
int mk_server_port(const struct mk_server *server);
int mk_server_fd(struct mk_server *server);
int mk_server_run_once(struct mk_server *server, int timeout_ms);
const char *mk_server_error(struct mk_server *server);

struct mk_str mk_request_method_name(const struct mk_request *req);
struct mk_str mk_request_path(const struct mk_request *req);
struct mk_str mk_request_query(const struct mk_request *req);
struct mk_str mk_request_host(const struct mk_request *req);
struct mk_str mk_request_scheme(struct mk_request *req);
struct mk_str mk_request_param(const struct mk_request *req, const char *name);
struct mk_str mk_request_header_by_name(struct mk_request *req, struct mk_str name);
bool mk_request_header_at(const struct mk_request *req, unsigned n, struct mk_str *ret_name, struct mk_str *ret_value);
void mk_request_collect(struct mk_request *req, size_t bytes_max,
                        void (*fn)(struct mk_request *, struct mk_str, bool, void *), void *ctx);
struct mk_arena *mk_request_arena(struct mk_request *req);
struct mk_str mk_arena_dup(struct mk_arena *arena, struct mk_str s);

int mk_response_set_status(struct mk_request *req, int status);
int mk_response_header(struct mk_request *req, struct mk_str name, struct mk_str value);
bool mk_response_header_reserved(struct mk_str name);
int mk_response_write(struct mk_request *req, struct mk_str data);
void mk_response_end(struct mk_request *req);
void mk_response_error(struct mk_request *req, int status);
""")

lib = ffi.dlopen(os.environ.get("LIBMONKEY", "libmonkey.so.2"))


def read_bytes(text):
    """The bytes of a struct mk_str; None if it has none."""
    return ffi.unpack(text.p, text.len) if text.p != ffi.NULL else None


def read_text(text):
    """The same as text: what is not UTF-8 becomes surrogates."""
    data = read_bytes(text)
    return None if data is None else data.decode("utf-8", "surrogateescape")


def make_str(data):
    """A struct mk_str, and what keeps its bytes."""
    kept = ffi.from_buffer(data)
    return ffi.new("struct mk_str *", {"p": ffi.cast("const char *", kept), "len": len(data)})[0], kept
