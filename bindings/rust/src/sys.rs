// SPDX-License-Identifier: Apache-2.0
//! Declarations of <monkey/embed.h>, <monkey/request.h> and <monkey/log.h>, as far as this crate calls them.

use std::ffi::c_void;
use std::os::raw::{c_char, c_int};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Str {
    pub p: *const c_char,
    pub len: usize,
}

#[repr(C)]
pub struct MkServer {
    opaque: [u8; 0],
}

#[repr(C)]
pub struct MkRequest {
    opaque: [u8; 0],
}

#[repr(C)]
pub struct MkArena {
    opaque: [u8; 0],
}

pub type HandleFn = unsafe extern "C" fn(*mut MkRequest, *mut c_void) -> c_int;
pub type BodyFn = unsafe extern "C" fn(*mut MkRequest, Str, bool, *mut c_void);
pub type LogFn = unsafe extern "C" fn(c_int, *const c_char, *mut c_void);

#[link(name = "monkey")]
extern "C" {
    pub fn mk_server_new() -> *mut MkServer;
    pub fn mk_server_free(server: *mut MkServer);
    pub fn mk_server_text(server: *mut MkServer, text: *const c_char) -> c_int;
    pub fn mk_server_folder(server: *mut MkServer, folder: *const c_char) -> c_int;
    pub fn mk_server_handle(
        server: *mut MkServer,
        methods: *const c_char,
        pattern: *const c_char,
        handle: HandleFn,
        ctx: *mut c_void,
    ) -> c_int;
    pub fn mk_server_in_caller(server: *mut MkServer) -> c_int;
    pub fn mk_server_start(server: *mut MkServer) -> c_int;
    pub fn mk_server_reload(server: *mut MkServer) -> c_int;
    pub fn mk_server_stop(server: *mut MkServer) -> c_int;
    pub fn mk_server_port(server: *const MkServer) -> c_int;
    pub fn mk_server_run_once(server: *mut MkServer, timeout_ms: c_int) -> c_int;
    pub fn mk_server_fd(server: *mut MkServer) -> c_int;
    pub fn mk_server_error(server: *mut MkServer) -> *const c_char;

    pub fn mk_request_method_name(req: *const MkRequest) -> Str;
    pub fn mk_request_path(req: *const MkRequest) -> Str;
    pub fn mk_request_query(req: *const MkRequest) -> Str;
    pub fn mk_request_param(req: *const MkRequest, name: *const c_char) -> Str;
    pub fn mk_request_header_by_name(req: *mut MkRequest, name: Str) -> Str;
    pub fn mk_request_collect(req: *mut MkRequest, bytes_max: usize, body: BodyFn, ctx: *mut c_void);
    pub fn mk_request_arena(req: *mut MkRequest) -> *mut MkArena;
    pub fn mk_arena_dup(arena: *mut MkArena, text: Str) -> Str;

    pub fn mk_response_set_status(req: *mut MkRequest, status: c_int) -> c_int;
    pub fn mk_response_header(req: *mut MkRequest, name: Str, value: Str) -> c_int;
    pub fn mk_response_write(req: *mut MkRequest, data: Str) -> c_int;
    pub fn mk_response_end(req: *mut MkRequest);
    pub fn mk_response_error(req: *mut MkRequest, status: c_int);

    pub fn mk_log(level: c_int, format: *const c_char, ...);
    pub fn mk_log_to_function(log: LogFn, ctx: *mut c_void, level: c_int);
}

impl Str {
    /// The string of these bytes, which must live as long as the library uses it.
    pub fn new(bytes: &[u8]) -> Str {
        Str { p: bytes.as_ptr() as *const c_char, len: bytes.len() }
    }

    /// The bytes; None for a string without a pointer.
    ///
    /// # Safety
    /// They must be valid as long as `'a`.
    pub unsafe fn bytes<'a>(self) -> Option<&'a [u8]> {
        (!self.p.is_null()).then(|| std::slice::from_raw_parts(self.p as *const u8, self.len))
    }
}
