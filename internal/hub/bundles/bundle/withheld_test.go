package bundle

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

func TestWhatAClusterGetsOfABundleAndWhatIsLeftThere(t *testing.T) {
	first, second := naming.MemberNamespace("clusters", "c1"), naming.MemberNamespaceAt(1, "clusters", "c1")
	plain := &fleet.Bundle{}
	agents := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{fleet.LabelAgent: "v1"}}}
	unapproved := func(c *fleet.Cluster) {
		c.Status.Conditions = []fleet.Condition{kube.Condition(fleet.ConditionDeliveryApproved, false, "ApprovalRequired", "")}
	}
	for _, c := range []struct {
		name     string
		bundle   *fleet.Bundle
		change   func(*fleet.Cluster)
		withheld bool
		// left are the namespaces whose deployments are not deleted for want of a target.
		left []string
	}{
		{"a Cluster with a namespace gets it", plain, func(*fleet.Cluster) {}, false, nil},
		{"one that nobody has approved gets none, and keeps what it has", plain, unapproved, true, []string{first}},
		{"but its own agent", agents, unapproved, false, nil},
		{"one that is revoked gets none, not even its agent", agents, func(c *fleet.Cluster) {
			c.Annotations = map[string]string{clusterv1beta1.AnnotationRevoked: "true"}
		}, true, []string{first}},
		{"also once it has another namespace", plain, func(c *fleet.Cluster) {
			c.Annotations = map[string]string{clusterv1beta1.AnnotationRevoked: "true", clusterv1beta1.AnnotationMemberEpoch: "1"}
			c.Status.Namespace = ""
		}, true, []string{first, second}},
		{"one that was revoked gets it there", plain, func(c *fleet.Cluster) {
			c.Annotations = map[string]string{clusterv1beta1.AnnotationMemberEpoch: "1"}
		}, false, []string{first}},
		{"one that is quarantined gets none, not even its agent, and keeps what it has", agents, func(c *fleet.Cluster) {
			c.Annotations = map[string]string{fleet.AnnotationQuarantined: "true"}
		}, true, []string{first}},
		{"one that leaves gets none", plain, func(c *fleet.Cluster) { c.DeletionTimestamp = new(metav1.Now()) }, true, []string{first}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := &fleet.Cluster{
				ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1"}, Status: fleet.ClusterStatus{Namespace: first},
			}
			c.change(cluster)
			deployments := map[string]*fleet.BundleDeployment{first: {}, second: {}}
			if got := withheld(c.bundle, cluster, deployments); got != c.withheld {
				t.Errorf("withheld: %t, want %t", got, c.withheld)
			}
			if len(deployments) != 2-len(c.left) {
				t.Errorf("of the deployments %d could be deleted", len(deployments))
			}
			for _, namespace := range c.left {
				if deployments[namespace] != nil {
					t.Errorf("that in %s could be deleted", namespace)
				}
			}
		})
	}
}
