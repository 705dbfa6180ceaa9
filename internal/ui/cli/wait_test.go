package cli

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

func TestWaitEndsWhenAMemberIsAsWanted(t *testing.T) {
	r := newRig(t)
	admin := of(t, r.Cluster, r.Account(t, "cli-admin", "cluster-admin"))
	ends := func(args string, code int, want string) {
		t.Helper()
		out, said, err := admin.run(strings.Fields(args)...)
		if ExitCode(err) != code || !strings.Contains(out+said, want) {
			t.Errorf("muster %s ends with %d, %v: %s%s", args, ExitCode(err), err, out, said)
		}
	}
	ends("wait nobody -n team --timeout 5s", exitTimedOut, "there is no nobody among the members")
	ends("wait nobody -n team --for gone", 0, "nobody does not exist")

	late := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "late"}}
	r.check(r.Create(context.Background(), late))
	ends("wait late -n team --timeout 1s", exitTimedOut, "Cluster team/late is not ready after")
	ends("wait late -n team --for gone --timeout 1s", exitTimedOut, "is not gone after")
	gone := make(chan error, 1)
	go func() {
		time.Sleep(time.Second)
		gone <- r.Delete(context.Background(), late)
	}()
	ends("wait cluster/team/late --for gone --timeout 1m", 0, "gone")
	r.check(<-gone)
}

func TestAMemberThatHasJoinedMayNotBeReady(t *testing.T) {
	ready := func(status corev1.ConditionStatus, reason string) *fleet.Cluster {
		return &fleet.Cluster{Status: fleet.ClusterStatus{
			Agent:      fleet.AgentStatus{LastSeen: metav1.Now()},
			Conditions: []fleet.Condition{{Type: fleet.ConditionReady, Status: status, Reason: reason}},
		}}
	}
	for name, row := range map[string]struct {
		member        *fleet.Cluster
		ready, joined bool
	}{
		"new":       {&fleet.Cluster{}, false, false},
		"ready":     {ready(corev1.ConditionTrue, ""), true, true},
		"not ready": {ready(corev1.ConditionFalse, "NotReady"), false, true},
		"lost":      {ready(corev1.ConditionFalse, reasons.AgentLost), false, false},
		"revoked":   {ready(corev1.ConditionFalse, reasons.Revoked), false, false},
	} {
		for goal, want := range map[string]bool{goalReady: row.ready, goalJoined: row.joined, goalGone: false} {
			w := &waiter{goal: goal}
			if got := w.reached(row.member); got != want {
				t.Errorf("%s is %s: %t", name, goal, got)
			}
		}
	}
}

func TestEventsAreListedByTimeAndObject(t *testing.T) {
	r := newRig(t)
	admin := of(t, r.Cluster, r.Account(t, "cli-admin", "cluster-admin"))
	web := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "eventful"}}
	r.check(r.Create(context.Background(), web))
	event := func(name, kind, reason, message string) {
		r.check(r.Create(context.Background(), &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "team", Name: name},
			InvolvedObject: corev1.ObjectReference{Kind: "Cluster", Namespace: "team", Name: web.Name, UID: web.UID},
			Type:           kind, Reason: reason, Message: message, LastTimestamp: metav1.Now(),
		}))
	}
	event("one", corev1.EventTypeNormal, "Joined", "the agent\nhas \x1b[31mjoined")
	event("two", corev1.EventTypeWarning, "AgentLost", "no heartbeat")
	event("also", corev1.EventTypeNormal, "AgentOnline", "sends heartbeats")
	now := metav1.Now()
	web.Status.History = []clusterv1beta1.HistoryEntry{
		{Time: metav1.NewTime(now.Add(-time.Hour)), Reason: "Cordoned", Message: "a user keeps new deliveries"},
		{Time: now, Reason: "Lost", Message: "no heartbeat"},
		{Time: metav1.NewTime(now.Add(-time.Minute)), LastTime: &now, Count: 3, Reason: "Back", Message: "sends heartbeats again"},
	}
	r.check(r.Status().Update(context.Background(), web))
	if out, said, err := admin.run("explain", "eventful", "-n", "team"); err != nil ||
		!strings.Contains(out, "History:\n  60m ago  Cordoned ") || !strings.Contains(out, "sends heartbeats again (3 times since ") {
		t.Errorf("%v\n%s\n%s", err, said, out)
	}
	out, said, err := admin.run("events", "eventful", "-n", "team")
	if cordoned := strings.Index(out, "a user keeps"); cordoned < 0 || cordoned > strings.Index(out, "joined") ||
		strings.Count(out, "no heartbeat") != 1 || strings.Contains(out, "AgentOnline") {
		t.Errorf("%v\n%s\n%s", err, said, out)
	}
	joined, lost := strings.Index(out, "the agent has"), strings.Index(out, "no heartbeat")
	if err != nil || joined < 0 || lost < joined || strings.Contains(out, "\x1b") {
		t.Errorf("%v\n%s\n%q", err, said, out)
	}
	out, said, err = admin.run("events", "-n", "team", "--warnings", "--limit", "1")
	if err != nil || strings.Contains(out, "Joined") || !strings.Contains(out, "Cluster team/eventful") {
		t.Errorf("%v\n%s\n%s", err, said, out)
	}
	if out, said, err := admin.run("describe", "eventful", "-n", "team"); err != nil || !strings.Contains(out, "no heartbeat") ||
		!strings.Contains(out, "Cluster team/eventful is ") {
		t.Errorf("%v\n%s\n%s", err, said, out)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		command := NewCommand("muster", genericiooptions.IOStreams{In: strings.NewReader(""), Out: writer, ErrOut: io.Discard})
		command.SetArgs([]string{"events", "team/eventful", "--warnings", "-w", "--kubeconfig", admin.kubeconfig, "--cache-dir", admin.cacheDir})
		ended <- command.ExecuteContext(ctx)
		_ = writer.Close() // a pipe of this test
	}()
	lines := bufio.NewScanner(reader)
	for _, want := range []string{"LAST-SEEN", "no heartbeat", "Warning  LostAgain"} {
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Fatalf("it prints %q, without %q", lines.Text(), want)
		}
		if want == "no heartbeat" {
			event("three", corev1.EventTypeNormal, "JoinedAgain", "it has joined")
			event("four", corev1.EventTypeWarning, "LostAgain", "no heartbeat again")
		}
	}
	if end(); <-ended != nil {
		t.Error("it ends with an error")
	}
	nobody := of(t, r.Cluster, r.Account(t, "nobody", ""))
	nobody.refused("events", "events is forbidden", "use --namespace for one workspace")
}

func TestVersionNamesWhatItCannotRead(t *testing.T) {
	r := newRig(t)
	admin := of(t, r.Cluster, r.Account(t, "cli-admin", "cluster-admin"))
	aged := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "aged"}}
	r.check(r.Create(context.Background(), aged))
	before := aged.DeepCopy()
	aged.Status.Agent.Version = "v0.0.9"
	r.check(r.Status().Patch(context.Background(), aged, client.MergeFrom(before)))
	admin.says("version -n team", "muster  ", "agents  0.0.9, on 1 member", "The version of the hub is unknown")
	admin.says("version -n team -o json", `"0.0.9": 1`, `"problems": [`)
	admin.says("version --client", "muster  ")
	member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "aged-member"}, Spec: clusterv1beta1.MemberClusterSpec{
		Identity: rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "aged"},
	}}
	r.check(r.Create(context.Background(), member))
	unversioned := member.DeepCopy()
	member.Status.AgentVersion = "v0.0.8"
	r.check(r.Status().Patch(context.Background(), member, client.MergeFrom(unversioned)))
	admin.says("version -o json", `"0.0.8": 1`)
	nobody := of(t, r.Cluster, r.Account(t, "nobody", ""))
	nobody.says("version", "The versions of the agents are unknown")
}

func TestVersionsAreComparedByTheirMinorVersion(t *testing.T) {
	v := &versions{Client: "1.2.0", Hub: "1.3.1", Agents: map[string]int{"1.3.0": 3, "1.2.9": 1}}
	v.compare()
	if text := strings.Join(v.Problems, "\n"); len(v.Problems) != 2 || !strings.Contains(text, "The hub is newer than muster") ||
		!strings.Contains(text, "Agents of version 1.2.9 differ") {
		t.Error(text)
	}
}
