// SPDX-License-Identifier: Apache-2.0
//! A folder, and a closure that answers. It ends with a line on stdin.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut server = monkey::Server::new()?;
    server.text("[SERVER]\n    Listen 127.0.0.1:0\n")?;
    if let Some(folder) = std::env::args_os().nth(1) {
        server.folder(folder)?;
    }
    server.handle("GET", "/hello/:name", |req| format!("Hello, {}!\n", req.param("name").unwrap_or_default()))?;
    server.start()?;
    println!("http://127.0.0.1:{}/hello/you", server.port()?);
    std::io::stdin().read_line(&mut String::new())?;
    server.stop()?;
    Ok(())
}
