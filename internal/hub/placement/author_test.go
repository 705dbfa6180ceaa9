package placement

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/placement/override"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

func TestWhoseRightsCount(t *testing.T) {
	crp, rp := genericPlacement{key: types.NamespacedName{Name: "a"}}, genericPlacement{key: types.NamespacedName{Namespace: "n", Name: "a"}}
	for setting, want := range map[string][2]bool{
		settings.AuthorRightsEnforce: {true, true}, settings.AuthorRightsNamespaced: {false, true}, settings.AuthorRightsIgnore: {false, false},
	} {
		if got := [2]bool{readsAsAuthor(setting, crp), readsAsAuthor(setting, rp)}; got != want {
			t.Errorf("%s: cluster-wide, namespaced are %v, want %v", setting, got, want)
		}
	}
}

func TestAnAuthorIsAskedAboutAgainLessAndLessOften(t *testing.T) {
	since := func(age time.Duration) placement.PlacementStatus {
		return placement.PlacementStatus{
			Conditions: []metav1.Condition{{
				Type: "ResourcePlacementResourceSelected", Status: "False", LastTransitionTime: metav1.NewTime(now.Add(-age)),
			}},
		}
	}
	overridden := func(status metav1.ConditionStatus, age time.Duration) placement.PlacementStatus {
		return placement.PlacementStatus{
			Conditions: []metav1.Condition{{Type: "ResourcePlacementOverridden", Status: status, LastTransitionTime: metav1.NewTime(now.Add(-age))}},
		}
	}
	withheld := selection.Selection{Withheld: []selection.Query{{}}}
	for _, c := range []struct {
		name string
		o    observed
		want time.Duration
	}{
		{"nobody's rights count", observed{}, 0},
		{"the author may read everything", observed{author: "eve"}, maxReview},
		{"something was just left out", observed{author: "eve", selected: withheld}, minReview},
		{"it has been for a while", observed{author: "eve", selected: withheld, before: since(3 * time.Minute)}, 3 * time.Minute},
		{"for a day", observed{author: "eve", selected: withheld, before: since(24 * time.Hour)}, maxReview},
		{"the author is unknown", observed{rightsProblem: condition{reason: reasons.AuthorUnknown}}, minReview},
		{"an object was just left out of an envelope",
			observed{reviewed: true, resources: selection.Resources{Withheld: []selection.WithheldObject{{}}}}, minReview},
		{"the authors of all overrides have the rights", observed{reviewed: true}, maxReview},
		{"an override has just been ignored", observed{reviewed: true, ignored: []string{"it"}, before: overridden("True", time.Hour)},
			minReview},
		{"an override has been ignored for a while",
			observed{reviewed: true, ignored: []string{"it"}, before: overridden("False", 3*time.Minute)}, 3 * time.Minute},
		{"an override is held", observed{reviewed: true, overridesHeld: true}, minReview},
		{"nobody can be asked", observed{rightsErr: errors.New("busy"), rightsProblem: condition{reason: reasons.AuthorRightsUnknown}},
			minReview},
	} {
		c.o.kind = "ResourcePlacement"
		got := time.Duration(0)
		if at := c.o.nextReview(now); !at.IsZero() {
			got = at.Sub(now)
		}
		if got != c.want {
			t.Errorf("%s: again in %s, want %s", c.name, got, c.want)
		}
	}
}

func TestAnOverrideIsIgnoredOnlyIfItChangedNoWork(t *testing.T) {
	ro := override.OfNamespace(&placement.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}})
	cro := override.OfCluster(&placement.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	for _, c := range []struct {
		name            string
		annotations     map[string]string
		wantRO, wantCRO bool
	}{
		{"no override has changed it", nil, false, false},
		{
			"another one has", map[string]string{placement.AnnotationOverrides: "x", placement.AnnotationClusterOverrides: "x",
				placement.AnnotationOverriddenBy: "other"}, false, false,
		},
		{"it has", map[string]string{placement.AnnotationOverrides: "x", placement.AnnotationOverriddenBy: "other " + ro.ID()}, true, false},
		{"a hub before this one, or KubeFleet's, wrote it", map[string]string{placement.AnnotationClusterOverrides: "x"}, false, true},
	} {
		work := &placement.Work{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}}
		o := observed{current: map[string]*currentWorks{"a": {works: []*placement.Work{{}}}, "b": {works: []*placement.Work{work}}}}
		if got := [2]bool{o.changedBy(ro), o.changedBy(cro)}; got != [2]bool{c.wantRO, c.wantCRO} {
			t.Errorf("%s: changed by the ResourceOverride, the ClusterResourceOverride: %v", c.name, got)
		}
	}
}

func TestWhatIsLeftOutOfAnEnvelopeIsNotRemoved(t *testing.T) {
	quota := placement.ResourceIdentifier{Version: "v1", Kind: "ResourceQuota", Namespace: "shop", Name: "q"}
	o := observed{
		author: "eve", resources: selection.Resources{
			Withheld: []selection.WithheldObject{{ResourceIdentifier: quota, Reason: "R", Message: "eve may not"}},
		},
	}
	other := quota
	other.Name = "other"
	if !o.withholds(quota) || o.withholds(other) {
		t.Errorf("withheld are the object %t, another %t", o.withholds(quota), o.withholds(other))
	}
	if c := o.withheld(); c.reason != "R" || c.message != "ResourceQuota shop/q is left out: eve may not" {
		t.Errorf("it says %+v", c)
	}
	o.selected.Withheld = []selection.Query{{Name: "x"}}
	if c := o.withheld(); c.reason != reasons.AuthorMayNotRead || !strings.Contains(c.message, "ResourceQuota shop/q is left out") {
		t.Errorf("with what the author may not read it says %+v", c)
	}
}
