package dashboard

import (
	"fmt"
	"net/http"
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

// mostTargets limits the members shown for a delivery.
const mostTargets = 200

// shownDelivery is the view of a delivery.
type shownDelivery struct {
	Title, State string
	Findings     []explain.Finding
	Partitions   []partition
	Rollout      *rollout
	Targets      []target
	// More is the number of further members with details.
	More int
	// Causes are the problems of all members, the most frequent first.
	Causes []sharedCause
	// Selections are the selected members; PickN picks Number of them. A member must also match
	// one of Restrictions, if any.
	Selections, Restrictions []selection
	// MoreSelections is the number of further selections.
	MoreSelections int
	Number         *int32
	Unseen         []string
	// Run is set only for a staged update run; a run has no selection of its own.
	Run *shownRun
	// Runs are the newest staged update runs of a placement; MoreRuns is the number of older ones.
	Runs     []delivery
	MoreRuns int
	// Source has the facts about a GitRepo or HelmOp, and Bundles its Bundles; MoreBundles is the
	// number of further ones.
	Source      []sourceFact
	Bundles     []delivery
	MoreBundles int
	// Pause holds the buttons for pausing the delivery or deploying it again; nil if there are none.
	Pause *pausable
	// Held is the removal that the visitor may confirm; nil if there is none.
	Held *heldRemoval
}

// partition is a step of the rollout of a Bundle.
type partition struct {
	Name          string
	Ready, All    int
	Mode, Verdict string
}

// target is a member of a delivery, with the reason why it is not ready there.
type target struct {
	Name, State, Text string
	// Path is the page of the member.
	Path string
	// Diffs are the objects with drift on the member.
	Diffs []branch
	// Resources is the index of the member's snapshot, and whether it is the latest; set only for a
	// placement.
	Resources string
}

// delivery is the view of one delivery, read as the visitor.
func (s *Server) delivery(w http.ResponseWriter, r *http.Request, v *visitor) error {
	resource, err := deliveredKind(r)
	if err != nil {
		return err
	}
	live, stale, err := s.follow(r, v, resource)
	if err != nil {
		return err
	}
	o, err := readDelivery(r, v, resource)
	if err != nil {
		return err
	}
	related, unseen := view.Related(r.Context(), v, o)
	shown := &shownDelivery{Title: view.Title(o), State: view.State(o), Findings: explain.Of(append([]client.Object{o}, related...)...)}
	if shown.Held, err = heldFor(r.Context(), v, resource, o); err != nil {
		return err
	}
	if shown.Pause, err = pauseOf(r.Context(), v, resource, o); err != nil {
		return err
	}
	for _, err := range unseen {
		shown.Unseen = append(shown.Unseen, err.Error())
	}
	switch o := o.(type) {
	case *fleet.Bundle:
		shown.ofBundle(o)
	case *fleet.GitRepo:
		shown.ofGitRepo(o, related)
	case *fleet.HelmOp:
		shown.ofHelmOp(o, related)
	case *placement.ClusterResourcePlacement:
		shown.ofPlacement(o, &o.Spec, &o.Status)
	case *placement.ResourcePlacement:
		shown.ofPlacement(o, &o.Spec, &o.Status)
	}
	if run, is := view.RunOf(o); is {
		if err := shown.ofRun(r.Context(), v, resource, run); err != nil {
			return err
		}
	}
	if resource == clusterPlacements || resource == placements {
		late, err := s.addRuns(r.Context(), v, shown, o)
		if err != nil {
			return err
		}
		stale = append(stale, late...)
	}
	shown.Causes = causesOf(shown.Targets)
	shown.Targets, shown.More = atMost(mostTargets, shown.Targets)
	shown.Selections, shown.MoreSelections = atMost(mostSelections, shown.Selections)
	return s.show(w, r, v, "delivery", page{
		Title: view.NameOf(o), View: "deliveries", Stale: stale, Live: live, Body: shown,
		Crumbs: crumbs("Deliveries", deliveriesPath, view.NameOf(o)),
	})
}

// deliveredKind returns the resource in a request for a delivery.
func deliveredKind(r *http.Request) (resource string, err error) {
	resource = r.PathValue("resource")
	if !slices.Contains(deliveredResources, resource) {
		return "", &inputError{fmt.Errorf("%s is not a kind of delivery: use one of %s", resource, strings.Join(deliveredResources, ", "))}
	}
	return resource, nil
}

// readDelivery reads the delivery of a request, as the visitor.
func readDelivery(r *http.Request, v *visitor, resource string) (client.Object, error) {
	o := kinds[resource].example.DeepCopyObject().(client.Object)
	return o, v.Get(r.Context(), client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}, o)
}

// atMost returns the first of all, and the number of further ones.
func atMost[T any](n int, all []T) (first []T, more int) {
	return all[:min(n, len(all))], max(0, len(all)-n)
}

// ofBundle adds the selections, the consecutive steps of the rollout, and the unready members.
func (d *shownDelivery) ofBundle(b *fleet.Bundle) {
	d.Selections, d.Restrictions = targetsOf(b)
	status, unfinished := &b.Status, 0
	for _, p := range status.PartitionStatus {
		one := partition{
			Name: p.Name, Ready: p.Count - p.Unavailable, All: p.Count, Mode: fmt.Sprintf("at most %d unavailable", p.MaxUnavailable),
		}
		behind := p.Summary.OutOfSync + p.Summary.Pending + p.Summary.WaitApplied + p.Summary.WaitingForDependency
		switch {
		case unfinished > status.MaxUnavailablePartitions:
			one.Verdict = "waiting for earlier partitions"
		case p.Unavailable > p.MaxUnavailable:
			one.Verdict = fmt.Sprintf("blocked: %d unavailable, over the limit", p.Unavailable)
		case behind > 0:
			one.Verdict = fmt.Sprintf("in progress: %d of %d not up to date", behind, p.Count)
		default:
			one.Verdict = "finished"
		}
		if behind > 0 || p.Unavailable > p.MaxUnavailable {
			unfinished++
		}
		d.Partitions = append(d.Partitions, one)
	}
	for _, not := range status.Summary.NonReadyResources {
		d.Targets = append(d.Targets, target{
			Name: not.Name, State: string(not.State), Text: not.Message, Path: bundleMember(b, not.Name), Diffs: driftsOf(not.ModifiedStatus),
		})
	}
}

// ofPlacement adds the selections, the steps of the rollout, the picked members, and the reasons
// why they are not ready.
func (d *shownDelivery) ofPlacement(o client.Object, spec *placement.PlacementSpec, status *placement.PlacementStatus) {
	d.Selections = picksOf(spec.Policy)
	if spec.Policy != nil {
		d.Number = spec.Policy.NumberOfClusters
	}
	kind, _, _ := strings.Cut(view.Title(o), " ")
	if d.Rollout = rolloutOf(kind, &spec.Strategy, status); d.Rollout != nil && o.GetDeletionTimestamp() != nil {
		d.Rollout.Verdict = "The placement is being deleted. Its rollout has stopped."
	}
	for _, member := range status.PlacementStatuses {
		if meta.IsStatusConditionFalse(member.Conditions, placement.ConditionScheduled) {
			continue // its obstacle explains more
		}
		one := target{
			Name: member.ClusterName, State: view.StateNew, Path: memberPath(member.ClusterName),
			Resources: numbered(member.ObservedResourceIndex, status.ObservedResourceIndex),
		}
		for _, condition := range member.Conditions {
			one.State = view.StateReady
			if condition.Status != metav1.ConditionTrue {
				one.State, one.Text = view.StateNotReady, said(condition.Reason, condition.Message)
				break
			}
		}
		for _, failed := range member.FailedPlacements {
			one.Text += fmt.Sprintf(" %s %s/%s: %s", failed.Kind, failed.Namespace, failed.Name, failed.Condition.Message)
		}
		d.Targets = append(d.Targets, one)
	}
	for _, o := range status.Obstacles {
		if !slices.ContainsFunc(d.Targets, func(t target) bool { return t.Name == o.ClusterName }) {
			d.Targets = append(d.Targets, target{
				Name: o.ClusterName, State: view.StateNotReady, Path: memberPath(o.ClusterName), Text: said(o.Reason, o.Message),
			})
		}
	}
	unready, ready := partitioned(d.Targets, func(t target) bool { return t.State != view.StateReady }) // not all may be shown
	d.Targets = append(unready, ready...)
}
