package view

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// usedUp is the reason why a token registers no further Cluster.
const usedUp = "registers no more clusters; the ones registered with it can join again"

func tokenRow(token *fleet.ClusterRegistrationToken, now time.Time) []string {
	state, message := stateOf(token, kube.FindCondition(token.Status.Conditions, fleet.ConditionReady))
	if expires := token.Status.Expires; expires != nil && !expires.After(now) {
		state = "Expired"
	} else if most := token.Spec.MaxRegistrations; most != nil && token.Status.Registrations >= *most && state == StateReady {
		state, message = StateUsedUp, usedUp
	}
	var used time.Time
	if token.Status.LastUsed != nil {
		used = token.Status.LastUsed.Time
	}
	return []string{
		NameOf(token), state, Until(token.Status.Expires, now), Or(token.Status.Used), Since(used, now),
		Since(token.CreationTimestamp.Time, now), message,
	}
}

func requestRow(request *fleet.ClusterRegistration, now time.Time) []string {
	state := string(request.Status.State)
	if state == "" {
		state = StateNew
	}
	return []string{NameOf(request), state, Or(request.Status.ClusterName), Or(request.Spec.ClientID),
		Or(request.Labels[fleet.LabelRegistrationToken]), Or(RequestedLabels(request)), Since(request.CreationTimestamp.Time, now),
		Why(request.Status.State == fleet.RegistrationGranted, request.Status.Message)}
}

// RequestedLabels returns the labels in a request, in order. The hub may drop some.
func RequestedLabels(request *fleet.ClusterRegistration) string {
	if len(request.Spec.ClusterLabels) == 0 {
		return ""
	}
	return labels.FormatLabels(request.Spec.ClusterLabels)
}
