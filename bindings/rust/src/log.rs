// SPDX-License-Identifier: Apache-2.0
//! The log of the servers of a process.

use crate::sys;
use std::ffi::{c_void, CStr};
use std::os::raw::{c_char, c_int};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, RwLock};

/// How urgent a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something has failed.
    Error,
    /// Something may fail, or is not as it was configured.
    Warn,
    /// What the operator wants to know.
    Info,
    /// What developers want to know.
    Debug,
}

const LEVELS: [Level; 4] = [Level::Error, Level::Warn, Level::Info, Level::Debug];

type Function = dyn Fn(Level, &str) + Send + Sync;

static FUNCTION: RwLock<Option<Arc<Function>>> = RwLock::new(None);

/// Passes lines at `level` and more urgent ones, of all servers of the process, to `function` from now on. Before the
/// first call nothing is logged. Several threads call it, also at the same time; it must not block, and must not use a
/// server.
pub fn log_to(level: Level, function: impl Fn(Level, &str) + Send + Sync + 'static) {
    if let Ok(mut current) = FUNCTION.write() {
        *current = Some(Arc::new(function));
    }
    unsafe { sys::mk_log_to_function(pass_line, std::ptr::null_mut(), level as c_int) }
}

unsafe extern "C" fn pass_line(level: c_int, message: *const c_char, _: *mut c_void) {
    let function = FUNCTION.read().ok().and_then(|current| current.clone());
    let message = CStr::from_ptr(message).to_string_lossy();
    if let (Some(function), Some(level)) = (function, LEVELS.get(level as usize)) {
        // no panic may reach the server, which is written in C
        let _ = catch_unwind(AssertUnwindSafe(|| function(*level, &message)));
    }
}

/// Writes an error to the log of the server.
pub(crate) fn log_error(message: &str) {
    let line = message.replace('\0', " ") + "\0";
    unsafe { sys::mk_log(Level::Error as c_int, b"%s\0".as_ptr() as *const c_char, line.as_ptr()) }
}
