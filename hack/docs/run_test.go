package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-fleet/muster/internal/testkube"
)

// A series of pages has its commands run in this order, on clusters of its own: each finds what
// those before it have left.
type series struct {
	// clusters are the names of the contexts; the first is the hub.
	clusters []string
	pages    []string
}

var ran = map[string]series{
	"pages": {[]string{"hub", "edge-1", "edge-2"}, []string{
		"docs/quick-start.md", "docs/how-to/register-with-a-token.md", "docs/how-to/limit-a-token.md", "docs/how-to/see-the-fleet.md",
		"docs/how-to/facts.md",
		"docs/how-to/dashboard.md", "docs/how-to/bundles.md",
		"docs/how-to/inventory.md", "docs/operations/upgrade.md", "docs/operations/backup.md", "docs/operations/monitoring.md",
		"docs/operations/diagnose.md", "docs/operations/hub-move.md",
		"docs/how-to/credentials.md", "docs/how-to/move-a-cluster.md", "docs/how-to/decide-who-is-in.md",
		"docs/how-to/take-out-of-service.md", "docs/revocation.md",
		"docs/how-to/member-clusters.md", "docs/how-to/placements.md",
		"docs/how-to/register-by-kubeconfig.md", "docs/how-to/other-tools.md", "docs/how-to/remove-an-agent.md", "docs/how-to/install-the-hub.md",
	}},
	"tutorial": {[]string{"hub", "cluster1", "cluster2", "cluster3"}, []string{"docs/tutorial.md"}},
	"trust":    {[]string{"hub", "cluster1", "cluster2", "thief"}, []string{"docs/trust.md"}},
}

func TestMain(m *testing.M) { os.Exit(testkube.Main(m)) }

func TestEveryPageIsRunOrSaysWhyNot(t *testing.T) {
	s, err := load(checkout)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, one := range ran {
		all = append(all, one.pages...)
	}
	for _, source := range s.sources() {
		p := s.pages[source]
		runs, why := slices.Contains(all, source), notRun(p)
		if runs == (why != "") && (runs || len(blocks(p)) > 0) {
			t.Errorf("%s is run: %t; and it says why not: %q", source, runs, why)
		}
		if runs && len(blocks(p)) == 0 {
			t.Errorf("%s has no commands", source)
		}
	}
}

// TestTheCommandsOfThePagesWork runs them as a reader would copy them: in one shell for each page,
// which ends at the first that fails.
func TestTheCommandsOfThePagesWork(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs control planes")
	}
	t.Parallel()
	s, err := load(checkout)
	if err != nil {
		t.Fatal(err)
	}
	for name, one := range ran {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReader(t, name, one.clusters...)
			for _, source := range one.pages {
				if !t.Run(strings.TrimSuffix(strings.TrimPrefix(source, "docs/"), ".md"), func(t *testing.T) { r.read(t, s.pages[source]) }) {
					return // the next page would find something else
				}
			}
		})
	}
}

// reader has the programs, the clusters, a directory with the charts, and the variables that the
// pages assume.
type reader struct {
	dir string
	env []string
}

// newReader starts clusters that no other test has, of which the first is to be the hub, and has
// a context for each.
func newReader(t *testing.T, test string, clusters ...string) *reader {
	t.Helper()
	root, err := filepath.Abs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"kubectl", "helm"} {
		if _, err := os.Stat(filepath.Join(root, "bin", program)); err != nil {
			t.Fatalf("the pages need bin/%s, which make build makes: %v", program, err)
		}
	}
	muster, agent := testkube.Build(t, "muster"), testkube.Build(t, "muster-agent")
	testkube.Build(t, "muster-deployer") // which the agent starts from its own directory
	hub := testkube.Build(t, "muster-hub")
	r := &reader{dir: t.TempDir()}
	var kubeconfigs, addresses []string
	for _, name := range clusters {
		cluster := testkube.Turn(t, test+"-"+name, "--node=true", "--image", "muster-hub="+hub, "--image", "muster-agent="+agent,
			"--image", "member-agent="+agent)
		kubeconfigs = append(kubeconfigs, filepath.Join(cluster.Dir, "kubeconfig"))
		addresses = append(addresses, cluster.Config.Host)
	}
	for _, name := range []string{"charts", "fleet"} { // fleet/fleet-agent is a path here, as in the demo
		if err := os.Symlink(filepath.Join(root, "charts"), filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"hack", "examples"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(r.dir, "kubeconfig")
	r.env = append(os.Environ(),
		"PATH="+filepath.Dir(muster)+string(os.PathListSeparator)+filepath.Join(root, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"),
		"HOME="+r.dir, "HELM_CACHE_HOME="+filepath.Join(r.dir, "helm"), "HELM_CONFIG_HOME="+filepath.Join(r.dir, "helm"),
		"HELM_DATA_HOME="+filepath.Join(r.dir, "helm"),
		"KUBECONFIG="+strings.Join(kubeconfigs, string(os.PathListSeparator)), "API_SERVER_URL="+addresses[0])
	r.run(t, "kubectl config view --raw --flatten > kubeconfig")
	r.env = append(r.env, "KUBECONFIG="+config)
	for _, name := range clusters {
		r.run(t, "kubectl config rename-context "+test+"-"+name+" "+name)
	}
	return r
}

// read runs the commands of a page in one shell.
func (r *reader) read(t *testing.T, p *page) {
	script, now := "kubectl config use-context hub >/dev/null\n", "hub"
	for _, b := range blocks(p) {
		if why, is := strings.CutPrefix(b.comment, "not run: "); is {
			t.Logf("%s:%d is not run: %s", p.source, b.line, why)
			continue
		}
		where := "hub"
		if name, is := strings.CutPrefix(b.comment, "on "); is {
			where = name
		}
		if where != now {
			script += "kubectl config use-context " + where + " >/dev/null\n"
			now = where
		}
		script += fmt.Sprintf("echo '=== %s:%d'\n%s", p.source, b.line, b.text)
	}
	r.run(t, script)
}

// secret is a JSON Web Token, which muster token create prints.
var secret = regexp.MustCompile(`eyJ[\w-]+\.[\w-]+\.[\w-]+`)

func (r *reader) run(t *testing.T, script string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute) // it ends only a command that hangs
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	command.Dir, command.Env, command.WaitDelay = r.dir, r.env, time.Second
	out, err := command.CombinedOutput()
	out = secret.ReplaceAll(out, []byte("TOKEN"))
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	t.Logf("%s", out)
}
