// SPDX-License-Identifier: Apache-2.0

// files PORT ROOT [CERTIFICATE KEY]: the files of a folder with net/http; with a certificate it speaks HTTP/2, too.
package main

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"time"
)

func main() {
	if os.Args[1] == "--version" {
		fmt.Println(runtime.Version())
		return
	}
	server := &http.Server{
		Addr:        "127.0.0.1:" + os.Args[1],
		Handler:     http.FileServer(http.Dir(os.Args[2])),
		IdleTimeout: 65 * time.Second,
	}
	var err error
	if len(os.Args) == 5 && os.Args[3] != "" {
		err = server.ListenAndServeTLS(os.Args[3], os.Args[4])
	} else {
		err = server.ListenAndServe()
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
