package work

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/charts"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// roleOf is a ClusterRole in a template of the chart member-agent.
func roleOf(t *testing.T, template string) *rbacv1.ClusterRole {
	t.Helper()
	text, err := charts.FS.ReadFile("member-agent/templates/" + template)
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(string(text), "\n---\n") {
		_, rules, found := strings.Cut(document, "\nrules:")
		if !strings.Contains(document, "kind: ClusterRole\n") || !found {
			continue
		}
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict([]byte("rules:"+rules), role); err != nil {
			t.Fatal(err)
		}
		return role
	}
	t.Fatalf("%s has no ClusterRole", template)
	return nil
}

func TestAgentWithoutTheRightToDeliverSaysSo(t *testing.T) {
	r := newRig(t)
	r.halt()
	r.check(r.Delete(context.Background(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "deliver-" + r.name + "-delivery.yaml"},
	}))
	r.start()
	work := r.place("work", nil, configMap("one", "a: b"))
	c := r.untilOf(work, 0, placement.ConditionApplied, reasons.Forbidden)
	if !strings.Contains(c.Message, "cannot get resource") ||
		!strings.HasSuffix(c.Message, "the agent's chart gives it the right with delivery=true") {
		t.Errorf("the message is %q", c.Message)
	}
	r.check(r.Delete(context.Background(), work))
	r.eventually("it says why it does not go", func() error {
		r.refresh(work)
		appliedWork := meta.FindStatusCondition(work.Status.Conditions, placement.ConditionApplied)
		if appliedWork.Reason != reasons.Removing || !strings.Contains(appliedWork.Message, "cannot be removed") {
			return fmt.Errorf("%+v", appliedWork)
		}
		return nil
	})
}
