package dashboard

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/ui/view"
)

const (
	// readyColumn is the column of a table with the ready members.
	readyColumn = "READY"
	// mostBundles limits the Bundles of a GitRepo on a page.
	mostBundles = 200
)

// sourceFact is a line about a GitRepo or a HelmOp. Since is a time; zero if there is none.
type sourceFact struct {
	Name, Value string
	Since       time.Time
}

// ofGitRepo adds the repository with its commits, the Bundles, and the selected members.
func (d *shownDelivery) ofGitRepo(repo *fleet.GitRepo, related []client.Object) {
	spec, status := repo.Spec, repo.Status
	follows := sourceFact{Name: "Branch", Value: cmp.Or(spec.Branch, fleet.DefaultBranch)}
	if spec.Revision != "" {
		follows = sourceFact{Name: "Revision", Value: spec.Revision}
	}
	d.addFacts(sourceFact{Name: "Repository", Value: spec.Repo}, follows, sourceFact{Name: "Commit of the Bundles", Value: status.Commit})
	if status.PollingCommit != status.Commit {
		d.addFacts(sourceFact{Name: "Newest commit", Value: status.PollingCommit})
	}
	if status.LastPollingTime != nil {
		d.addFacts(sourceFact{Name: "Newest commit", Since: status.LastPollingTime.Time})
	}
	if status.LastWebhookTime != nil {
		d.addFacts(sourceFact{Name: "Last webhook", Since: status.LastWebhookTime.Time})
	}
	d.addBundles(related)
	of := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: repo.Namespace}}
	for _, target := range spec.Targets {
		of.Spec.Targets = append(of.Spec.Targets, fleet.BundleTarget{Name: target.Name, ClusterName: target.ClusterName,
			ClusterSelector: target.ClusterSelector, ClusterGroup: target.ClusterGroup, ClusterGroupSelector: target.ClusterGroupSelector})
	}
	d.ofTargets(of)
}

// ofHelmOp adds the chart with its version, the Bundle, and the selected members.
func (d *shownDelivery) ofHelmOp(op *fleet.HelmOp, related []client.Object) {
	if helm := op.Spec.Helm; helm != nil {
		d.addFacts(sourceFact{Name: "Repository", Value: helm.Repo}, sourceFact{Name: "Chart", Value: helm.Chart},
			sourceFact{Name: "Chosen from", Value: helm.Version})
	}
	d.addFacts(sourceFact{Name: "Version", Value: op.Status.Version})
	d.addBundles(related)
	d.ofTargets(&fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: op.Namespace}, Spec: op.Spec.BundleSpec})
}

// addFacts adds the known facts.
func (d *shownDelivery) addFacts(facts ...sourceFact) {
	for _, one := range facts {
		if one.Value != "" || !one.Since.IsZero() {
			d.Source = append(d.Source, one)
		}
	}
}

// addBundles adds the Bundles among the related objects.
func (d *shownDelivery) addBundles(related []client.Object) {
	for _, o := range related {
		bundle, is := o.(*fleet.Bundle)
		if !is {
			continue
		}
		one := delivery{entry: entryOf(bundles, bundle)}
		one.Ready, one.All = share(view.Column(bundle, readyColumn, time.Now()))
		d.Bundles = append(d.Bundles, one)
	}
	unready, ready := partitioned(d.Bundles, func(b delivery) bool {
		return b.finding != nil || b.State() != view.StateReady
	})
	d.Bundles, d.MoreBundles = atMost(mostBundles, append(unready, ready...))
}

// ofTargets adds the selections of a source. Without targets it selects the ClusterGroup default.
func (d *shownDelivery) ofTargets(of *fleet.Bundle) {
	if len(of.Spec.Targets) == 0 {
		of.Spec.Targets = []fleet.BundleTarget{{ClusterGroup: "default"}}
	}
	d.Selections, d.Restrictions = targetsOf(of)
}
