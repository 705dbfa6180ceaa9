package hub_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/testkube"
)

// delivering is a MemberCluster on a cluster of its own, whose agent starts the program that delivers.
type delivering struct {
	*registered
	// on is that cluster.
	on    fixture
	agent *member
}

func (f fixture) delivering(prefix string, labels ...string) *delivering {
	f.t.Helper()
	cluster := testkube.Start(f.t, "delivered")
	d := &delivering{registered: f.register(prefix), on: fixture{Client: cluster.Client(f.t), t: f.t, cluster: cluster}}
	cluster.InstallCRDs(f.t)
	d.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	d.agent = d.serve(d.on, delivers(f.t, cluster))
	d.label(append(labels, "test="+f.workspace)...)
	d.until("Joined", metav1.ConditionTrue, "MemberClusterJoined")
	return d
}

// delivers makes the agent of a cluster start the program.
func delivers(t *testing.T, on testkube.Cluster) func(*agent.Options) {
	return func(o *agent.Options) {
		o.Delivery = agent.Delivery{
			Path:      testkube.Build(t, "muster-deployer"),
			Arguments: []string{"--kubeconfig=" + filepath.Join(on.Dir, "kubeconfig"), "--namespace=" + o.Namespace},
		}
	}
}

// has is nil if the member has what is placed of a namespace.
func (d *delivering) has(shop string) error {
	if err := d.on.get(&corev1.ConfigMap{}, shop, "settings"); err != nil {
		return err
	}
	return d.on.get(&placement.AppliedWork{}, "", "crp-"+d.workspace+"-work")
}

func (d *delivering) hasNothingOf(shop string) error {
	if err := d.on.get(&corev1.ConfigMap{}, shop, "settings"); !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the ConfigMap: %v", err)
	}
	if err := d.on.get(&placement.AppliedWork{}, "", "crp-"+d.workspace+"-work"); !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the AppliedWork: %v", err)
	}
	return nil
}

func TestAMemberAppliesWhatIsPlacedOnItAndRemovesIt(t *testing.T) {
	f := newFixture(t)
	m := f.delivering("delivered", "env=prod")
	shop := f.shop()
	begun := time.Now()
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.eventually("the member has it", func() error { return m.has(shop) })
	t.Logf("it was there %s after the placement", time.Since(begun))
	f.untilSays(crp, "Applied", metav1.ConditionTrue, "")
	f.check(f.Delete(context.Background(), crp))
	f.eventually("the member has it no more", func() error { return m.hasNothingOf(shop) })
	f.eventually("the placement is gone", func() error {
		if err := f.get(crp, "", crp.Name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
}
