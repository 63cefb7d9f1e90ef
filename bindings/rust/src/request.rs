// SPDX-License-Identifier: Apache-2.0
//! A request, as closures get it.

use crate::sys;
use std::borrow::Cow;
use std::ffi::CString;
use std::marker::PhantomData;

/// One request, during the call of a closure. Bytes that are not UTF-8 are replaced by U+FFFD in what returns text.
pub struct Request<'a> {
    raw: *mut sys::MkRequest,
    body: &'a [u8],
    call: PhantomData<&'a mut sys::MkRequest>,
}

impl<'a> Request<'a> {
    pub(crate) fn new(raw: *mut sys::MkRequest, body: &'a [u8]) -> Request<'a> {
        Request { raw, body, call: PhantomData }
    }

    /// The method as the client has sent it: "GET".
    pub fn method(&self) -> Cow<'_, str> {
        self.text(unsafe { sys::mk_request_method_name(self.raw) }).unwrap_or_default()
    }

    /// The path, decoded and normalized, without the query.
    pub fn path(&self) -> Cow<'_, str> {
        self.text(unsafe { sys::mk_request_path(self.raw) }).unwrap_or_default()
    }

    /// What follows the "?", not decoded.
    pub fn query(&self) -> Option<Cow<'_, str>> {
        self.text(unsafe { sys::mk_request_query(self.raw) })
    }

    /// The part of the path that is `name` in the pattern (`:name`), decoded.
    pub fn param(&self, name: &str) -> Option<Cow<'_, str>> {
        let name = CString::new(name).ok()?;
        self.text(unsafe { sys::mk_request_param(self.raw, name.as_ptr()) })
    }

    /// The value of a header; the case of the name does not matter. Several lines are joined by ", ".
    pub fn header(&self, name: &str) -> Option<Cow<'_, str>> {
        self.text(unsafe { sys::mk_request_header_by_name(self.raw, sys::Str::new(name.as_bytes())) })
    }

    /// The whole body, up to MaxRequestSize of the configuration.
    pub fn body(&self) -> &[u8] {
        self.body
    }

    fn text(&self, text: sys::Str) -> Option<Cow<'_, str>> {
        unsafe { text.bytes() }.map(String::from_utf8_lossy)
    }
}
