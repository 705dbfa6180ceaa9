package bundle

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestOnlyWhatOthersDeleteIsLost(t *testing.T) {
	d := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "member", Name: "app", UID: "u", Labels: map[string]string{fleet.LabelBundleNamespace: "clusters"},
	}}
	for name, row := range map[string]struct {
		before func(*lost)
		lost   int
	}{
		"by somebody":                          {func(*lost) {}, 1},
		"by the hub":                           {func(l *lost) { l.deleting("u") }, 0},
		"by somebody, after the hub could not": {func(l *lost) { l.deleting("u"); l.stays("u") }, 1},
	} {
		var l lost
		row.before(&l)
		l.deleted(d)
		if got := len(l.take(bundleOf(d))); got != row.lost {
			t.Errorf("deleted %s: %d are lost", name, got)
		}
		if got := len(l.take(bundleOf(d))); got > 0 {
			t.Errorf("deleted %s: %d are lost again", name, got)
		}
	}
}
