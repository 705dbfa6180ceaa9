package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestASetOfRancherFleetIsProvedByItsDigest(t *testing.T) {
	const hash = "cdf309d7d6a4489c6edb1a8c7b74ed3ba45522d7" // of Rancher Fleet's own code, for the token clusters/new-token
	token := map[string]string{annotationSetID: "cluster-group-token",
		annotationSetOwnerKind: "fleet.cattle.io/v1alpha1, Kind=ClusterRegistrationToken",
		annotationSetOwner:     "new-token", annotationSetOwnerIn: "clusters"}
	for name, row := range map[string]struct {
		hash        string
		annotations map[string]string
		want        ObjectSet
	}{
		"the digest of what it says":      {hash, token, ObjectSet{"cluster-group-token", "new-token"}},
		"the digest of something else":    {"d597ed8757ea5e16089821b75b50365afd035452", token, ObjectSet{}},
		"no digest":                       {"", token, ObjectSet{}},
		"a digest, and nothing that says": {"da39a3ee5e6b4b0d3255bfef95601890afd80709", nil, ObjectSet{}},
	} {
		o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{labelSetHash: row.hash}, Annotations: row.annotations}}
		if got := ObjectSetOf(o); got != row.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
