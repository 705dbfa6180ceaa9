package dashboard

import (
	"fmt"
	"hash/fnv"
	"maps"
	"net/url"
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

// entry is an object of the roll with what the views say of it. It is never changed: a change of
// the object makes another one.
type entry struct {
	namespace, bare string
	name            string // with the namespace
	resource        string
	resourceVersion string
	labels          labelSet
	state, why      string
	// version of Kubernetes, only of a member.
	version string
	// finding is what is wrong first; nil if nothing is.
	finding *explain.Finding
	// since is when a condition of it changed last; when it was made if none has.
	since time.Time
	// shown is another one if a line of a table says something else of it, other than how
	// long ago something was.
	shown uint64
	// members is how many members of all a staged update run has updated.
	members string
	// asked is what only a request has.
	asked *asked
	// object is the whole, without what no view shows; nil of members and requests, of
	// which there are many.
	object client.Object
}

// membersColumn is the column of tables that says how many members have what is delivered.
const membersColumn = "MEMBERS"

// labelSet are labels in the order of their keys. A map of a few takes five times as much memory,
// and there is one for each member.
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

// Get implements labels.Labels.
func (s labelSet) Get(key string) string {
	value, _ := s.Lookup(key)
	return value
}

// asked is what the views show of a request only.
type asked struct {
	cluster, clientID string
	// uid and reason are of one that was not granted, about which somebody may decide; decided
	// says that somebody has.
	uid     types.UID
	reason  string
	decided bool
}

func askedOf(r *fleet.ClusterRegistration) *asked {
	a := &asked{cluster: r.Status.ClusterName, clientID: r.Spec.ClientID}
	if r.Status.State != fleet.RegistrationGranted {
		a.uid, a.reason = r.UID, r.Status.Reason
		_, said := r.Annotations[fleet.AnnotationApproved]
		a.decided = said && !r.Status.Granted
	}
	return a
}

// Name, State and Why are what templates show of it.
func (e *entry) Name() string  { return e.name }
func (e *entry) State() string { return e.state }

// Why is why it is not well; empty if it is.
func (e *entry) Why() string {
	if e.why == view.Nothing {
		return ""
	}
	return e.why
}

// path is where it is shown.
func (e *entry) path() string {
	switch e.resource {
	case clusters, memberClusters:
		return memberPath(e.name)
	case tokens:
		return "/tokens/" + e.name
	case requests:
		return registrationPath + "?" + url.Values{"name": {e.name}}.Encode()
	}
	return deliveriesPath + "/" + e.resource + "/" + e.name
}

func entryOf(resource string, o client.Object) *entry {
	e := &entry{namespace: o.GetNamespace(), bare: o.GetName(), name: view.NameOf(o), resource: resource,
		resourceVersion: o.GetResourceVersion(), labels: labelSetOf(o.GetLabels()),
		state: view.State(o), why: view.Because(o), since: changedAt(o)}
	if findings := explain.Of(o); len(findings) > 0 && !findings[0].Aside {
		e.finding = &findings[0]
	}
	switch request, is := o.(*fleet.ClusterRegistration); {
	case is:
		e.asked = askedOf(request)
	case resource == clusters, resource == memberClusters:
		e.version = strings.Clone(view.Column(o, "VERSION", time.Now()))
	default:
		e.object = o
	}
	e.shown = shownOf(e, o)
	if run, is := view.RunOf(o); is { // of whose members only the page of the run shows more
		e.members = strings.Clone(view.Column(o, membersColumn, time.Now()))
		*run.Status = placement.UpdateRunStatus{}
	}
	return e
}

// shownOf is the digest of what the line of an object says, whatever time it is.
func shownOf(e *entry, o client.Object) uint64 {
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%q %v %d %q", view.Row(o, time.Time{}), e.labels, e.since.Unix(), o.GetAnnotations()[fleet.AnnotationApproved])
	if e.finding != nil {
		fmt.Fprintf(sum, "%q", []string{e.finding.Reason, e.finding.Message})
	}
	return sum.Sum64()
}

// changedAt is when a condition of an object changed last. What an agent dated in the
// future says nothing.
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
			if at, err := time.Parse(time.RFC3339, c.LastTransitionTime); err == nil { // an agent may have written something else
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

// slim drops what no view shows.
func slim(o client.Object) client.Object {
	o.SetManagedFields(nil)
	switch o := o.(type) {
	case *fleet.Cluster:
		o.Annotations, o.Spec = nil, fleet.ClusterSpec{}
	case *clusterv1beta1.MemberCluster:
		o.Annotations, o.Status.Namespaces = nil, nil
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
