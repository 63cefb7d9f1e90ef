# SPDX-License-Identifier: Apache-2.0
"""libmonkey.so, through cffi: the declarations of the public headers that the package needs."""

import os

from cffi import FFI

ffi = FFI()
ffi.cdef("""
struct mk_str { const char *p; size_t len; };
struct mk_server;
struct mk_request;
struct mk_arena;
struct mk_loop;
struct mk_worker;
struct mk_connection;
struct mk_generation;
struct mk_address { uint16_t family, port; uint8_t bytes[16]; };
struct mk_list { struct mk_list *next, *prev; };
struct mk_task { struct mk_list node; void (*fn)(struct mk_task *); };

const char *mk_version(void);
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
struct mk_str mk_request_target(const struct mk_request *req);
unsigned mk_request_major(const struct mk_request *req);
unsigned mk_request_minor(const struct mk_request *req);
struct mk_str mk_request_path(const struct mk_request *req);
struct mk_str mk_request_query(const struct mk_request *req);
struct mk_str mk_request_host(const struct mk_request *req);
struct mk_str mk_request_scheme(struct mk_request *req);
struct mk_str mk_request_user(const struct mk_request *req);
struct mk_address mk_request_peer(struct mk_request *req);
struct mk_address mk_request_client(struct mk_request *req);
struct mk_connection *mk_request_connection(const struct mk_request *req);
struct mk_address mk_connection_local(const struct mk_connection *conn);
struct mk_worker *mk_request_worker(const struct mk_request *req);
struct mk_generation *mk_worker_generation(const struct mk_worker *worker);
bool mk_generation_trusts(const struct mk_generation *g, const struct mk_address *address);
bool mk_request_passes_header(const struct mk_request *req, struct mk_str name);
struct mk_str mk_request_param(const struct mk_request *req, const char *name);
struct mk_str mk_request_header_by_name(struct mk_request *req, struct mk_str name);
bool mk_request_header_at(const struct mk_request *req, unsigned n, struct mk_str *ret_name, struct mk_str *ret_value);
void mk_request_collect(struct mk_request *req, size_t bytes_max,
                        void (*fn)(struct mk_request *, struct mk_str, bool, void *), void *ctx);
struct mk_arena *mk_request_arena(struct mk_request *req);
struct mk_str mk_arena_dup(struct mk_arena *arena, struct mk_str s);
int mk_arena_defer(struct mk_arena *arena, void (*fn)(void *ctx), void *ctx);
struct mk_loop *mk_request_loop(const struct mk_request *req);
void mk_task_init(struct mk_task *task, void (*fn)(struct mk_task *));
void mk_task_schedule(struct mk_loop *loop, struct mk_task *task);
void mk_task_cancel(struct mk_task *task);

int mk_response_set_status(struct mk_request *req, int status);
int mk_response_header(struct mk_request *req, struct mk_str name, struct mk_str value);
bool mk_response_header_reserved(struct mk_str name);
int mk_response_set_length(struct mk_request *req, uint64_t bytes);
int mk_response_write(struct mk_request *req, struct mk_str data);
void mk_response_on_writable(struct mk_request *req, void (*fn)(struct mk_request *, void *), void *ctx);
void mk_response_end(struct mk_request *req);
void mk_response_abort(struct mk_request *req);
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


def make_c_string(text, what):
    """The bytes of a text or of a path for C, where a NUL would be the end."""
    data = os.fsencode(text)
    if b"\0" in data:
        raise ValueError(f"{what} contains a NUL")
    return data
