package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestWrittenTellsWhatTheCacheHasNotSeenYet(t *testing.T) {
	object := func(uid, version string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}}
	}
	var written Written
	written.Store(object("a", "10"))
	for _, c := range []struct {
		name string
		seen *corev1.ConfigMap
		want bool
	}{
		{"older than written", object("a", "9"), true},
		{"as written", object("a", "10"), false},
		{"written by somebody else since", object("a", "11"), false},
		{"another object of the same name", object("b", "9"), false},
	} {
		if got := written.Stale(c.seen); got != c.want {
			t.Errorf("%s: stale %t, want %t", c.name, got, c.want)
		}
	}
	written.Forget(object("a", "10"))
	if written.Stale(object("a", "9")) {
		t.Error("a forgotten object is stale")
	}
}
