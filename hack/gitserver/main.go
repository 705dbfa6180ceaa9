// Command gitserver serves the bare Git repositories in a directory by http, for the demo. It listens
// on the loopback address, and writes its address to a file.
package main

import (
	"fmt"
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
	if err := serve(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func serve(directory, addressFile string) error {
	directory, err := filepath.Abs(directory)
	if err != nil {
		return err
	}
	programs, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		return fmt.Errorf("looking for the programs of git: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := os.WriteFile(addressFile, []byte("http://"+listener.Addr().String()+"\n"), 0o600); err != nil {
		return err
	}
	handler := &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(programs)), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + directory, "GIT_HTTP_EXPORT_ALL=1"}}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	return server.Serve(listener)
}
