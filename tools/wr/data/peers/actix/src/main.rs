// SPDX-License-Identifier: Apache-2.0
//! hello PORT: GET /hello/ with actix-web and one worker.

use actix_web::{web, App, HttpResponse, HttpServer};
use std::time::Duration;

async fn answer() -> HttpResponse {
    HttpResponse::Ok().body("Hello, world\n")
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    HttpServer::new(|| App::new().route("/hello/", web::get().to(answer)))
        .workers(1)
        .keep_alive(Duration::from_secs(65))
        .bind(("127.0.0.1", port))?
        .run()
        .await
}
