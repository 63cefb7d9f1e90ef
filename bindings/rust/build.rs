// SPDX-License-Identifier: Apache-2.0
//! Finds the installed libmonkey.so by pkg-config.

use std::process::Command;

fn main() {
    let run = Command::new("pkg-config").args(["--libs-only-L", "monkey"]).output();
    let output = run.expect("pkg-config is not installed");
    assert!(output.status.success(), "pkg-config finds no monkey: {}", String::from_utf8_lossy(&output.stderr));
    for word in String::from_utf8_lossy(&output.stdout).split_whitespace() {
        println!("cargo:rustc-link-search=native={}", word.trim_start_matches("-L"));
    }
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
}
