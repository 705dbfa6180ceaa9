package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	musterv1alpha1 "github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/ui/explain"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// mostMoments limits the moments in a member's timeline.
const mostMoments = 50

// shownMember is the view of one member.
type shownMember struct {
	Title, Name, State string
	UID                types.UID
	// Decisions holds the decisions allowed to the visitor. Decidable is the state they depend
	// on.
	Decisions []offer
	Decidable string
	Labels    map[string]string
	Facts     []fact
	Findings  []explain.Finding
	Life      []moment
	Usage     []usage
	Tree      *view.Node
	// Unseen holds the unreadable data, with the reasons.
	Unseen []string
}

// fact is a column of the table of members.
type fact struct{ Name, Value string }

// moment is an event in the life of a member.
type moment struct {
	At         time.Time
	What, Text string
	Bad        bool
}

// usage is the requested amount of a resource on the member's nodes.
type usage struct {
	Name, Used, Of string
	Share          float64
}

// member is the view of one member, read as the visitor.
func (s *Server) member(w http.ResponseWriter, r *http.Request, v *visitor) error {
	live, stale, err := s.follow(r, v, clusters, memberClusters)
	if err != nil {
		return err
	}
	record, err := readMember(r, v)
	if err != nil {
		return err
	}
	m := &shownMember{
		Title: view.Title(record), Name: view.NameOf(record), State: view.State(record), Labels: record.GetLabels(), UID: record.GetUID(),
		Decidable: decidable(record),
	}
	if m.Decisions, err = s.allowedDecisions(r.Context(), v, record); err != nil {
		return err
	}
	row := view.Row(record, time.Now())
	for i, name := range view.MemberColumns {
		if i > 2 && name != "WHY" && row[i] != view.Nothing { // the rest is in the heading and the explanation
			m.Facts = append(m.Facts, fact{name, row[i]})
		}
	}
	related, unseen, tree := view.Member(r.Context(), v, record)
	m.Findings = explain.Of(append([]client.Object{record}, related...)...)
	m.note(unseen...)
	m.Tree = tree
	m.Life = momentsOf(record)
	m.readEvents(r.Context(), v, record)
	m.readAudit(r.Context(), v, record)
	slices.SortStableFunc(m.Life, func(a, b moment) int { return b.At.Compare(a.At) })
	m.Life = m.Life[:min(mostMoments, len(m.Life))]
	m.readUsage(r.Context(), v, record)
	return s.show(w, r, v, "member", page{
		Title: m.Name, View: "fleet", Stale: stale, Live: live, Crumbs: crumbs("Fleet", fleetPath, m.Name), Body: m,
	})
}

func (m *shownMember) note(errs ...error) {
	for _, err := range errs {
		if err != nil {
			m.Unseen = append(m.Unseen, err.Error())
		}
	}
}

// momentsOf returns the creation of a membership object, and the last changes of its conditions.
func momentsOf(record client.Object) []moment {
	life := []moment{{At: record.GetCreationTimestamp().Time, What: "Created", Text: "The member was created on the hub."}}
	if at := record.GetDeletionTimestamp(); at != nil {
		life = append(life, moment{At: at.Time, What: "Leaving", Text: "The member is being removed from the fleet."})
	}
	switch o := record.(type) {
	case *fleet.Cluster:
		for _, c := range o.Status.Conditions {
			if at, err := time.Parse(time.RFC3339, c.LastTransitionTime); err == nil {
				life = append(life, moment{at, c.Type + "=" + string(c.Status), said(c.Reason, c.Message), isBad(o, c.Type)})
			}
		}
	case *clusterv1beta1.MemberCluster:
		for _, c := range o.Status.Conditions {
			life = append(life, moment{c.LastTransitionTime.Time, c.Type + "=" + string(c.Status), said(c.Reason, c.Message), isBad(o, c.Type)})
		}
	}
	return life
}

// isBad reports whether a condition of an object shows a problem.
func isBad(o client.Object, condition string) bool {
	return slices.ContainsFunc(explain.Of(o), func(f explain.Finding) bool { return f.Condition == condition && !f.Aside })
}

func said(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

// readEvents adds the Events about a membership object. Events about cluster-scoped objects are
// in the namespace default.
func (m *shownMember) readEvents(ctx context.Context, v *visitor, record client.Object) {
	namespace := cmp.Or(record.GetNamespace(), corev1.NamespaceDefault)
	m.note(view.Each(ctx, v, &corev1.EventList{}, func(o client.Object) {
		e := o.(*corev1.Event)
		at := e.LastTimestamp.Time
		if at.IsZero() {
			at = e.EventTime.Time
		}
		m.Life = append(m.Life, moment{at, e.Reason, e.Message, e.Type == corev1.EventTypeWarning})
	}, client.InNamespace(namespace), client.MatchingFields{"involvedObject.uid": string(record.GetUID())}))
}

// readAudit adds the hub's audit entries about a member. Few users may read them. Entries about a
// Cluster are in its workspace, and entries about a MemberCluster in the hub's own namespace.
func (m *shownMember) readAudit(ctx context.Context, v *visitor, record client.Object) {
	namespace, kind := cmp.Or(record.GetNamespace(), naming.SystemNamespace), strings.TrimSuffix(m.Title, " "+m.Name)
	m.note(view.Each(ctx, v, &musterv1alpha1.AuditEntryList{}, func(o client.Object) {
		e := o.(*musterv1alpha1.AuditEntry)
		if of := e.Spec.Object; of.Kind != kind || of.UID != "" && of.UID != record.GetUID() {
			return // about another object, or an earlier one of the name
		}
		m.Life = append(m.Life, moment{At: e.Spec.Time.Time, What: string(e.Spec.Reason), Text: e.Spec.Message})
	}, client.InNamespace(namespace), client.MatchingFields{"spec.object.name": record.GetName()}))
}

// readUsage reads the resources of the member's nodes from the report.
func (m *shownMember) readUsage(ctx context.Context, v *visitor, record client.Object) {
	var report clusterv1beta1.InternalMemberCluster
	if err := v.Get(ctx, client.ObjectKey{Namespace: membership.Namespace(record), Name: record.GetName()}, &report); err != nil {
		if client.IgnoreNotFound(err) != nil {
			m.note(fmt.Errorf("nodes and resources: %w", err))
		}
		return
	}
	if nodes := report.Status.Nodes; nodes != nil && nodes.Total > 0 {
		m.Usage = append(m.Usage, usage{
			"Nodes ready", strconv.Itoa(int(nodes.Ready)), strconv.Itoa(int(nodes.Total)), float64(nodes.Ready) / float64(nodes.Total),
		})
	}
	reported := report.Status.ResourceUsage
	names := map[corev1.ResourceName]string{corev1.ResourceCPU: "CPU", corev1.ResourceMemory: "Memory"}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		all, free := reported.Allocatable[name], reported.Available[name]
		if all.IsZero() {
			continue
		}
		used := all.DeepCopy()
		used.Sub(free)
		m.Usage = append(m.Usage, usage{
			names[name] + " requested", readable(used), readable(all), used.AsApproximateFloat64() / all.AsApproximateFloat64(),
		})
	}
}

// readable returns a quantity of memory in GiB, or in MiB below one GiB. It returns other
// quantities unchanged.
func readable(q resource.Quantity) string {
	if q.Format != resource.BinarySI {
		return q.String()
	}
	mebibytes := q.AsApproximateFloat64() / (1 << 20)
	if mebibytes < 1<<10 {
		return fmt.Sprintf("%.0f MiB", mebibytes)
	}
	return fmt.Sprintf("%.1f GiB", mebibytes/(1<<10))
}
