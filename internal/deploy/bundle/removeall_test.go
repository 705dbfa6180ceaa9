package bundle

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
)

// removing is a removal of everything that is under way.
type removing struct {
	stop func() error
	mu   sync.Mutex
	said []string
	done bool
}

func (r *rig) empty() *removing {
	r.t.Helper()
	d := &Deployer{
		Cluster: r.reach(nil), Hub: r.hub(), Member: string(r.report.UID), Log: (&running{log: &strings.Builder{}}).logger(),
		Clock: clock.RealClock{},
	}
	e := &removing{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := d.RemoveAll(ctx, func(left applied.Remaining) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.said = append(e.said, left.String())
		})
		e.mu.Lock()
		e.done = err == nil
		e.mu.Unlock()
		ended <- err
	}()
	e.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	r.t.Cleanup(func() { _ = e.stop() }) // the test has looked
	return e
}

// says is nil if that was said last.
func (e *removing) says(parts ...string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, part := range parts {
		if len(e.said) == 0 || !strings.Contains(e.said[len(e.said)-1], part) {
			return fmt.Errorf("it said %q", e.said)
		}
	}
	return nil
}

func (e *removing) over() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.done {
		return fmt.Errorf("it goes on, and said %q", e.said)
	}
	return nil
}

func TestAMemberThatLeavesIsEmptiedOfItsReleases(t *testing.T) {
	r := newRig(t)
	run := r.start()
	kept := file("kept.yaml",
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kept\n  annotations: {helm.sh/resource-policy: keep}\ndata: {key: one}\n")
	held := file("held.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: held\n  finalizers: [example.com/hold]\ndata: {key: one}\n")
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"), kept, held)
	r.place("db", fleet.BundleDeploymentOptions{KeepResources: true}, configMap("db", "one"))
	r.place("fleet-agent-mine", fleet.BundleDeploymentOptions{DefaultNamespace: r.agent}, configMap("agent", "one"))
	for _, name := range []string{"web", "db", "fleet-agent-mine"} {
		r.until(name, fleet.StateReady)
	}
	run.stop()

	first := r.empty()
	const blocked = "1 object left; ConfigMap %s/held waits for finalizer example.com/hold"
	r.eventually("it names what is left", func() error { return first.says(fmt.Sprintf(blocked, r.target)) })
	if err := first.stop(); err == nil {
		t.Error("it ended although something is left")
	}
	if _, err := r.data("web"); !apierrors.IsNotFound(err) {
		t.Errorf("reading what should be gone: %v", err)
	}
	second := r.empty()
	r.eventually("one that begins anew knows it too", func() error { return second.says(fmt.Sprintf(blocked, r.target)) })
	r.edit("held", `{"metadata":{"finalizers":null}}`)
	r.eventually("it is over", second.over)
	for _, name := range []string{"kept", "db"} {
		if _, err := r.data(name); err != nil {
			t.Errorf("what stays is gone: %v", err)
		}
	}
	if r.uid(r.agent, "agent") == "" {
		t.Error("the agent is gone")
	}
	histories := &corev1.SecretList{}
	r.check(r.kube.List(t.Context(), histories, client.InNamespace(r.target), client.MatchingLabels{"owner": "helm"}))
	if len(histories.Items) > 0 {
		t.Errorf("%d histories are left", len(histories.Items))
	}
}

func TestAReleaseThatWasUninstalledHalfwayIsDeployedAgain(t *testing.T) {
	r := newRig(t)
	run := r.start()
	held := file("held.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: held\n  finalizers: [example.com/hold]\ndata: {key: one}\n")
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"), held)
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "two"), held)
	run.stop()
	e := r.empty()
	r.eventually("it waits", func() error { return e.says("example.com/hold") })
	_ = e.stop() // it was interrupted
	r.edit("held", `{"metadata":{"finalizers":null}}`)
	r.start()
	r.eventually("it is there again", func() error {
		if got, err := r.data("web"); err != nil || got != "two" {
			return fmt.Errorf("the data is %q, %w", got, err)
		}
		return nil
	})
	begun := time.Now()
	r.until("web", fleet.StateReady)
	t.Logf("ready %s later", time.Since(begun))
}
