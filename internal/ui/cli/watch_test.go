package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testterminal"
	"github.com/muster-fleet/muster/internal/ui/view"
)

func TestGetGoesOnToShowWhatChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	cluster := fleetOfThree(t)
	admin := of(t, cluster, cluster.Account(t, "cli-admin", "cluster-admin"))
	admin.refused("get -w -o json", "--watch prints a table: use --output wide, not json")
	admin.refused("get -w members wep", "did you mean team-a/web?")

	ctx, end := context.WithCancel(context.Background())
	defer end()
	change := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	change(cluster.Client(t).Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "watched"}}))
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		command := NewCommand("muster", genericiooptions.IOStreams{In: strings.NewReader(""), Out: writer, ErrOut: io.Discard})
		command.SetArgs([]string{"get", "--kubeconfig", admin.kubeconfig, "--cache-dir", admin.cacheDir, "--namespace", "watched", "--watch"})
		ended <- command.ExecuteContext(ctx)
	}()
	lines := make(chan string)
	go func() {
		for scanner := bufio.NewScanner(reader); scanner.Scan(); {
			lines <- strings.Join(strings.Fields(scanner.Text()), " ")
		}
	}()
	shows := func(want string) {
		t.Helper()
		select {
		case got := <-lines:
			if got != want {
				t.Fatalf("it shows %s, not %s", got, want)
			}
		case err := <-ended:
			t.Fatalf("it ends: %v", err)
		case <-time.After(5 * time.Minute):
			t.Fatalf("it does not show %s", want)
		}
	}
	shows(membersHeader)
	watchOnATerminal(t, admin)
	late := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "watched", Name: "late"}}
	change(cluster.Client(t).Create(ctx, late))
	shows("watched/late Cluster New - - - - -")
	late.Status.Conditions = []fleet.Condition{{Type: "Ready", Status: "True"}}
	change(cluster.Client(t).Status().Update(ctx, late))
	shows("watched/late Cluster Ready - - - online -")
	change(cluster.Client(t).Delete(ctx, late))
	shows("watched/late Cluster Gone - - - online -")
	end()
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// watchOnATerminal opens muster watch on a terminal, explains a Cluster, and leaves.
func watchOnATerminal(t *testing.T, admin user) {
	t.Helper()
	shown, terminal := testterminal.New(t, 120)
	ended := make(chan error, 1)
	go func() {
		command := NewCommand("muster", genericiooptions.IOStreams{In: terminal, Out: terminal, ErrOut: io.Discard})
		command.SetArgs([]string{"watch", "team-a/web", "--kubeconfig", admin.kubeconfig, "--cache-dir", admin.cacheDir})
		ended <- command.ExecuteContext(t.Context())
	}()
	screen := make(chan string, 100)
	go func() {
		for buffer := make([]byte, 64<<10); ; {
			n, err := shown.Read(buffer)
			if err != nil {
				return
			}
			screen <- string(buffer[:n])
		}
	}()
	for _, step := range []struct{ shows, press string }{{"team-a/web", "\r"}, {"Cluster team-a/web is", "qq"}} {
		for seen := ""; !strings.Contains(seen, step.shows); {
			select {
			case part := <-screen:
				seen += part
			case err := <-ended:
				t.Fatalf("it ends before it shows %q: %v", step.shows, err)
			case <-time.After(5 * time.Minute):
				t.Fatalf("it shows %q, and not %q", seen, step.shows)
			}
		}
		if _, err := shown.WriteString(step.press); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

func TestWhatAMemberWritesCommandsNoTerminal(t *testing.T) {
	members, _ := kindOf("members")
	record := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web"}, Status: fleet.ClusterStatus{
		Agent:      fleet.AgentStatus{KubernetesVersion: "v1\x1b[2J"},
		Conditions: []fleet.Condition{{Type: "Ready", Status: "False", Reason: "AgentLost", Message: "gone\x1b]0;title\x07 \x1b[1A"}},
	}}
	var text strings.Builder
	table := newTable(&text, members, true, style{})
	table.print(view.Row(record, time.Now()))
	if err := table.flush(); err != nil || strings.ContainsAny(text.String(), "\x1b") || !strings.Contains(text.String(), "gone") {
		t.Errorf("it prints %q, %v", text.String(), err)
	}
}

// TestWhatATenantWritesForgesNoLine uses a client ID with a line break and a forged line.
func TestWhatATenantWritesForgesNoLine(t *testing.T) {
	requests, _ := kindOf("requests")
	asked := &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "request-1"},
		Spec: fleet.ClusterRegistrationSpec{
			ClientID: "x\t5m\t-\nteam/request-2\tGranted\u202e\u0085\u2028web " + strings.Repeat("y", 8000)}}
	for what, id := range map[string]string{"long": asked.Spec.ClientID, "blank": "\t \n\u200b"} {
		asked.Spec.ClientID = id
		var text strings.Builder
		table := newTable(&text, requests, true, style{})
		table.printHeader()
		table.print(view.Row(asked, time.Now()))
		if err := table.flush(); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
		if len(lines) != 2 || len(lines[1]) > 4*maxBetween || strings.ContainsAny(text.String(), "\t\u202e\u0085\u2028\u200b") ||
			len(regexp.MustCompile(" {2,}").Split(lines[1], -1)) != len(requests.columns) {
			t.Errorf("%s: it prints %q", what, lines)
		}
	}
}

func TestATerminalShowsWhatFits(t *testing.T) {
	now := time.Now()
	members, _ := kindOf("members")
	v := &screen{kind: members, objects: map[string]client.Object{}}
	record := func(name string) client.Object {
		return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	shows := func(when string, width, height int, want ...string) {
		t.Helper()
		screen := v.draw(width, height, now)
		text, home := strings.CutPrefix(screen, "\033[H")
		text, rest := strings.CutSuffix(text, "\033[J")
		if !home || !rest {
			t.Errorf("%s: it is not in the place of the one before: %q", when, screen)
		}
		var got []string
		for line := range strings.Lines(text) {
			got = append(got, strings.Join(strings.Fields(strings.TrimSuffix(line, "\033[K\n")), " "))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	shows("nothing", 200, 24, membersHeader)
	for _, name := range []string{"c", "a", "b"} {
		v.take(change{object: record(name)}, now)
	}
	const a, b, c = "a MemberCluster New - - - - -", "b MemberCluster New - - - - -", "c MemberCluster New - - - - -"
	shows("three", 200, 24, membersHeader, a, b, c)
	shows("a low one", 200, 5, membersHeader, a, b, "and 1 more")
	shows("a narrow one", 6, 24, "NAME …", "a …", "b …", "c …")
	v.take(change{object: record("b"), gone: true}, now)
	shows("one is gone", 200, 24, membersHeader, a, c)
	v.take(change{err: errors.New("connection refused")}, now)
	now = now.Add(5 * time.Second)
	shows("the hub is away", 200, 24, "Not live for 5s: connection refused", membersHeader, a, c)
	now = now.Add(problemLasts)
	shows("it has come back, and nothing has changed", 200, 24, membersHeader, a, c)
	v.names = []string{"a"}
	v.take(change{object: record("d")}, now)
	shows("one that was not asked for", 200, 24, membersHeader, a, c)
}
