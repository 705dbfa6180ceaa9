package clone

import (
	"context"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/repository/scan"
	"github.com/muster-fleet/muster/internal/testgit"
)

func TestMain(m *testing.M) {
	Dialer{AllowLoopback: true}.Install()
	os.Exit(m.Run())
}

func open(t *testing.T, address, branch string) *Repository {
	t.Helper()
	parsed, err := ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	return &Repository{URL: parsed, Branch: branch, Dialer: Dialer{AllowLoopback: true}, Directory: t.TempDir()}
}

// contents reads all files of the newest commit.
func contents(t *testing.T, r *Repository) (commit string, files map[string]string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if commit, err = r.Head(ctx); err != nil {
		return "", nil, err
	}
	files = map[string]string{}
	err = r.Read(ctx, commit, func(tree scan.Tree) error {
		for _, name := range tree.Paths {
			data, err := tree.Read(name)
			if err != nil {
				return err
			}
			files[name] = string(data)
		}
		return nil
	})
	if left, _ := os.ReadDir(r.Directory); len(left) > 0 {
		t.Errorf("%d directories are left", len(left))
	}
	return commit, files, err
}

func TestABranchATagAndACommitAreRead(t *testing.T) {
	source := testgit.New(t, "web.git")
	source.Write(map[string]string{"a.yaml": "1", "dir/b.yaml": "2"})
	source.Link("../a.yaml", "dir/c.yaml")
	first := source.Push("main")
	source.Tag("v1")
	source.Write(map[string]string{"a.yaml": "3"})
	second := source.Push("main")
	_, address, ca := source.Web("", "")
	_, private, privateCA := source.Web("me", "secret")
	ssh, key, known := source.SSH()
	old, now := map[string]string{"a.yaml": "1", "dir/b.yaml": "2", "dir/c.yaml": "1"}, map[string]string{"a.yaml": "3",
		"dir/b.yaml": "2", "dir/c.yaml": "3"}
	for name, row := range map[string]struct {
		address, branch, revision string
		credentials               *Credentials
		ca                        []byte
		commit                    string
		want                      map[string]string
	}{
		"a branch":             {address, "main", "", nil, ca, second, now},
		"a tag":                {address, "main", "v1", nil, ca, first, old},
		"a commit":             {address, "main", first, nil, ca, first, old},
		"a private one":        {private, "main", "", &Credentials{Username: "me", Password: "secret"}, privateCA, second, now},
		"by ssh":               {ssh, "main", "", &Credentials{PrivateKey: key, KnownHosts: known}, nil, second, now},
		"a commit, by ssh":     {ssh, "main", first, &Credentials{PrivateKey: key, KnownHosts: known}, nil, first, old},
		"without an authority": {address, "main", "", nil, nil, "", nil},
	} {
		r := open(t, row.address, row.branch)
		r.Revision, r.Credentials, r.CABundle = row.revision, row.credentials, row.ca
		commit, files, err := contents(t, r)
		if row.want == nil {
			if err == nil || !strings.Contains(err.Error(), "certificate") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if diff := cmp.Diff(row.want, files); err != nil || commit != row.commit || diff != "" {
			t.Errorf("%s: commit %s, want %s, %v\n%s", name, commit, row.commit, err, diff)
		}
	}
}

func TestAFailureNamesItsRemedyAndNoCredential(t *testing.T) {
	source := testgit.New(t, "web.git")
	source.Write(map[string]string{"a.yaml": "1"})
	source.Push("main")
	_, address, ca := source.Web("me", "secret")
	ssh, key, known := source.SSH()
	_, otherKey, _ := source.SSH()
	good := &Credentials{Secret: "git", Username: "me", Password: "secret"}
	for name, row := range map[string]struct {
		address, branch, revision string
		credentials               *Credentials
		want                      string
	}{
		"no credentials":     {address, "main", "", nil, "127.0.0.1 has no such repository, or it is private: name a Secret"},
		"wrong credentials":  {address, "main", "", &Credentials{Username: "me", Password: "hunter2"}, "or it is private"},
		"no branch":          {address, "master", "", good, "the repository has no branch master: set spec.branch, for example to main"},
		"a branch for a tag": {address, "master", "main", good, "the repository has no tag main; main is a branch: set spec.branch"},
		"no tag":             {address, "main", "v9", good, "the repository has no tag v9"},
		"no repository":      {strings.Replace(address, "web.git", "db.git", 1), "main", "", good, "has no repository db.git"},
		"no commit":          {address, "main", strings.Repeat("0123456789", 4), good, "no commit 0123456789"},
		"a key for https": {address, "main", "", &Credentials{Secret: "git", PrivateKey: key},
			"secret git holds a key for ssh, and spec.repo begins with https"},
		"clear text":      {"http" + strings.TrimPrefix(address, "https"), "main", "", good, "would travel in clear text: use https"},
		"no server":       {"https://127.0.0.1:1/web.git", "main", "", nil, "connection refused"},
		"no key":          {ssh, "main", "", nil, "a repository by ssh needs a key"},
		"an unknown host": {ssh, "main", "", &Credentials{PrivateKey: key}, "the known hosts have no key of localhost:"},
		"another key of it": {ssh, "main", "", &Credentials{PrivateKey: key, KnownHosts: otherHost(known)},
			"is not among the known hosts"},
		"a key it refuses": {ssh, "main", "", &Credentials{PrivateKey: otherKey, KnownHosts: known}, "unable to authenticate"},
		"no PEM": {ssh, "main", "", &Credentials{Secret: "git", PrivateKey: []byte("x"), KnownHosts: known},
			"is no PEM of a private key"},
	} {
		r := open(t, row.address, row.branch)
		r.Revision, r.Credentials, r.CABundle = row.revision, row.credentials, ca
		_, _, err := contents(t, r)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "secret@")) {
			t.Errorf("%s shows a password: %v", name, err)
		}
	}
}

// otherHost returns known hosts with another key of the same kind.
func otherHost(known []byte) []byte {
	host, _, _ := strings.Cut(string(known), " ")
	return []byte(host + " ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl\n")
}

// TestABrokenLinkFailsOnlyItsBundle has links of each kind in directories of their own, and links
// outside of all Bundles.
func TestABrokenLinkFailsOnlyItsBundle(t *testing.T) {
	source := testgit.New(t, "web.git")
	const kind = "kind: ConfigMap\n"
	source.Write(map[string]string{"a/a.yaml": kind, "outside/b.yaml": kind, "ignored/b.yaml": kind, "ignored/.fleetignore": "gone.yaml\n"})
	for name, to := range map[string]string{
		"docs/host": "/etc/hosts", "outside/passwd": "../../etc/passwd", "gone/gone.yaml": "nowhere.yaml", "ignored/gone.yaml": "nowhere.yaml",
		"chain/one.yaml": "two.yaml", "chain/two.yaml": "../a/a.yaml", "latest": "a", "through/a.yaml": "../latest/a.yaml",
		"loop/a.yaml": "b.yaml", "loop/b.yaml": "a.yaml",
		"long/a.yaml": strings.Repeat("./", maxLink) + "b.yaml",
	} {
		source.Link(to, name)
	}
	commit := source.Push("main")
	_, address, ca := source.Web("", "")
	r := open(t, address, "main")
	r.CABundle = ca
	for path, want := range map[string]string{
		"a": "", "chain": "", "through": "", "ignored": "",
		"outside": "the link outside/passwd: ../../etc/passwd lies outside of the repository: put the file itself in the place of the link, or " +
			"exclude the link in a .fleetignore",
		"gone": "the link gone/gone.yaml: there is no file nowhere.yaml: correct the link, or exclude it in a .fleetignore",
		"long": "the link long/a.yaml has a target of more than 1024 bytes",
		"loop": "the link loop/a.yaml leads through more than 40 links",
	} {
		repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web"}, Spec: fleet.GitRepoSpec{Paths: []string{path}}}
		var bundles int
		err := r.Read(t.Context(), commit, func(tree scan.Tree) error {
			made, err := scan.Bundles(t.Context(), repo, tree, nil)
			bundles = len(made)
			return err
		})
		if want == "" && (err != nil || bundles != 1) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %d Bundles, %v", path, bundles, err)
		}
	}
}

func TestMoreThanTheLimitIsRefused(t *testing.T) {
	b := &bounded{left: 3}
	c := &counting{discard{}, b}
	if n, err := c.Write([]byte("abc")); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := c.Write([]byte("d")); err == nil || !strings.Contains(err.Error(), "256 MiB") {
		t.Errorf("%v", err)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }

func TestAddressesOfTheHubAreRefused(t *testing.T) {
	for address, want := range map[string][2]bool{ // without loopback, with it
		"127.0.0.1": {false, true}, "::1": {false, true}, "169.254.169.254": {false, false}, "fe80::1": {false, false},
		"0.0.0.0":   {false, false},
		"224.0.0.1": {false, false}, "10.0.0.1": {true, true}, "::ffff:127.0.0.1": {false, true},
		"::ffff:169.254.169.254": {false, false},
	} {
		ip := netip.MustParseAddr(address)
		if got := [2]bool{Dialer{}.check(ip) == nil, Dialer{AllowLoopback: true}.check(ip) == nil}; got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
	r := open(t, "ssh://git@localhost/x", "main")
	r.Dialer = Dialer{}
	r.Credentials = &Credentials{PrivateKey: []byte("x")}
	if _, err := r.Head(t.Context()); err == nil || !strings.Contains(err.Error(), errLocal.Error()) {
		t.Errorf("%v", err)
	}
}

func TestAddressesOfRepositories(t *testing.T) {
	for text, want := range map[string]string{
		"https://example.com/a/b.git": "https://example.com/a/b.git", "git@github.com:a/b.git": "ssh://git@github.com/a/b.git",
		"host:/abs/path": "ssh://host/abs/path", "ssh://git@host:2222/a": "ssh://git@host:2222/a", "http://host/a": "http://host/a",
	} {
		if got, err := ParseURL(text); err != nil || got.String() != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"": "spec.repo is empty", "file:///etc": "scheme", "/etc": "scheme", "git://host/a": "scheme", "ext::sh -c x": "scheme",
		"https://me:hunter2@host/a": "contains a password", "https://:hunter2@%/a": "no valid URL", "https:///a": "names no host",
	} {
		if _, err := ParseURL(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestOnlySecretsForGitAreSent(t *testing.T) {
	secret := func(kind corev1.SecretType, data map[string]string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "git"}, Type: kind, Data: map[string][]byte{}}
		for key, value := range data {
			s.Data[key] = []byte(value)
		}
		return s
	}
	for want, s := range map[string]*corev1.Secret{
		"secret git is of type Opaque": secret(corev1.SecretTypeOpaque, map[string]string{"username": "a",
			"password": "b"}),
		"secret git has no password":               secret(corev1.SecretTypeBasicAuth, map[string]string{"username": "a"}),
		"secret git has no ssh-privatekey":         secret(corev1.SecretTypeSSHAuth, nil),
		"is of type kubernetes.io/service-account": secret(corev1.SecretTypeServiceAccountToken, map[string]string{"token": "a"}),
	} {
		if _, err := ParseCredentials(s, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestACommitIsReadAfterItsBranchHasMovedOn(t *testing.T) {
	source := testgit.New(t, "web.git")
	source.Write(map[string]string{"a.yaml": "1"})
	first := source.Push("main")
	source.Write(map[string]string{"a.yaml": "2"})
	source.Push("main")
	_, address, ca := source.Web("", "")
	r := open(t, address, "main")
	r.CABundle = ca
	var text []byte
	err := r.Read(t.Context(), first, func(tree scan.Tree) (err error) {
		text, err = tree.Read("a.yaml")
		return err
	})
	if err != nil || string(text) != "1" {
		t.Errorf("%q, %v", text, err)
	}
	err = r.Read(t.Context(), strings.Repeat("1", 40), func(scan.Tree) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "has no commit 1111") {
		t.Errorf("a commit that does not exist: %v", err)
	}
}

func TestSubmodulesAndPointersOfLFSAreNamed(t *testing.T) {
	source := testgit.New(t, "web.git")
	source.Write(map[string]string{"a/a.yaml": "kind: ConfigMap\n", "b/b.yaml": "kind: ConfigMap\n",
		"b/large.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 12345\n", "c/c.yaml": "kind: ConfigMap\n"})
	source.Submodule("c/lib")
	commit := source.Push("main")
	_, address, ca := source.Web("", "")
	r := open(t, address, "main")
	r.CABundle = ca
	read := func(paths ...string) (bundles int, err error) {
		t.Helper()
		repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web"}, Spec: fleet.GitRepoSpec{Paths: paths}}
		err = r.Read(t.Context(), commit, func(tree scan.Tree) error {
			made, err := scan.Bundles(t.Context(), repo, tree, nil)
			bundles = len(made)
			return err
		})
		return bundles, err
	}
	for path, want := range map[string]string{
		"b":     "b/large.bin is a pointer of Git LFS, and the file itself is not read: store it in the repository, or exclude it",
		"c":     "c/lib is a submodule, and submodules are not read: put its files into the repository, or exclude it in a .fleetig",
		"c/lib": "spec.paths: c/lib is a submodule",
	} {
		if bundles, err := read("a", path); err == nil || !strings.Contains(err.Error(), want) || bundles != 1 {
			t.Errorf("%s: %d Bundles, %v", path, bundles, err)
		}
	}
	source.Write(map[string]string{"b/.fleetignore": "*.bin\n", "c/.fleetignore": "lib\n"})
	commit = source.Push("main")
	if bundles, err := read("a", "b", "c"); err != nil || bundles != 3 {
		t.Errorf("%d Bundles, %v", bundles, err)
	}
}
