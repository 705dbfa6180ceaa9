// Command gitserver serves the bare Git repositories in a directory by http, for the demo. It
// listens on the loopback address, and writes its address to a file.
package main

import (
	"log"
	"net"
	"net/http"
	"net/http/cgi" //nolint:gosec // no proxy variable reaches it
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: gitserver DIRECTORY ADDRESS_FILE")
	}
	directory, err := filepath.Abs(os.Args[1])
	check(err)
	programs, err := exec.Command("git", "--exec-path").Output()
	check(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	check(os.WriteFile(os.Args[2], []byte("http://"+listener.Addr().String()+"\n"), 0o600))
	backend := &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(programs)), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + directory, "GIT_HTTP_EXPORT_ALL=1"}}
	check((&http.Server{Handler: backend, ReadHeaderTimeout: 5 * time.Second}).Serve(listener))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
