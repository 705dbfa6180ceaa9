package view

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/history"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// sameMoment is the longest time between an entry of the history and the Event about it.
const sameMoment = 10 * time.Second

// eventReasons has the reasons of the Events about a change in a history.
var eventReasons = map[clusterv1beta1.HistoryReason][]string{
	clusterv1beta1.HistoryApprovalRequired:  {reasons.ApprovalRequired},
	clusterv1beta1.HistoryJoined:            {reasons.MemberClusterJoined},
	clusterv1beta1.HistoryLost:              {reasons.AgentLost},
	clusterv1beta1.HistoryBack:              {reasons.AgentOnline, reasons.MemberClusterHealthy},
	clusterv1beta1.HistoryAgentUpdated:      {reasons.AgentVersionChanged},
	clusterv1beta1.HistoryKubernetesUpdated: {reasons.KubernetesVersionChanged},
	clusterv1beta1.HistoryMoved:             {reasons.InUse},
	clusterv1beta1.HistoryRevoked:           {reasons.Revoked},
	clusterv1beta1.HistoryQuarantined:       {reasons.Quarantining, reasons.Quarantined},
	clusterv1beta1.HistoryQuarantineEnded:   {reasons.QuarantineEnded},
	clusterv1beta1.HistoryLeft:              {reasons.AgentLeft, reasons.MemberClusterLeft},
}

// HistoryOf returns the last changes in the life of a member, the oldest first. A granted request
// has its approval, and any other object nothing.
func HistoryOf(o client.Object) []clusterv1beta1.HistoryEntry {
	switch member := o.(type) {
	case *fleet.Cluster:
		return member.Status.History
	case *clusterv1beta1.MemberCluster:
		return member.Status.History
	case *fleet.ClusterRegistration:
		return approvalOf(member)
	}
	return nil
}

// approvalOf returns the approval of a granted request.
func approvalOf(r *fleet.ClusterRegistration) (entries []clusterv1beta1.HistoryEntry) {
	granted := ptr.Deref(r.Status.GrantedAt, metav1.Time{})
	by := func() string { return r.Annotations[fleet.AnnotationApprovedBy] }
	for _, change := range history.Admitted(r, nil, granted.Time, by) {
		entries = append(entries, clusterv1beta1.HistoryEntry{Time: granted, Reason: change.Reason, Message: change.Message})
	}
	return entries
}

// HistoryText returns the sentence of an entry, with the number of its changes.
func HistoryText(entry *clusterv1beta1.HistoryEntry) string {
	if entry.Changes() == 1 {
		return entry.Message
	}
	return fmt.Sprintf("%s (%d times since %s)", entry.Message, entry.Changes(), entry.Time.UTC().Format(time.RFC3339))
}

// IsBadChange reports whether a change in a history is bad news.
func IsBadChange(reason clusterv1beta1.HistoryReason) bool {
	return slices.Contains([]clusterv1beta1.HistoryReason{
		clusterv1beta1.HistoryLost, clusterv1beta1.HistoryRevoked, clusterv1beta1.HistoryQuarantined, clusterv1beta1.HistoryDenied,
	}, reason)
}

// WithHistory returns the Events about a member together with its history, as Events. It leaves out
// an Event about a change in the history.
func WithHistory(member client.Object, events []*corev1.Event) []*corev1.Event {
	entries := HistoryOf(member)
	merged := slices.DeleteFunc(slices.Clone(events), func(event *corev1.Event) bool {
		at := TimeOf(event)
		return slices.ContainsFunc(entries, func(entry clusterv1beta1.HistoryEntry) bool {
			return slices.Contains(eventReasons[entry.Reason], event.Reason) &&
				!at.Before(entry.Time.Add(-sameMoment)) && !at.After(entry.Last().Add(sameMoment))
		})
	})
	kind := "MemberCluster"
	switch member.(type) {
	case *fleet.Cluster:
		kind = "Cluster"
	case *fleet.ClusterRegistration:
		kind = "ClusterRegistration"
	}
	for i := range entries {
		entry := &entries[i]
		event := &corev1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: member.GetNamespace(), Name: member.GetName(), UID: member.GetUID()},
			Type:           corev1.EventTypeNormal, Reason: string(entry.Reason), Message: HistoryText(entry), Count: max(1, entry.Count),
			FirstTimestamp: entry.Time, LastTimestamp: metav1.NewTime(entry.Last()),
		}
		if IsBadChange(entry.Reason) {
			event.Type = corev1.EventTypeWarning
		}
		merged = append(merged, event)
	}
	slices.SortStableFunc(merged, func(a, b *corev1.Event) int { return TimeOf(a).Compare(TimeOf(b)) })
	return merged
}

// TimeOf returns the last time of an Event, in the fields of either API of Events.
func TimeOf(event *corev1.Event) time.Time {
	last := event.LastTimestamp.Time
	for _, at := range []time.Time{event.EventTime.Time, event.CreationTimestamp.Time} {
		if last.IsZero() {
			last = at
		}
	}
	if event.Series != nil && event.Series.LastObservedTime.After(last) {
		last = event.Series.LastObservedTime.Time
	}
	return last
}
