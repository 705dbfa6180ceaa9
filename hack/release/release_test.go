package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/cmd"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestMain(m *testing.M) { os.Exit(testkube.Main(m)) }

func newRelease(t *testing.T) *release {
	t.Helper()
	r := &release{source: "../..", out: t.TempDir(), described: "v1.2.3"}
	if err := r.observe(); err != nil {
		t.Fatal(err)
	}
	return r
}

// contents are the digests of the files in a directory.
func contents(t *testing.T, r *release) string {
	t.Helper()
	subjects, err := r.subjects()
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, s := range subjects {
		all.WriteString(s.Name + " " + s.Digest["sha256"] + "\n")
	}
	return all.String()
}

func TestImagesOfACommitHaveTheTagThatMusterAsksFor(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("#!/bin/sh\necho \"$@\" > "+dir+"/called\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	r := &release{source: "../..", out: t.TempDir(), described: "865f532"}
	if err := r.makeImages(); err != nil {
		t.Fatal(err)
	}
	called, err := os.ReadFile(filepath.Join(dir, "called"))
	if want := "-version 0.0.0-g865f532 -ldflags " + r.ldflags(); err != nil || !strings.Contains(string(called), want) {
		t.Errorf("images are built with %s, not %s (%v)", called, want, err)
	}
}

func TestTheSameCommitGivesTheSameFiles(t *testing.T) {
	var made []string
	for range 2 {
		r := newRelease(t)
		if err := r.packCharts(); err != nil {
			t.Fatal(err)
		}
		if !testing.Short() {
			if err := r.buildCommand(platform{runtime.GOOS, runtime.GOARCH}); err != nil {
				t.Fatal(err)
			}
			unpacked := exec.Command("tar", "xzf", filepath.Join(r.out, "muster_1.2.3_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz"), "-C",
				t.TempDir())
			if output, err := unpacked.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			version, err := exec.Command(filepath.Join(unpacked.Args[len(unpacked.Args)-1], "muster"), "--version").CombinedOutput()
			if err != nil || !strings.Contains(string(version), "v1.2.3") {
				t.Errorf("the command says %q: %v", version, err)
			}
		}
		made = append(made, contents(t, r))
	}
	if made[0] != made[1] || !strings.Contains(made[0], "charts/fleet-agent-1.2.3.tgz ") || !strings.Contains(made[0], "charts/index.yaml ") {
		t.Errorf("made twice:\n%s\n%s", made[0], made[1])
	}
}

func TestWhatIsDeliveredIsVouchedFor(t *testing.T) {
	r := newRelease(t)
	if err := os.WriteFile(filepath.Join(r.out, "a"), []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, r.key = throwAway(t)
	for range 2 { // what vouches is not vouched for
		if err := r.vouch(); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) []byte {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	sums, digest := read(checksums), sha256.Sum256([]byte("a file"))
	if lines := strings.Split(string(sums), "\n"); len(lines) != 3 || lines[0] != hex.EncodeToString(digest[:])+"  a" ||
		!strings.HasSuffix(lines[1], "  "+provenance) {
		t.Errorf("the checksums are\n%s", sums)
	}
	if !strings.Contains(string(read(provenance)), `"gitCommit": "`+r.revision+`"`) {
		t.Errorf("the provenance does not name the commit:\n%s", read(provenance))
	}
	signed, err := base64.StdEncoding.DecodeString(string(read(signature)))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(read(publicKey))
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	of := sha256.Sum256(sums)
	if !ecdsa.VerifyASN1(public.(*ecdsa.PublicKey), of[:], signed) {
		t.Error("the signature is not that of the checksums")
	}
	r.key = filepath.Join(r.out, "a")
	if err := r.vouch(); err == nil || !strings.Contains(err.Error(), "the key that signs is no PEM") {
		t.Errorf("with a key that is none: %v", err)
	}
}

// helm runs the command helm for a cluster, with its settings in a directory, and
// returns what it prints.
func helm(t *testing.T, settings, kubeconfig, line string) string {
	t.Helper()
	in := func(name string) string { return filepath.Join(settings, name) }
	args := append(strings.Fields(line), "--kubeconfig", kubeconfig, "--repository-config", in("repositories.yaml"),
		"--repository-cache", in("repository"),
		"--content-cache", in("content"), "--registry-config", in("registry.json"))
	var out bytes.Buffer
	command, err := cmd.NewRootCmd(&out, args, func(bool) {})
	if err != nil {
		t.Fatal(err)
	}
	command.SetArgs(args)
	command.SetErr(&out)
	if err := command.ExecuteContext(context.Background()); err != nil {
		t.Fatalf("helm %s: %v\n%s", line, err, &out)
	}
	return out.String()
}

// TestTheChartsInstallFromTheRepository serves dist/charts, and registers a cluster with the
// commands of docs/how-to.
func TestTheChartsInstallFromTheRepository(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs control planes")
	}
	r := newRelease(t)
	if err := r.packCharts(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(r.out, "charts"))))
	defer server.Close()
	settings := t.TempDir()
	agent := testkube.Build(t, "muster-agent")
	testkube.Build(t, "muster-deployer") // which the agent starts from its own directory
	nodes := []string{"--node=true", "--image", "muster-hub=" + testkube.Build(t, "muster-hub"), "--image", "muster-agent=" + agent}
	hub, edge := testkube.Start(t, "release-hub", nodes...), testkube.Start(t, "release-edge", nodes...)
	onHub, onEdge := filepath.Join(hub.Dir, "kubeconfig"), filepath.Join(edge.Dir, "kubeconfig")

	helm(t, settings, onHub, "repo add fleet "+server.URL)
	helm(t, settings, onHub, "-n cattle-fleet-system install --create-namespace --wait fleet-crd fleet/fleet-crd")
	helm(t, settings, onHub, "-n cattle-fleet-system install --wait --set apiServerURL="+hub.Config.Host+" --set apiServerCA="+
		base64.StdEncoding.EncodeToString(hub.Config.CAData)+" fleet fleet/fleet")
	c, ctx := hub.Client(t), context.Background()
	token := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "new-token"}}
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters"}}, token} {
		if err := c.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	var secret corev1.Secret
	testkube.Eventually(t, "the token has values", func() error { return c.Get(ctx, client.ObjectKeyFromObject(token), &secret) })
	values := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(values, secret.Data["values"], 0o600); err != nil {
		t.Fatal(err)
	}
	helm(t, settings, onEdge, "-n cattle-fleet-system install --create-namespace --wait --values "+values+" fleet-agent fleet/fleet-agent")
	var clusters fleet.ClusterList
	if err := c.List(ctx, &clusters, client.InNamespace("clusters")); err != nil || len(clusters.Items) != 1 ||
		clusters.Items[0].Status.Agent.LastSeen.IsZero() {
		t.Errorf("the cluster has not registered: %v, %+v", err, clusters.Items)
	}
}
