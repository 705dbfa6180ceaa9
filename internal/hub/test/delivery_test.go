package hub_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/testkube"
)

// delivering is a MemberCluster on a cluster of its own, whose agent starts the
// program that delivers.
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
	cluster.ServeFleet(f.t)
	d.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	d.agent = d.serve(d.on, delivers(f.t, cluster))
	d.label(append(labels, "test="+f.workspace)...)
	d.until("Joined", metav1.ConditionTrue, "MemberClusterJoined")
	return d
}

// appliedConfigMap is what is placed of a namespace, as the member has it.
func (d *delivering) appliedConfigMap(shop string) *corev1.ConfigMap {
	d.t.Helper()
	found := &corev1.ConfigMap{}
	d.check(d.on.get(found, shop, "settings"))
	return found
}

// delivers makes the agent of a cluster start the program. What that logs is shown if the test
// fails.
func delivers(t *testing.T, on testkube.Cluster) func(*agent.Options) {
	log := filepath.Join(t.TempDir(), "muster-deployer.log")
	t.Cleanup(func() {
		if text, err := os.ReadFile(log); t.Failed() && err == nil {
			t.Logf("muster-deployer printed:\n%s", text)
		}
	})
	return func(o *agent.Options) {
		o.Delivery = agent.Delivery{Path: "/bin/sh", Arguments: []string{
			"-c", `exec "$@" 2>>"$0"`, log, testkube.Build(t, "muster-deployer"), "--kubeconfig=" + filepath.Join(on.Dir, "kubeconfig"),
			"--namespace=" + o.Namespace,
		}}
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

func TestAWorkDeletedByHandIsWrittenAgainAndCostsTheMemberNothing(t *testing.T) {
	f := newFixture(t)
	m := f.delivering("retained", "env=prod")
	shop := f.shop()
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilSays(crp, "Applied", metav1.ConditionTrue, "")
	before, work := m.appliedConfigMap(shop), &f.works(crp)[0]
	f.check(f.Delete(context.Background(), work))
	f.eventually("the Work is written again", func() error {
		works := f.works(crp)
		if len(works) != 1 || works[0].UID == work.UID {
			return fmt.Errorf("there are %d", len(works))
		}
		if applied := meta.FindStatusCondition(works[0].Status.Conditions, placement.ConditionApplied); applied == nil ||
			applied.Status != metav1.ConditionTrue {
			return fmt.Errorf("it is %+v", applied)
		}
		return nil
	})
	if after := m.appliedConfigMap(shop); after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the ConfigMap was touched: %+v, then %+v", before.ObjectMeta, after.ObjectMeta)
	}
}

func TestAMemberAppliesWhatIsPlacedOnItAndRemovesIt(t *testing.T) {
	f := newFixture(t)
	m := f.delivering("delivered", "env=prod")
	shop := f.shop()
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.eventually("the member has it", func() error { return m.has(shop) })
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

func TestAPlacementThatOnlyComparesShowsInWhatAMemberDiffers(t *testing.T) {
	f := newFixture(t)
	m := f.delivering("compared", "env=prod")
	shop := f.shop()
	ctx := context.Background()
	f.check(m.on.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}}))
	f.check(m.on.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "settings"}, Data: map[string]string{"a": "other"},
	}))
	spec := strings.ReplaceAll(prodOnly, "$SHOP", shop)
	crp := f.crp(strings.Replace(spec, "rollingUpdate: {maxUnavailable: 1}", "applyStrategy: {type: ReportDiff}", 1))
	f.untilSays(crp, "DiffReported", metav1.ConditionTrue, "and 2 more differ")
	if c := meta.FindStatusCondition(crp.Status.Conditions, "ClusterResourcePlacementApplied"); c != nil || crp.Status.Members != "1/1" {
		t.Errorf("members %s, condition %+v", crp.Status.Members, c)
	}
	diffed := crp.Status.PlacementStatuses[0].DiffedPlacements
	settings := slices.IndexFunc(diffed, func(d placement.DiffedPlacement) bool { return d.Name == "settings" })
	if want := []placement.PatchDetail{{Path: "/data/a", ValueInHub: "1", ValueInMember: "other"}}; len(diffed) != 3 || settings < 0 ||
		!cmp.Equal(diffed[settings].ObservedDiffs, want) {
		t.Errorf("it shows %+v", diffed)
	}
	if err := m.on.get(&corev1.Service{}, shop, "web"); !apierrors.IsNotFound(err) {
		t.Errorf("reading what is not to be applied: %v", err)
	}

	f.eventually("it is to be applied", func() error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		crp.Spec.Strategy.ApplyStrategy = &placement.ApplyStrategy{WhenToApply: placement.ApplyIfNotDrifted}
		return f.Update(ctx, crp)
	})
	f.untilSays(crp, "Applied", metav1.ConditionTrue, "on all 1 members")
	f.check(m.on.Patch(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "settings"}},
		client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"edited"}}`))))
	f.untilSays(crp, "Applied", metav1.ConditionFalse, `/data/a is "edited" and not "1"`)
	drifted := crp.Status.PlacementStatuses[0].DriftedPlacements
	if want := []placement.PatchDetail{{Path: "/data/a", ValueInHub: "1", ValueInMember: "edited"}}; len(drifted) != 1 ||
		!cmp.Equal(drifted[0].ObservedDrifts, want) {
		t.Errorf("it shows %+v", drifted)
	}
}
