package lifecycle

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestUninstall(t *testing.T) {
	able := &clusterv1beta1.InternalMemberCluster{Status: clusterv1beta1.InternalMemberClusterStatus{
		Features: []string{clusterv1beta1.FeatureUninstall}}}
	bare := &clusterv1beta1.InternalMemberCluster{}
	says := func(value string) map[string]string {
		return map[string]string{clusterv1beta1.AnnotationUninstallAgent: value}
	}
	asked := says("true")
	for name, row := range map[string]struct {
		annotations map[string]string
		seen        Observed
		removes     bool
		stays       string
	}{
		"an agent that can, and is asked":          {asked, Observed{Report: able}, true, ""},
		"nobody asks":                              {nil, Observed{Report: able}, false, ""},
		"the annotation says no":                   {says("false"), Observed{Report: able}, false, ""},
		"the annotation has another value":         {says("yes"), Observed{Report: able}, false, ""},
		"an agent of another project":              {asked, Observed{Report: bare}, false, "cannot remove itself"},
		"an agent without a report":                {asked, Observed{}, false, "has no report"},
		"a quarantined member":                     {asked, Observed{Report: able, Quarantined: true}, false, "quarantined"},
		"a namespace of another membership object": {asked, Observed{Foreign: true}, false, ""},
		"a member that the hub removes as lost": {
			map[string]string{clusterv1beta1.AnnotationUninstallAgent: "true", fleet.AnnotationLostRemoved: "2026-01-01T00:00:00Z"},
			Observed{Report: able}, false, "has sent no heartbeat",
		},
	} {
		now := metav1.Now()
		record := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Annotations: row.annotations, DeletionTimestamp: &now}}
		removes, stays := row.seen.uninstall(record)
		if removes != row.removes || !strings.Contains(stays, row.stays) || (stays == "") != (row.stays == "") {
			t.Errorf("%s: %t, %q", name, removes, stays)
		}
	}
}

// TestTheHostOfAnAgentIsNamedIfTheAgentIsToGo: the agent removes only its part on the member.
func TestTheHostOfAnAgentIsNamedIfTheAgentIsToGo(t *testing.T) {
	hosted := &clusterv1beta1.InternalMemberCluster{Status: clusterv1beta1.InternalMemberClusterStatus{
		Features: []string{clusterv1beta1.FeatureUninstall, clusterv1beta1.FeatureHosted}}}
	if got := (Observed{Report: hosted, Uninstall: true}).agentStays(); !strings.Contains(got, "Its Deployment stays on its host") {
		t.Errorf("it says %q", got)
	}
	if got := (Observed{Report: hosted}).agentStays(); got != "" {
		t.Errorf("nobody asks, and it says %q", got)
	}
}

func TestWhatKeepsAnAgentFromRemovingItselfIsNamedAfterTheWait(t *testing.T) {
	const why = "the agent cannot be removed: there is no Deployment"
	seen := leaver(says("True", clusterv1beta1.ReasonLeaving, why), func(l *Leaver) { l.Uninstall = true })
	if got := seen.Depart(deletedAt.Add(15 * time.Minute)).Unanswered; !strings.Contains(got, why) {
		t.Errorf("it says %q", got)
	}
}
