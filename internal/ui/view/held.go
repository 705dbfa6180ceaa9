package view

import (
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// asked matches the end of a message with a request to confirm a removal. The text before it may
// quote tenants.
var asked = regexp.MustCompile(` ` + regexp.QuoteMeta(fleet.AnnotationConfirmRemoval) + `=([0-9a-f]{8})$`)

// HeldRemoval returns the message of a Bundle or a placement about a removal that a user must
// confirm. value is the confirming value of the annotation muster/confirm-removal. Both are empty
// if the object does not wait for a confirmation.
func HeldRemoval(o client.Object) (message, value string) {
	if o.GetDeletionTimestamp() != nil {
		return "", ""
	}
	switch o := o.(type) {
	case *fleet.Bundle:
		if c := kube.FindCondition(o.Status.Conditions, fleet.ConditionProcessed); c != nil && c.Status == corev1.ConditionFalse &&
			slices.Contains([]string{reasons.RemovalHeld, reasons.TakeoverHeld}, c.Reason) {
			message = c.Message
		}
	case *placement.ClusterResourcePlacement:
		message = heldOfPlacement("ClusterResourcePlacement", o.Status.Conditions)
	case *placement.ResourcePlacement:
		message = heldOfPlacement("ResourcePlacement", o.Status.Conditions)
	}
	found := asked.FindStringSubmatch(message)
	if found == nil {
		return "", ""
	}
	return message, found[1]
}

func heldOfPlacement(kind string, conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, kind+placement.ConditionResourceSelected)
	if c == nil || c.Status != metav1.ConditionFalse ||
		!slices.Contains([]string{reasons.RemovalUnfounded, reasons.AuthorMayNotRead, reasons.EnvelopeNotPermitted}, c.Reason) {
		return ""
	}
	return c.Message
}
