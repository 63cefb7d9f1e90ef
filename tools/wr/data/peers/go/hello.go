// SPDX-License-Identifier: Apache-2.0

// hello PORT [CERTIFICATE KEY]: GET /hello/ with net/http; with a certificate it speaks HTTP/2, too.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"time"
)

func answer(w http.ResponseWriter, r *http.Request) {
	w.Header()["Content-Type"] = nil // it is not guessed
	io.WriteString(w, "Hello, world\n")
}

func main() {
	if os.Args[1] == "--version" {
		fmt.Println(runtime.Version())
		return
	}
	http.HandleFunc("/hello/", answer)
	server := &http.Server{Addr: "127.0.0.1:" + os.Args[1], IdleTimeout: 65 * time.Second}
	var err error
	if len(os.Args) == 4 && os.Args[2] != "" {
		err = server.ListenAndServeTLS(os.Args[2], os.Args[3])
	} else {
		err = server.ListenAndServe()
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
