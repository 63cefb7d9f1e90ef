// SPDX-License-Identifier: Apache-2.0
//! Servers of this process, asked over sockets.

use monkey::{log_to, Level, Response, Server};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const TEXT: &str = "[SERVER]\n    Listen 127.0.0.1:0\n    Workers 2\n";

fn make() -> Server {
    let mut server = Server::new().unwrap();
    server.text(TEXT).unwrap();
    server
}

fn send(server: &Server, head: &str, body: &str) -> TcpStream {
    let mut client = TcpStream::connect(("127.0.0.1", server.port().unwrap())).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let length = body.len();
    write!(client, "{head}\r\nHost: h\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    client
}

fn ask(server: &Server, head: &str, body: &str) -> String {
    let mut response = String::new();
    send(server, head, body).read_to_string(&mut response).unwrap();
    response
}

fn get(server: &Server, path: &str) -> String {
    ask(server, &format!("GET {path} HTTP/1.1"), "")
}

#[test]
fn closures_answer() {
    let mut server = make();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    server.handle("GET", "/hello/:name", |req| format!("Hello, {}", req.param("name").unwrap())).unwrap();
    server.handle("GET", "/count", move |_| (counted.fetch_add(1, Ordering::Relaxed) + 1).to_string()).unwrap();
    server
        .handle("PUT, POST", "/echo/", |req| {
            assert!(req.param("name").is_none() && req.header("X-None").is_none());
            let about = format!("{} {} {}", req.method(), req.path(), req.query().unwrap_or_default());
            Response::new(201).header("X-About", about).header("X-Host", req.header("host").unwrap()).body(req.body())
        })
        .unwrap();
    server.start().unwrap();
    assert!(get(&server, "/hello/%C3%A4").ends_with("\r\n\r\nHello, ä"));
    assert!(get(&server, "/count").contains("Content-Type: text/plain; charset=utf-8\r\n"));
    assert!(get(&server, "/count").ends_with("\r\n\r\n2"));
    assert_eq!(count.load(Ordering::Relaxed), 2);
    let body = "x".repeat(30_000);
    let response = ask(&server, "POST /echo/?a=b%20c HTTP/1.1", &body);
    assert!(response.starts_with("HTTP/1.1 201 Created\r\n"), "{response}");
    assert!(response.contains("X-About: POST /echo/ a=b%20c\r\n") && response.contains("X-Host: h\r\n"));
    assert!(response.ends_with(&body));
    assert!(get(&server, "/echo/").starts_with("HTTP/1.1 405 "));
    assert!(get(&server, "/none").starts_with("HTTP/1.1 404 "));
    server.stop().unwrap();
    assert_eq!(Arc::strong_count(&count), 2);
    drop(server);
    assert_eq!(Arc::strong_count(&count), 1); // the closure is freed with the server
}

#[test]
fn failures_of_closures_are_500() {
    let mut server = make();
    server.handle("GET", "/panic", |_| -> &str { panic!("on purpose") }).unwrap();
    server.handle("GET", "/error", |req| req.param("none").map(drop).ok_or("no name").map(|_| "never")).unwrap();
    server.handle("GET", "/status", |_| Response::new(99)).unwrap();
    server.handle("GET", "/header", |_| Response::new(200).header("X-A", "b\r\nX-C: d")).unwrap();
    server.handle("GET", "/name", |_| Response::new(200).header("X A", "b")).unwrap();
    server.handle("GET", "/well", |_| "well").unwrap();
    server.start().unwrap();
    for path in ["/panic", "/error", "/status", "/header", "/name"] {
        let response = get(&server, path);
        assert!(response.starts_with("HTTP/1.1 500 ") && !response.contains("X-C"), "{response}");
        assert!(get(&server, "/well").ends_with("well"));
    }
}

/// Plugins find the library, and what the text names.
#[test]
fn plugins_load() {
    let mut server = Server::new().unwrap();
    server.text(&format!("{TEXT}[HOST]\n[HEADERS]\n    Set X-Plugin loaded\n")).unwrap();
    server.handle("GET", "/", |_| "here").unwrap();
    server.start().unwrap();
    let response = get(&server, "/");
    assert!(response.contains("\r\nX-Plugin: loaded\r\n"), "{response}");
}

#[test]
fn a_nul_is_an_error() {
    let mut server = Server::new().unwrap();
    let errors = [
        server.text("[SERVER]\n    Listen 127.0.0.1:0\0\n").unwrap_err(),
        server.folder("/srv\0/www").unwrap_err(),
        server.handle("GET\0", "/a", |_| "").unwrap_err(),
        server.handle("GET", "/a\0b", |_| "").unwrap_err(),
    ];
    for error in errors {
        assert!(error.code() == 22 && error.to_string().ends_with("contains a NUL"), "{error}");
    }
}

#[test]
fn errors_have_sentences() {
    let mut server = Server::new().unwrap();
    server.text("[SERVER]\n    Timeouts 5s\n").unwrap();
    let error = server.start().unwrap_err();
    assert_eq!(error.code(), 22);
    assert!(error.to_string().starts_with("text:2:5: unknown key \"Timeouts\""), "{error}");
    assert!(server.port().unwrap_err().to_string().contains("does not run"));
    let error = server.handle("GET", "a", |_| "").unwrap_err();
    assert!(error.to_string().contains("adds no handler: it does not begin with"), "{error}");
    assert!(server.handle("FETCH", "/a", |_| "").unwrap_err().to_string().contains("methods are ANY"));
    server.handle("GET", "/a", |_| "").unwrap();
    assert_eq!(server.handle("GET", "/a", |_| "").unwrap_err().code(), 17);
    assert!(server.text("\0").unwrap_err().to_string().contains("contains a NUL"));
    server.text(TEXT).unwrap();
    server.start().unwrap();
    let mut other = Server::new().unwrap();
    other.text(&format!("[SERVER]\n    Listen 127.0.0.1:{}\n", server.port().unwrap())).unwrap();
    let error = other.start().unwrap_err();
    assert!(error.to_string().contains("cannot listen on 127.0.0.1:"), "{error}");
    assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::AddrInUse);
}

#[test]
fn in_the_thread_of_the_program() {
    let mut server = make();
    server.in_caller().unwrap();
    let thread = std::thread::current().id();
    server.handle("GET", "/here", move |_| (std::thread::current().id() == thread).to_string()).unwrap();
    server.start().unwrap();
    assert!(server.fd().unwrap() >= 0);
    let mut client = send(&server, "GET /here HTTP/1.1", "");
    client.set_nonblocking(true).unwrap();
    let (mut response, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        server.run_once(Some(Duration::from_millis(10))).unwrap();
        match client.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => response.extend_from_slice(&piece[..n]),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
    }
    assert!(response.ends_with(b"\r\n\r\ntrue"));
}

#[test]
fn starts_and_stops() {
    let mut server = make();
    server.handle("GET", "/", |_| "here").unwrap();
    for _ in 0..20 {
        server.start().unwrap();
        server.reload().unwrap();
        assert!(get(&server, "/").ends_with("here"));
        server.stop().unwrap();
        server.stop().unwrap(); // does nothing
    }
    let threads: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(|| {
                let mut server = make();
                server.handle("GET", "/", |_| "one of several").unwrap();
                server.start().unwrap();
                assert!(get(&server, "/").ends_with("one of several"));
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn lines_of_the_log() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = lines.clone();
    log_to(Level::Info, move |level, line| kept.lock().unwrap().push((level, line.to_string())));
    let mut server = make();
    server.handle("GET", "/error", |_| Err::<&str, _>("for the log")).unwrap();
    server.start().unwrap();
    get(&server, "/error");
    log_to(Level::Error, |_, _| panic!("no panic gets into the server"));
    get(&server, "/error");
    drop(server);
    log_to(Level::Error, |_, _| ());
    let has = |level, text| lines.lock().unwrap().iter().any(|(l, line)| *l == level && line.contains(text));
    assert!(has(Level::Info, "listening on 127.0.0.1:"));
    assert!(has(Level::Error, "a closure has failed: for the log"));
}
