package placement

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/config"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
)

func TestWhoseRightsCount(t *testing.T) {
	crp, rp := genericPlacement{key: types.NamespacedName{Name: "a"}}, genericPlacement{key: types.NamespacedName{Namespace: "n", Name: "a"}}
	for setting, want := range map[string][2]bool{
		config.AuthorRightsEnforce: {true, true}, config.AuthorRightsNamespaced: {false, true}, config.AuthorRightsIgnore: {false, false},
	} {
		if got := [2]bool{readsAsAuthor(setting, crp), readsAsAuthor(setting, rp)}; got != want {
			t.Errorf("%s: cluster-wide, namespaced are %v, want %v", setting, got, want)
		}
	}
}

func TestAnAuthorIsAskedAboutAgainLessAndLessOften(t *testing.T) {
	since := func(age time.Duration) placement.PlacementStatus {
		return placement.PlacementStatus{Conditions: []metav1.Condition{{Type: "ResourcePlacementResourceSelected", Status: "False", LastTransitionTime: metav1.NewTime(now.Add(-age))}}}
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
		{"the author is unknown", observed{rightsProblem: condition{reason: reasonAuthorUnknown}}, minReview},
		{"nobody can be asked", observed{rightsErr: errors.New("busy"), rightsProblem: condition{reason: reasonRightsUnknown}}, minReview},
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
