// Package testbucket runs a real S3 server for tests: Versity's gateway, on a directory.
//
// Its invariants: the server listens on loopback only, with TLS, and go.s3.mod pins its version.
package testbucket

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/muster-fleet/muster/internal/testkube"
)

// Name is the name of the bucket.
const Name = "backups"

const (
	root       = "root"
	rootSecret = "root-secret-of-the-test"
)

// Server is a running S3 server with the bucket Name.
type Server struct {
	t testing.TB
	// Endpoint is its address, CAFile the file with its certificate authority.
	Endpoint, CAFile string
	// Root is a client with all rights.
	Root    *minio.Client
	program string
	policy  []statement
}

// statement is a statement of the bucket's policy.
type statement struct {
	Effect    string
	Principal map[string][]string
	Action    []string
	Resource  []string
}

var built struct {
	sync.Mutex
	path string
}

// build builds the server once for all tests of a package. The go command keeps what it built.
func build(t testing.TB) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.path != "" {
		return built.path
	}
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("finding the module: %v", err)
	}
	command := exec.Command("go", "tool", "-n", "-modfile=go.s3.mod", "versitygw") // it prints where the program is
	command.Dir = filepath.Dir(strings.TrimSpace(string(module)))
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := command.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			out = failed.Stderr
		}
		t.Fatalf("building the S3 server: %v\n%s", err, out)
	}
	built.path = strings.TrimSpace(string(out))
	return built.path
}

// Start starts a server until the end of the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, program: build(t), CAFile: filepath.Join(t.TempDir(), "ca.pem")}
	certificate, ca := testkube.NewCertificate(t)
	cert, key, data, users := filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key"), t.TempDir(), t.TempDir()
	der, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	s.check(err)
	for path, text := range map[string][]byte{
		s.CAFile: []byte(ca), cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}),
		key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
	} {
		s.check(os.WriteFile(path, text, 0o600))
	}
	port := freePort(t)
	s.Endpoint = "https://" + port
	testkube.RunWith(t, s.program, []string{"ROOT_ACCESS_KEY=" + root, "ROOT_SECRET_KEY=" + rootSecret}, "--port", port,
		"--iam-dir", users, "--cert", cert, "--key", key, "--quiet", "posix", "--sidecar", t.TempDir(), data)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(ca))
	s.Root, err = minio.New(port, &minio.Options{
		Creds: credentials.NewStaticV4(root, rootSecret, ""), Secure: true, Region: "us-east-1",
		Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusted}},
	})
	s.check(err)
	testkube.Eventually(t, "the S3 server has the bucket", func() error {
		err := s.Root.MakeBucket(context.Background(), Name, minio.MakeBucketOptions{})
		if code := minio.ToErrorResponse(err).Code; code == "BucketAlreadyOwnedByYou" {
			return nil
		}
		return err
	})
	return s
}

func freePort(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return address
}

func (s *Server) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// Environment returns the variables of an account, and creates it with some actions below a prefix.
// An action on the bucket itself, such as s3:ListBucket, applies to all of it.
func (s *Server) Environment(name, below string, actions ...string) map[string]string {
	s.t.Helper()
	secret := "secret-of-" + name
	command := exec.Command(s.program, "admin", "--access", root, "--secret", rootSecret, "--endpoint-url", s.Endpoint, "--allow-insecure",
		"create-user", "--access", name, "--secret", secret, "--role", "user")
	if out, err := command.CombinedOutput(); err != nil {
		s.t.Fatalf("creating account %s: %v\n%s", name, err, out)
	}
	onBucket := statement{Effect: "Allow", Principal: map[string][]string{"AWS": {name}}, Resource: []string{"arn:aws:s3:::" + Name}}
	onObjects := onBucket
	onObjects.Resource = []string{"arn:aws:s3:::" + Name + "/" + below + "*"}
	for _, action := range actions {
		if strings.HasPrefix(action, "s3:List") {
			onBucket.Action = append(onBucket.Action, action)
		} else {
			onObjects.Action = append(onObjects.Action, action)
		}
	}
	for _, one := range []statement{onBucket, onObjects} {
		if len(one.Action) > 0 {
			s.policy = append(s.policy, one)
		}
	}
	if len(s.policy) > 0 {
		text, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": s.policy})
		s.check(err)
		s.check(s.Root.SetBucketPolicy(context.Background(), Name, string(text)))
	}
	return map[string]string{"AWS_ACCESS_KEY_ID": name, "AWS_SECRET_ACCESS_KEY": secret}
}

// Keys returns the names of all objects, and of all unfinished uploads.
func (s *Server) Keys() (keys []string) {
	s.t.Helper()
	ctx := context.Background()
	for found := range s.Root.ListObjects(ctx, Name, minio.ListObjectsOptions{Recursive: true}) {
		s.check(found.Err)
		keys = append(keys, found.Key)
	}
	for found := range s.Root.ListIncompleteUploads(ctx, Name, "", true) {
		s.check(found.Err)
		keys = append(keys, fmt.Sprintf("%s (unfinished)", found.Key))
	}
	return keys
}

// Put writes an object.
func (s *Server) Put(key, text string) {
	s.t.Helper()
	_, err := s.Root.PutObject(context.Background(), Name, key, strings.NewReader(text), int64(len(text)), minio.PutObjectOptions{})
	s.check(err)
}
