package dashboard

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/ui/explain"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// mostObjects limits the objects of one delivery in a tree.
const mostObjects = 50

// States of objects on a member.
const (
	stateModified = "Modified"
	stateMissing  = "Missing"
	stateExtra    = "Extra"
)

// branch is a delivery or an object on a member, with the objects below it. Path is its page;
// empty without one.
type branch struct {
	Name, Path, State, Why string
	Diff                   []difference
	Below                  []branch
	More                   int
}

// deliveredTree returns the deliveries to a member as trees: the Bundle or the placement, the
// release or Work, and the objects. Deliveries with problems come first.
func deliveredTree(deliveries []client.Object) []branch {
	branches := make([]branch, 0, len(deliveries))
	for _, o := range deliveries {
		switch o := o.(type) {
		case *fleet.BundleDeployment:
			branches = append(branches, bundleBranch(o))
		case *placement.Work:
			branches = append(branches, workBranch(o))
		}
	}
	slices.SortStableFunc(branches, func(a, b branch) int { return cmp.Or(byTrouble(a, b), strings.Compare(a.Name, b.Name)) })
	return branches
}

// byTrouble orders branches with problems first.
func byTrouble(a, b branch) int {
	rank := func(state string) int { return -slices.Index(tones, toneOf(state)) }
	return cmp.Compare(rank(a.State), rank(b.State))
}

// stated returns a branch with the state of its object, and its first problem.
func stated(name, path string, o client.Object) branch {
	b := branch{Name: name, Path: path, State: view.StateReady}
	if o.GetDeletionTimestamp() != nil {
		b.State = view.StateDeleting
	} else if findings := explain.Of(o); len(findings) > 0 && !findings[0].Aside {
		b.State, b.Why = view.StateNotReady, said(findings[0].Reason, findings[0].Message)
	}
	return b
}

// bundleBranch returns the tree of a Bundle on a member.
func bundleBranch(o *fleet.BundleDeployment) branch {
	bundle := &fleet.Bundle{}
	bundle.Namespace, bundle.Name = o.Labels[fleet.LabelBundleNamespace], o.Labels[fleet.LabelBundleName]
	root := branch{Name: "BundleDeployment " + o.Name}
	if bundle.Name != "" && bundle.Namespace != "" {
		root = branch{Name: view.Title(bundle), Path: deliveryPath(bundles, bundle)}
	}
	root = stated(root.Name, root.Path, o)
	release := branch{Name: "not installed"}
	if o.Status.Release != "" {
		release.Name = "Release " + o.Status.Release
	}
	release.Below, release.More = atMost(mostObjects, objectsOf(&o.Status))
	root.Below = []branch{release}
	return root
}

// objectsOf returns the objects of a deployment, with their problems first.
func objectsOf(status *fleet.BundleDeploymentStatus) (objects []branch) {
	problems := map[string]branch{}
	for _, not := range status.NonReadyStatus {
		name := objectTitle(not.Kind, not.Namespace, not.Name)
		problems[name] = branch{Name: name, State: cmp.Or(not.Summary.State, view.StateNotReady), Why: messages(not.Summary)}
	}
	for _, changed := range status.ModifiedStatus {
		name := objectTitle(changed.Kind, changed.Namespace, changed.Name)
		problems[name] = branch{Name: name, State: modification(changed), Diff: patchDiff(changed.Kind, changed.Patch)}
	}
	for _, r := range status.Resources {
		name := objectTitle(r.Kind, r.Namespace, r.Name)
		if _, troubled := problems[name]; !troubled {
			objects = append(objects, branch{Name: name, State: view.StateReady})
		}
	}
	for _, b := range problems {
		objects = append(objects, b)
	}
	slices.SortFunc(objects, func(a, b branch) int { return cmp.Or(byTrouble(a, b), strings.Compare(a.Name, b.Name)) })
	return objects
}

// modification returns the state of an object with drift.
func modification(changed fleet.ModifiedStatus) string {
	switch {
	case changed.Create:
		return stateMissing
	case changed.Delete:
		return stateExtra
	case changed.Exist:
		return "Conflict"
	}
	return stateModified
}

// messages returns the messages of an unready object.
func messages(summary fleet.ReadinessSummary) string {
	return strings.Join(summary.Message, "; ")
}

// objectTitle returns the name of an object with its kind.
func objectTitle(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}

// workBranch returns the tree of a placement on a member.
func workBranch(o *placement.Work) branch {
	root := stated("Work "+o.Name, "", o)
	if name := o.Labels[placement.LabelParentCRP]; name != "" {
		if namespace := o.Labels[placement.LabelParentNamespace]; namespace != "" {
			of := &placement.ResourcePlacement{}
			of.Namespace, of.Name = namespace, name
			root.Name, root.Path = view.Title(of), deliveryPath(placements, of)
		} else {
			of := &placement.ClusterResourcePlacement{}
			of.Name = name
			root.Name, root.Path = view.Title(of), deliveryPath(clusterPlacements, of)
		}
	}
	work := branch{Name: "Work " + o.Name}
	for _, m := range o.Status.ManifestConditions {
		id := m.Identifier
		one := branch{Name: objectTitle(id.Kind, id.Namespace, id.Name), State: view.StateReady}
		for _, kind := range []string{placement.ConditionApplied, placement.ConditionAvailable, placement.ConditionDiffReported} {
			if c := meta.FindStatusCondition(m.Conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
				one.State, one.Why = "Not"+kind, said(c.Reason, c.Message)
				break
			}
		}
		if m.DriftDetails != nil {
			one.Diff = detailDiff(id.Kind, m.DriftDetails.ObservedDrifts)
		} else if m.DiffDetails != nil {
			one.Diff = detailDiff(id.Kind, m.DiffDetails.ObservedDiffs)
		}
		if len(one.Diff) > 0 && one.State == view.StateReady {
			one.State = stateModified
		}
		work.Below = append(work.Below, one)
	}
	slices.SortStableFunc(work.Below, byTrouble)
	work.Below, work.More = atMost(mostObjects, work.Below)
	root.Below = []branch{work}
	return root
}
