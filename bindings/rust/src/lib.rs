// SPDX-License-Identifier: Apache-2.0
//! The HTTP server monkey inside a Rust program: files, closures that answer requests, and all that the server's
//! configuration offers.
//!
//! ```no_run
//! # fn main() -> Result<(), monkey::Error> {
//! let mut server = monkey::Server::new()?;
//! server.text("[SERVER]\n    Listen 127.0.0.1:2001\n")?;
//! server.folder("/srv/www")?;
//! server.handle("GET", "/hello/:name", |req| format!("Hello, {}!\n", req.param("name").unwrap_or_default()))?;
//! server.start()?;
//! println!("listening on port {}", server.port()?);
//! std::thread::park(); // the program's own work
//! server.stop()
//! # }
//! ```
//!
//! Closures run in the threads of the server, several at the same time, so they are `Send + Sync`; they must not block.
//! A [`Server`] stays in the thread that has made it. The library does not change signal handlers, the working
//! directory, the locale, the environment, stdin, stdout or stderr.
#![deny(missing_docs)]

mod log;
mod request;
mod response;
mod server;
mod sys;

pub use log::{log_to, Level};
pub use request::Request;
pub use response::Response;
pub use server::Server;

use std::fmt;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// A call that has failed: a sentence, and the number of the system's error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: i32,
    sentence: String,
}

impl Error {
    pub(crate) fn new(code: i32, sentence: impl Into<String>) -> Error {
        Error { code, sentence: sentence.into() }
    }

    /// The error as errno(3) has it: 98 is EADDRINUSE, for example.
    pub fn code(&self) -> i32 {
        self.code
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Error {}

impl From<Error> for std::io::Error {
    fn from(error: Error) -> std::io::Error {
        std::io::Error::new(std::io::Error::from_raw_os_error(error.code).kind(), error)
    }
}
