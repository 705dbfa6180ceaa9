// Package testgit serves real Git repositories to tests, by https and by ssh.
//
// Its invariant: servers listen on loopback only, and the program git serves the repositories.
package testgit

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi" //nolint:gosec // only in tests, with a server of our own
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Repository is a bare repository with a work tree.
type Repository struct {
	t testing.TB
	// Root is the directory with all repositories, Name the name of this one.
	Root, Name string
	work       string
}

// New makes an empty repository with the branch main.
func New(t testing.TB, name string) *Repository {
	t.Helper()
	r := &Repository{t: t, Root: t.TempDir(), Name: name, work: t.TempDir()}
	r.git("init", "--quiet", "--bare", "--initial-branch=main", filepath.Join(r.Root, name))
	r.git("init", "--quiet", "--initial-branch=main")
	r.git("remote", "add", "origin", filepath.Join(r.Root, name))
	return r
}

func (r *Repository) git(args ...string) string {
	r.t.Helper()
	command := exec.Command("git", append([]string{"-C", r.work, "-c", "user.name=test", "-c", "user.email=test@example.com",
		"-c", "protocol.file.allow=always"}, args...)...)
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := command.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// Write writes files into the work tree. A file without content is removed.
func (r *Repository) Write(files map[string]string) {
	r.t.Helper()
	for name, text := range files {
		file := filepath.Join(r.work, name)
		err := os.MkdirAll(filepath.Dir(file), 0o700)
		if text == "" {
			err = errors.Join(err, os.Remove(file))
		} else {
			err = errors.Join(err, os.WriteFile(file, []byte(text), 0o600))
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// Clear removes all files from the work tree.
func (r *Repository) Clear() {
	r.t.Helper()
	r.git("rm", "-r", "--quiet", "--ignore-unmatch", ".")
}

// Link makes a symbolic link in the work tree.
func (r *Repository) Link(to, name string) {
	r.t.Helper()
	file := filepath.Join(r.work, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Symlink(to, file); err != nil {
		r.t.Fatal(err)
	}
}

// Submodule adds a submodule at some commit.
func (r *Repository) Submodule(name string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Join(r.work, name), 0o700); err != nil {
		r.t.Fatal(err)
	}
	r.git("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+","+name)
}

// PushMany pushes a branch with files of one content, without writing them to the work tree.
func (r *Repository) PushMany(branch string, files []string, text string) string {
	r.t.Helper()
	var commands strings.Builder
	fmt.Fprintf(&commands, "blob\nmark :1\ndata %d\n%s\ncommit refs/heads/%s\n", len(text), text, branch)
	commands.WriteString("committer test <test@example.com> 1767225600 +0000\ndata 4\nmany\n")
	for _, name := range files {
		commands.WriteString("M 644 :1 " + name + "\n")
	}
	command := exec.Command("git", "-C", filepath.Join(r.Root, r.Name), "fast-import", "--quiet", "--force")
	command.Stdin = strings.NewReader(commands.String())
	if out, err := command.CombinedOutput(); err != nil {
		r.t.Fatalf("git fast-import: %v\n%s", err, out)
	}
	return r.git("ls-remote", "origin", "refs/heads/"+branch)[:40]
}

// PushZeros pushes a branch with one file of zeros. Git stores it in a thousandth of its length.
func (r *Repository) PushZeros(branch, name string, length int64) string {
	r.t.Helper()
	command := exec.Command("git", "-C", filepath.Join(r.Root, r.Name), "-c", "pack.compression=1", "-c", "core.bigFileThreshold=1m",
		"fast-import", "--quiet", "--force")
	command.Stdin = io.MultiReader(strings.NewReader(fmt.Sprintf("blob\nmark :1\ndata %d\n", length)), io.LimitReader(zeros{}, length),
		strings.NewReader(fmt.Sprintf("\ncommit refs/heads/%s\ncommitter test <test@example.com> 1767225600 +0000\ndata 5\nzeros\n"+
			"M 644 :1 %s\n", branch, name)))
	if out, err := command.CombinedOutput(); err != nil {
		r.t.Fatalf("git fast-import: %v\n%s", err, out)
	}
	return r.git("ls-remote", "origin", "refs/heads/"+branch)[:40]
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Rewrite gives the work tree a history without its earlier commits, as a rebase does. The next
// Push replaces the branch.
func (r *Repository) Rewrite() {
	r.t.Helper()
	r.git("update-ref", "-d", "HEAD")
}

// Prune deletes the objects of the served repository that no branch leads to.
func (r *Repository) Prune() {
	r.t.Helper()
	served := filepath.Join(r.Root, r.Name)
	r.git("--git-dir", served, "reflog", "expire", "--expire=now", "--all")
	r.git("--git-dir", served, "gc", "--quiet", "--prune=now")
}

// Take replaces a branch by the last commit of another repository.
func (r *Repository) Take(other *Repository, branch string) {
	r.t.Helper()
	other.git("push", "--quiet", "--force", filepath.Join(r.Root, r.Name), "HEAD:refs/heads/"+branch)
}

// Push commits the work tree, pushes the branch, and returns the commit.
func (r *Repository) Push(branch string) string {
	r.t.Helper()
	r.git("add", "--all")
	r.git("commit", "--quiet", "--allow-empty", "--message", "change")
	r.git("push", "--quiet", "--force", "origin", "HEAD:refs/heads/"+branch)
	return r.git("rev-parse", "HEAD")
}

// Tag pushes an annotated tag of the last commit.
func (r *Repository) Tag(name string) {
	r.t.Helper()
	r.git("tag", "--annotate", name, "--message", name)
	r.git("push", "--quiet", "origin", name)
}

// Web serves the repository by https, to a user with a password; to everyone if both are empty. Its
// URL and the PEM of its authority follow. Each wrapper gets the handler before the server starts.
func (r *Repository) Web(user, password string, wrappers ...func(http.Handler) http.Handler) (server *httptest.Server, address string,
	ca []byte) {
	r.t.Helper()
	backend, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		r.t.Fatal(err)
	}
	handler := &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(backend)), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + r.Root, "GIT_HTTP_EXPORT_ALL=1"}}
	var served http.Handler = http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if u, p, _ := request.BasicAuth(); u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, request)
	})
	for _, wrap := range wrappers {
		served = wrap(served)
	}
	server = httptest.NewTLSServer(served)
	r.t.Cleanup(server.Close)
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return server, server.URL + "/" + r.Name, ca
}

// SSH serves the repository by ssh. It returns its URL, the key of the only user as PEM, and the
// known hosts with the server's key.
func (r *Repository) SSH() (address string, key, knownHosts []byte) {
	r.t.Helper()
	user, userKey := r.key()
	host, _ := r.key()
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, offered ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(offered.Marshal(), user.PublicKey().Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	listener, err := new(net.ListenConfig).Listen(r.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go r.serve(conn, config)
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	line := "[localhost]:" + port + " " + string(ssh.MarshalAuthorizedKey(host.PublicKey()))
	return "ssh://git@localhost:" + port + "/" + r.Name, userKey, []byte(line)
}

func (r *Repository) key() (ssh.Signer, []byte) {
	r.t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		r.t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		r.t.Fatal(err)
	}
	return signer, pem.EncodeToMemory(block)
}

// serve runs git-upload-pack for each session of a connection.
func (r *Repository) serve(conn net.Conn, config *ssh.ServerConfig) {
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		for request := range requests {
			_ = request.Reply(request.Type == "exec", nil)
			if request.Type == "exec" {
				r.uploadPack(channel)
				break
			}
		}
	}
}

func (r *Repository) uploadPack(channel ssh.Channel) {
	defer func() { _ = channel.Close() }()
	command := exec.CommandContext(context.Background(), "git", "upload-pack", filepath.Join(r.Root, r.Name))
	command.Stdin, command.Stdout, command.Stderr = channel, channel, io.Discard
	status := struct{ Status uint32 }{}
	if command.Run() != nil {
		status.Status = 1
	}
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
}
