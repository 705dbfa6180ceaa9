package dashboard

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	musterv1alpha1 "github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/ui/explain"
	"github.com/muster-fleet/muster/internal/ui/view"
)

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

// readEvents adds the history of a member and the Events about it. Events about cluster-scoped
// objects are in the namespace default.
func (m *shownMember) readEvents(ctx context.Context, v *visitor, record client.Object) {
	namespace := cmp.Or(record.GetNamespace(), corev1.NamespaceDefault)
	var events []*corev1.Event
	m.note(view.Each(ctx, v, &corev1.EventList{}, func(o client.Object) { events = append(events, o.(*corev1.Event)) },
		client.InNamespace(namespace), client.MatchingFields{"involvedObject.uid": string(record.GetUID())}))
	for _, e := range view.WithHistory(record, events) {
		m.Life = append(m.Life, moment{view.TimeOf(e), e.Reason, e.Message, e.Type == corev1.EventTypeWarning})
	}
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
		m.Life = slices.DeleteFunc(m.Life, func(known moment) bool { // the entry also names the user
			return known.What == string(e.Spec.Reason) && known.At.Sub(e.Spec.Time.Time).Abs() < time.Minute
		})
		text := e.Spec.Message
		if e.Spec.Who != "" {
			text += "; user: " + e.Spec.Who
		}
		m.Life = append(m.Life, moment{At: e.Spec.Time.Time, What: string(e.Spec.Reason), Text: text})
	}, client.InNamespace(namespace), client.MatchingFields{"spec.object.name": record.GetName()}))
}
