package hub_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/testkube"
)

// TestAKindThatTheHubMayNotReadIsNotTriedAgainAndAgain has the hub count its refused
// requests while a Namespace is placed with kinds that it may not read, and gives it the
// right to read one of them then.
func TestAKindThatTheHubMayNotReadIsNotTriedAgainAndAgain(t *testing.T) {
	f := newAlone(t, "")
	shop := f.shop()
	definition := f.widgets(shop)
	f.hub.Kill()
	metrics := free(t)
	f.hub = testkube.RunWith(t, "muster-hub", f.hub.Env, append(f.hub.Arguments("--kubeconfig", "--namespace"),
		"--metrics-bind-address", metrics, "--health-probe-bind-address", "0", "--leader-elect=false")...)
	m := f.joined("m", "env=prod")
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilOn(crp, m)
	f.untilSays(crp, "Scheduled", metav1.ConditionTrue, "the hub cannot read")
	f.untilSays(crp, "Scheduled", metav1.ConditionTrue, definition.Name)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "fleet-controller-placement"}}
	f.check(f.get(role, "", role.Name))
	usual := slices.Clone(role.Rules)
	t.Cleanup(func() { f.placeable(usual) })
	f.placeable(append(slices.Clone(usual), rbacv1.PolicyRule{
		APIGroups: []string{definition.Spec.Group}, Resources: []string{"widgets"}, Verbs: []string{"get", "list", "watch"}}))
	f.eventually("the right is noticed", func() error {
		if manifests(t, f.works(crp)[0])["Widget data"] == nil {
			return errors.New("the widget is not placed")
		}
		return nil
	})
	response, err := http.Get("http://" + metrics + "/metrics")
	f.check(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	f.check(err)
	requests := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "rest_client_requests_total{") {
			requests++
			if strings.Contains(line, `code="403"`) {
				t.Errorf("the hub was refused: %s", line)
			}
		}
	}
	if requests == 0 {
		t.Error("the hub counts no requests")
	}
}
