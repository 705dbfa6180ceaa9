package dashboard

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/ui/explain"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// entry is an object of the fleet with its view data. It never changes: a change of the object
// creates another entry.
type entry struct {
	namespace, bare string
	name            string // with the namespace
	displayName     string
	resource        string
	resourceVersion string
	labels          labelSet
	state, why      string
	// whyNow is why at the present time; nil if why does not change with the time.
	whyNow func() string
	// version of Kubernetes and facts are set for members only.
	version string
	facts   *facts
	// changes and delays are in the plots; they are set for members only.
	changes []happened
	delays  delays
	// finding is the first problem; nil without one.
	finding *explain.Finding
	// since is the time of the last change of a condition, or else of the creation.
	since time.Time
	// shown changes if a table row changes, except for the ages in it.
	shown uint64
	// members is the number of updated members of a staged update run, and of all.
	members string
	// placement is the name of the placement of a staged update run, with the namespace.
	placement string
	// asked is the data of requests only.
	asked *asked
	// object is the whole object, without data used by no view. It is nil for members and
	// requests, because there are many of them.
	object client.Object
}

// membersColumn is the table column with the number of members of a delivery.
const membersColumn = "MEMBERS"

// labelSet holds labels in the order of their keys. A map of a few labels takes five times as
// much memory, and there is one for each member.
type labelSet []struct{ key, value string }

func labelSetOf(all map[string]string) labelSet {
	set := make(labelSet, 0, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		set = append(set, struct{ key, value string }{key, all[key]})
	}
	return set
}

// Lookup implements labels.Labels.
func (s labelSet) Lookup(key string) (value string, has bool) {
	for _, l := range s {
		if l.key == key {
			return l.value, true
		}
	}
	return "", false
}

// Has implements labels.Labels.
func (s labelSet) Has(key string) bool {
	_, has := s.Lookup(key)
	return has
}

// String returns the labels as a selector.
func (s labelSet) String() string {
	texts := make([]string, len(s))
	for i, l := range s {
		texts[i] = l.key + "=" + l.value
	}
	return strings.Join(texts, ",")
}

// Get implements labels.Labels.
func (s labelSet) Get(key string) string {
	value, _ := s.Lookup(key)
	return value
}

// asked is the data shown for requests only.
type asked struct {
	cluster, clientID, labels string
	// labels, uid and reason belong to an ungranted request; a user may decide about it. decided
	// reports whether a user has.
	uid     types.UID
	reason  string
	decided bool
	// superseded reports whether a newer request has replaced it.
	superseded bool
}

func askedOf(r *fleet.ClusterRegistration) *asked {
	a := &asked{cluster: r.Status.ClusterName, clientID: r.Spec.ClientID}
	if r.Status.State != fleet.RegistrationGranted {
		a.uid, a.reason, a.labels = r.UID, r.Status.Reason, view.RequestedLabels(r)
		a.decided, a.superseded = undoable(r), isSuperseded(r)
	}
	return a
}

// Name, State and Why are shown by templates.
func (e *entry) Name() string  { return e.name }
func (e *entry) State() string { return e.state }

// Why returns the reason why the object is not well; empty if it is.
func (e *entry) Why() string {
	why := e.why
	if e.whyNow != nil {
		why = e.whyNow()
	}
	if why == view.Nothing {
		return ""
	}
	return why
}

// path returns its page.
func (e *entry) path() string {
	switch e.resource {
	case clusters, memberClusters:
		return memberPath(e.name)
	case tokens:
		return "/tokens/" + e.name
	case requests:
		return "/requests/" + e.name
	}
	return deliveriesPath + "/" + e.resource + "/" + e.name
}

func entryOf(resource string, o client.Object) *entry {
	e := &entry{namespace: o.GetNamespace(), bare: o.GetName(), name: view.NameOf(o), resource: resource,
		displayName:     strings.Clone(view.DisplayName(o)),
		resourceVersion: o.GetResourceVersion(), labels: labelSetOf(o.GetLabels()),
		state: view.State(o), why: view.Because(o), since: changedAt(o)}
	if findings := explain.Of(o); len(findings) > 0 && !findings[0].Aside {
		e.finding = &findings[0]
	}
	switch request, is := o.(*fleet.ClusterRegistration); {
	case is:
		e.asked = askedOf(request)
	case resource == clusters, resource == memberClusters:
		e.facts, e.version = factsOf(o, e.labels), strings.Clone(view.Column(o, "VERSION", time.Now()))
		e.changes, e.delays, e.whyNow = happenedTo(o, time.Now()), delaysOf(o), whyNow(o)
	default:
		e.object = o
	}
	e.shown = shownOf(e, o)
	if run, is := view.RunOf(o); is { // only the page of the run shows more about its members
		e.members = strings.Clone(view.Column(o, membersColumn, time.Now()))
		e.placement = client.ObjectKey{Namespace: e.namespace, Name: run.Spec.PlacementName}.String()
		*run.Status = placement.UpdateRunStatus{}
	}
	return e
}

// shownOf returns the digest of an object's table row, independent of the time.
func shownOf(e *entry, o client.Object) uint64 {
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%q %v %d %q", view.Row(o, time.Time{}), e.labels, e.since.Unix(), o.GetAnnotations()[fleet.AnnotationApproved])
	if e.finding != nil {
		fmt.Fprintf(sum, "%q", []string{e.finding.Reason, e.finding.Message})
	}
	return sum.Sum64()
}

// changedAt returns the time of the last change of an object's condition. An agent's date in the
// future is ignored.
func changedAt(o client.Object) time.Time {
	last, now := o.GetCreationTimestamp().Time, time.Now()
	later := func(t time.Time) {
		if t.After(last) && !t.After(now) {
			last = t
		}
	}
	switch o := o.(type) {
	case *fleet.Cluster:
		for _, c := range o.Status.Conditions {
			if at, err := time.Parse(time.RFC3339, c.LastTransitionTime); err == nil { // an agent may have written an invalid date
				later(at)
			}
		}
	case *clusterv1beta1.MemberCluster:
		for _, c := range o.Status.Conditions {
			later(c.LastTransitionTime.Time)
		}
	}
	return last
}

// slim drops the data not shown in any view.
func slim(o client.Object) client.Object {
	o.SetManagedFields(nil)
	switch o := o.(type) {
	case *fleet.Cluster:
		o.Annotations, o.Spec = view.Marks(o), fleet.ClusterSpec{Paused: o.Spec.Paused}
	case *clusterv1beta1.MemberCluster:
		o.Annotations, o.Status.Namespaces = view.Marks(o), nil
	case *fleet.ClusterRegistration:
		o.Status.Answer = nil
	case *fleet.Bundle:
		o.Annotations, o.Spec, o.Status.PartitionStatus = nil, fleet.BundleSpec{}, nil
	case *placement.ClusterResourcePlacement:
		o.Annotations, o.Status.PlacementStatuses, o.Status.SelectedResources = nil, nil, nil
	case *placement.ResourcePlacement:
		o.Annotations, o.Status.PlacementStatuses, o.Status.SelectedResources = nil, nil, nil
	}
	return o
}
