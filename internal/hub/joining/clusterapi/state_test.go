package clusterapi

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestDecideWhatHappensToADeletedClusterOfClusterAPI(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	type change func(*observed)
	held := func(o *observed) {
		o.theirs.SetAnnotations(map[string]string{fleet.AnnotationPausedUntilLeft: "2026-11-29T12:10:00Z"})
		_ = unstructured.SetNestedField(o.theirs.Object, true, "spec", "paused")
	}
	users := func(o *observed) { o.theirs.SetAnnotations(map[string]string{annotationPaused: ""}) }
	resumed := func(o *observed) { _ = unstructured.SetNestedField(o.theirs.Object, false, "spec", "paused") }
	late := func(o *observed) { o.limit = time.Minute }
	off := func(o *observed) { o.limit = 0 }
	unwanted := func(o *observed) { o.wanted = false }
	without := func(o *observed) { o.member = nil }
	asked := func(o *observed) {
		o.member.Annotations = map[string]string{"muster/leave-policy": "Orphan", "muster/uninstall-agent": "true"}
	}
	leaving := func(o *observed) { o.member.DeletionTimestamp = &metav1.Time{Time: now} }
	for _, row := range []struct {
		name    string
		changes []change
		want    step
	}{
		{"a cluster that is not being deleted", []change{func(o *observed) { o.theirs = nil }}, stepNone},
		{"a deleted cluster with a member is held", nil, stepHold},
		{"one without a member goes", []change{without}, stepNone},
		{"one that a user has paused is theirs", []change{users}, stepNone},
		{"the value is off", []change{off}, stepNone},
		{"the workspace registers none any more", []change{unwanted}, stepNone},
		{"the hub comes too late", []change{late}, stepNone},
		{"a held cluster: its member leaves", []change{held}, stepLeave},
		{"its member leaves, but a user deleted it", []change{held, leaving}, stepLeave},
		{"its member was deleted first", []change{held, asked}, stepLeave},
		{"its member is leaving", []change{held, asked, leaving}, stepWait},
		{"its member has left", []change{held, without}, stepGo},
		{"its member has left late", []change{held, without, late}, stepGo},
		{"its member does not leave in time", []change{held, asked, leaving, late}, stepGiveUp},
		{"the value is turned off meanwhile", []change{held, leaving, off}, stepGiveUp},
		{"the workspace withdraws meanwhile", []change{held, leaving, unwanted}, stepGiveUp},
		{"a user resumes it", []change{held, leaving, resumed}, stepResumed},
		{"a user resumed it, and the member has left", []change{held, without, resumed}, stepNone},
	} {
		theirs := &unstructured.Unstructured{Object: map[string]any{}}
		theirs.SetDeletionTimestamp(&metav1.Time{Time: now.Add(-5 * time.Minute)})
		o := observed{theirs: theirs, member: &fleet.Cluster{}, wanted: true, limit: 10 * time.Minute}
		for _, change := range row.changes {
			change(&o)
		}
		if got := decide(o, now); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

func TestOnlyTheClusterThatTheHubRegisteredLeaves(t *testing.T) {
	theirs := &unstructured.Unstructured{Object: map[string]any{}}
	theirs.SetNamespace("clusters")
	theirs.SetName("web")
	theirs.SetUID("1")
	of := func(uid types.UID, apiVersion string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: "Cluster", Name: "web", UID: uid}}
	}
	const capi = "cluster.x-k8s.io/v1beta1"
	for _, row := range []struct {
		name   string
		owners []metav1.OwnerReference
		spec   fleet.ClusterSpec
		want   bool
	}{
		{"registered", of("1", capi), fleet.ClusterSpec{KubeConfigSecret: "web-kubeconfig"}, true},
		{"a user's own", nil, fleet.ClusterSpec{KubeConfigSecret: "web-kubeconfig"}, false},
		{"of an earlier cluster of the name", of("0", capi), fleet.ClusterSpec{KubeConfigSecret: "web-kubeconfig"}, false},
		{"of another kind", of("1", "example.com/v1"), fleet.ClusterSpec{KubeConfigSecret: "web-kubeconfig"}, false},
		{"led to another kubeconfig", of("1", capi), fleet.ClusterSpec{KubeConfigSecret: "other"}, false},
		{"led to another namespace", of("1", capi),
			fleet.ClusterSpec{KubeConfigSecret: "web-kubeconfig", KubeConfigSecretNamespace: "elsewhere"}, false},
	} {
		member := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web", OwnerReferences: row.owners}, Spec: row.spec}
		if got := registeredBy(member, theirs); got != row.want {
			t.Errorf("%s: %t, want %t", row.name, got, row.want)
		}
	}
}
