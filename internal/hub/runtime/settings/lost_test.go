package settings

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestAWorkspaceChangesWhatHappensToItsLostMembers(t *testing.T) {
	hub := LostMembers{TaintAfter: 720 * time.Hour, RemoveAfter: 24 * time.Hour}
	for name, row := range map[string]struct {
		taint, remove string
		want          LostMembers
		problem       string
	}{
		"no annotation":         {want: hub},
		"both":                  {"48h", "5m", LostMembers{TaintAfter: 48 * time.Hour, RemoveAfter: 5 * time.Minute}, ""},
		"no removal":            {"", "0", LostMembers{TaintAfter: hub.TaintAfter}, ""},
		"nothing":               {"0", "", LostMembers{RemoveAfter: hub.RemoveAfter}, ""},
		"a day in another form": {"30d", "", LostMembers{}, "muster/lost-taint-after of Namespace clusters is \"30d\": want 0 or at least 1h"},
		"a taint too soon":      {"1m", "", LostMembers{}, "want 0 or at least 1h"},
		"a removal too soon":    {"", "1s", LostMembers{}, "muster/lost-remove-after of Namespace clusters is \"1s\": want 0 or at least 1m"},
		"a negative time":       {"-720h", "", LostMembers{}, "want 0 or at least 1h"},
		"no time at all":        {"x", "", LostMembers{}, "the hub neither taints nor removes"},
	} {
		workspace := &metav1.ObjectMeta{Name: "clusters", Annotations: map[string]string{}}
		if row.taint != "" {
			workspace.Annotations[fleet.AnnotationLostTaintAfter] = row.taint
		}
		if row.remove != "" {
			workspace.Annotations[fleet.AnnotationLostRemoveAfter] = row.remove
		}
		got, problem := hub.In(workspace)
		if got != row.want || (problem == "") != (row.problem == "") || !strings.Contains(problem, row.problem) {
			t.Errorf("%s: %+v, %q", name, got, problem)
		}
	}
}
