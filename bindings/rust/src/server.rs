// SPDX-License-Identifier: Apache-2.0
//! A server of the program.

use crate::{sys, Error, Request, Response};
use std::ffi::{c_void, CStr, CString};
use std::os::raw::c_int;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::io::RawFd;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::time::Duration;

const EINVAL: i32 = 22;
const ENOMEM: i32 = 12;

type Handler = Box<dyn Fn(&Request) -> Response + Send + Sync>;

/// A server, which belongs to the thread that makes it. Text, folder and closures are set before the start, or after a
/// stop. Dropping it stops it.
pub struct Server {
    raw: *mut sys::MkServer,
    #[allow(clippy::vec_box)] // the library has their addresses
    handlers: Vec<Box<Handler>>,
}

impl Server {
    /// Makes a server that is not started. Fails without memory only.
    pub fn new() -> Result<Server, Error> {
        let raw = unsafe { sys::mk_server_new() };
        if raw.is_null() {
            return Err(Error::new(ENOMEM, "there is no memory for a server"));
        }
        Ok(Server { raw, handlers: Vec::new() })
    }

    /// Sets the configuration, in place of files: what is before the first line `[HOST]` is as in monkey.conf. A second
    /// call replaces the first. [`Server::start`] reports what is wrong in it.
    pub fn text(&mut self, text: &str) -> Result<(), Error> {
        let text = make_string(text.as_bytes(), "the configuration")?;
        self.check(unsafe { sys::mk_server_text(self.raw, text.as_ptr()) }).map(drop)
    }

    /// Serves the files of a folder, as the default host.
    pub fn folder(&mut self, folder: impl AsRef<Path>) -> Result<(), Error> {
        let folder = make_string(folder.as_ref().as_os_str().as_bytes(), "the folder")?;
        self.check(unsafe { sys::mk_server_folder(self.raw, folder.as_ptr()) }).map(drop)
    }

    /// Has `handler` answer requests with one of `methods` ("GET", "GET, POST", "ANY") whose path fits `pattern`
    /// ("/users/:id"). It is called when the whole body is there. After a panic in it the client gets status 500.
    pub fn handle<F, R>(&mut self, methods: &str, pattern: &str, handler: F) -> Result<(), Error>
    where
        F: Fn(&Request) -> R + Send + Sync + 'static,
        R: Into<Response>,
    {
        let methods = make_string(methods.as_bytes(), "the list of methods")?;
        let pattern = make_string(pattern.as_bytes(), "the pattern")?;
        let handler: Box<Handler> = Box::new(Box::new(move |req: &Request| handler(req).into()));
        let ctx = &*handler as *const Handler as *mut c_void;
        let result = unsafe { sys::mk_server_handle(self.raw, methods.as_ptr(), pattern.as_ptr(), on_request, ctx) };
        self.check(result)?;
        self.handlers.push(handler);
        Ok(())
    }

    /// Has the server work within [`Server::run_once`] only, without threads of its own for requests.
    pub fn in_caller(&mut self) -> Result<(), Error> {
        self.check(unsafe { sys::mk_server_in_caller(self.raw) }).map(drop)
    }

    /// Loads the configuration and serves.
    pub fn start(&mut self) -> Result<(), Error> {
        self.check(unsafe { sys::mk_server_start(self.raw) }).map(drop)
    }

    /// Reads the files that the configuration names again. After a failure the server continues as before.
    pub fn reload(&mut self) -> Result<(), Error> {
        self.check(unsafe { sys::mk_server_reload(self.raw) }).map(drop)
    }

    /// Stops the server when the last response is sent, or after ShutdownTimeout. It can be started again.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.check(unsafe { sys::mk_server_stop(self.raw) }).map(drop)
    }

    /// The port of the first Listen line that has one, also if the system has chosen it (`Listen 127.0.0.1:0`).
    pub fn port(&self) -> Result<u16, Error> {
        self.check(unsafe { sys::mk_server_port(self.raw) }).map(|port| port as u16)
    }

    /// Handles what has happened, for a server with [`Server::in_caller`]; waits for something up to `timeout`, or
    /// without a limit for None.
    pub fn run_once(&mut self, timeout: Option<Duration>) -> Result<(), Error> {
        let limit = c_int::MAX as u128;
        let timeout_ms = timeout.map_or(-1, |t| t.as_millis().min(limit) as c_int);
        self.check(unsafe { sys::mk_server_run_once(self.raw, timeout_ms) }).map(drop)
    }

    /// A descriptor for poll(2): readable when `run_once(Some(Duration::ZERO))` has something to do. It is the server's.
    pub fn fd(&self) -> Result<RawFd, Error> {
        self.check(unsafe { sys::mk_server_fd(self.raw) })
    }

    fn check(&self, result: c_int) -> Result<c_int, Error> {
        if result >= 0 {
            return Ok(result);
        }
        let sentence = unsafe { CStr::from_ptr(sys::mk_server_error(self.raw)) }.to_string_lossy();
        if sentence.is_empty() {
            return Err(Error::new(-result, std::io::Error::from_raw_os_error(-result).to_string()));
        }
        Err(Error::new(-result, sentence))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        unsafe {
            sys::mk_server_stop(self.raw);
            sys::mk_server_free(self.raw);
        }
    }
}

fn make_string(bytes: &[u8], what: &str) -> Result<CString, Error> {
    CString::new(bytes).map_err(|_| Error::new(EINVAL, format!("{} contains a NUL", what)))
}

unsafe extern "C" fn on_request(req: *mut sys::MkRequest, ctx: *mut c_void) -> c_int {
    sys::mk_request_collect(req, 0, on_body, ctx);
    0
}

unsafe extern "C" fn on_body(req: *mut sys::MkRequest, body: sys::Str, _end: bool, ctx: *mut c_void) {
    let handler = &*(ctx as *const Handler);
    let body = body.bytes().unwrap_or_default();
    // no panic may reach the server, which is written in C
    match catch_unwind(AssertUnwindSafe(|| handler(&Request::new(req, body)))) {
        Ok(response) => response.send(req),
        Err(_) => sys::mk_response_error(req, 500),
    }
}
