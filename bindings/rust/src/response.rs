// SPDX-License-Identifier: Apache-2.0
//! A response, and what becomes one.

use crate::log::log_error;
use crate::sys;
use std::fmt::Display;

const TEXT: &str = "text/plain; charset=utf-8";

/// A response of a closure. A text is one of status 200, and an `Err` is logged and becomes status 500.
///
/// ```no_run
/// use monkey::Response;
/// let plain: Response = "text".into();
/// let made = Response::new(201).header("Content-Type", "application/json").body("{}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Response {
    /// A response without headers and body; `status` is from 200 to 599.
    pub fn new(status: u16) -> Response {
        Response { status, headers: Vec::new(), body: Vec::new() }
    }

    /// Adds a header. The server itself sets Connection, Content-Length, Date, Keep-Alive, Server and
    /// Transfer-Encoding.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Response {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Response {
        self.body = body.into();
        self
    }

    /// Sends it. A status or a header that cannot be sent is logged, and the client gets status 500.
    pub(crate) unsafe fn send(&self, req: *mut sys::MkRequest) {
        match self.write(req) {
            Ok(()) => sys::mk_response_end(req),
            Err(what) => {
                log_error(&format!("a closure responds with {}", what));
                sys::mk_response_error(req, 500);
            }
        }
    }

    unsafe fn write(&self, req: *mut sys::MkRequest) -> Result<(), String> {
        if sys::mk_response_set_status(req, self.status.into()) < 0 {
            return Err(format!("status {}, which is none of a response", self.status));
        }
        for (name, value) in &self.headers {
            let name = sys::mk_arena_dup(sys::mk_request_arena(req), sys::Str::new(name.as_bytes()));
            if name.p.is_null() || sys::mk_response_header(req, name, sys::Str::new(value.as_bytes())) < 0 {
                return Err(format!("a header that cannot be sent: {:?}", value));
            }
        }
        match sys::mk_response_write(req, sys::Str::new(&self.body)) {
            err if err < 0 => Err("a body for which there is no memory".to_string()),
            _ => Ok(()),
        }
    }
}

impl From<&str> for Response {
    fn from(text: &str) -> Response {
        text.to_string().into()
    }
}

impl From<String> for Response {
    fn from(text: String) -> Response {
        Response::new(200).header("Content-Type", TEXT).body(text)
    }
}

impl<T: Into<Response>, E: Display> From<Result<T, E>> for Response {
    fn from(result: Result<T, E>) -> Response {
        result.map_or_else(
            |error| {
                log_error(&format!("a closure has failed: {}", error));
                Response::new(500).header("Content-Type", TEXT).body("Internal Server Error\n")
            },
            Into::into,
        )
    }
}
