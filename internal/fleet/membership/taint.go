package membership

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// NoSchedule is the effect of all taints: present deliveries stay.
const NoSchedule = "NoSchedule"

// Taints returns the taints of a Cluster or MemberCluster. They are in the spec of a MemberCluster
// and in the annotation, and the hub adds one to a member without heartbeats. A malformed one
// counts with its whole text as the key: nothing tolerates it by mistake.
func Taints(member metav1.Object) []clusterv1beta1.Taint {
	var taints []clusterv1beta1.Taint
	if mc, ok := member.(*clusterv1beta1.MemberCluster); ok {
		taints = slices.Clone(mc.Spec.Taints)
	}
	for text := range strings.SplitSeq(member.GetAnnotations()[fleet.AnnotationTaints], ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if taint := ParseTaint(text); !slices.Contains(taints, taint) {
			taints = append(taints, taint)
		}
	}
	if _, lost := LostSince(member); lost && !slices.Contains(taints, TaintLost()) {
		taints = append(taints, TaintLost())
	}
	return taints
}

// TaintLost returns the hub's taint of a member without heartbeats.
func TaintLost() clusterv1beta1.Taint {
	return clusterv1beta1.Taint{Key: fleet.AnnotationLost, Effect: NoSchedule}
}

// LostSince returns the time since when the hub taints a member without heartbeats, and whether it
// does. The time is zero if the mark is malformed.
func LostSince(member metav1.Object) (since time.Time, lost bool) {
	text := member.GetAnnotations()[fleet.AnnotationLost]
	since, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, text != ""
	}
	return since, true
}

// Protected reports whether a member may not be deleted.
func Protected(member metav1.Object) bool {
	return member.GetAnnotations()[fleet.MarkProtected] == "true" || member.GetLabels()[fleet.MarkProtected] == "true"
}

// ParseTaint reads a taint in the form KEY=VALUE:NoSchedule or KEY:NoSchedule.
func ParseTaint(text string) clusterv1beta1.Taint {
	before, isTaint := strings.CutSuffix(text, ":"+NoSchedule)
	if !isTaint {
		return clusterv1beta1.Taint{Key: text, Effect: NoSchedule}
	}
	key, value, _ := strings.Cut(before, "=")
	return clusterv1beta1.Taint{Key: key, Value: value, Effect: NoSchedule}
}

// TaintText is the inverse of ParseTaint.
func TaintText(taint clusterv1beta1.Taint) string {
	text := taint.Key
	if taint.Value != "" {
		text += "=" + taint.Value
	}
	return text + ":" + taint.Effect
}

// Tolerates reports whether a toleration covers a taint.
func Tolerates(t placement.Toleration, taint clusterv1beta1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	return t.Operator == placement.TolerationExists || t.Value == taint.Value
}

// HeldByTaint returns the reason why a tainted Cluster does not get a Bundle, "" if it does. A
// Bundle gets there if its matching targets tolerate each taint, if it is there already, or for the
// agent.
func HeldByTaint(cluster *fleet.Cluster, bundle *fleet.Bundle, matched []int, delivered bool) string {
	taints := Taints(cluster)
	if len(taints) == 0 || delivered || bundle.Labels[fleet.LabelAgent] != "" {
		return ""
	}
	var tolerations []placement.Toleration
	for _, i := range matched {
		for _, t := range bundle.Spec.Targets[i].Tolerations {
			tolerations = append(tolerations, placement.Toleration{
				Key: t.Key, Operator: placement.TolerationOperator(t.Operator), Value: t.Value, Effect: t.Effect,
			})
		}
	}
	for _, taint := range taints {
		if !slices.ContainsFunc(tolerations, func(t placement.Toleration) bool { return Tolerates(t, taint) }) {
			if taint == TaintLost() {
				return "the Cluster has the taint " + TaintText(taint) + ", because it has sent no heartbeat, and gets nothing new before the next one"
			}
			return "the Cluster has the taint " + TaintText(taint) + ", and gets nothing new: add it to spec.targets[].tolerations of the Bundle, " +
				"or remove it: muster taint " + cluster.Namespace + "/" + cluster.Name + " " + taint.Key + "-"
		}
	}
	return ""
}
