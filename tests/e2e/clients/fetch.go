// SPDX-License-Identifier: Apache-2.0
// Requests with Go's own client: fetch CA URL PATH... asks for all paths at once, each one twice, and prints
// "protocol status sha256 path" of the second answer; then it sends 3 MB, and prints what that was answered.
package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
)

func get(client *http.Client, url, path string) string {
	answer, err := client.Get(url + path)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	return fmt.Sprintf("%s %d %x %s", answer.Proto, answer.StatusCode, sha256.Sum256(body), path)
}

func main() {
	pem, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	url := os.Args[2]
	var group sync.WaitGroup
	for _, path := range os.Args[3:] {
		group.Add(1)
		go func(path string) {
			defer group.Done()
			get(client, url, path)
			fmt.Println(get(client, url, path))
		}(path)
	}
	group.Wait()
	answer, err := client.Post(url+os.Args[3], "text/plain", bytes.NewReader(make([]byte, 3000000)))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Proto, answer.StatusCode)
}
