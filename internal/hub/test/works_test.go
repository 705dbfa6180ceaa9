package hub_test

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// mayReportWork goes through what a native agent does with its Works, and what it may not do.
func (f fixture) mayReportWork(agent client.Client, namespace string) {
	f.t.Helper()
	ctx := context.Background()
	work := &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crp-work"}}
	f.check(f.Create(ctx, work))
	f.eventually("it lists its works", func() error { return agent.List(ctx, &placement.WorkList{}, client.InNamespace(namespace)) })
	patch := func(text string) client.Patch { return client.RawPatch("application/merge-patch+json", []byte(text)) }
	f.check(agent.Patch(ctx, work, patch(`{"metadata":{"finalizers":["kubernetes-fleet.io/work-cleanup"]}}`)))
	f.check(agent.Status().Patch(ctx, work, patch(`{"status":{"manifestConditions":[]}}`)))
	f.check(agent.Patch(ctx, work, patch(`{"metadata":{"finalizers":null}}`)))
	f.refused("it makes a work", agent.Create(ctx, &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"}}))
	f.refused("it deletes a work", agent.Delete(ctx, work))
	f.refused("it lists all works", agent.List(ctx, &placement.WorkList{}))
}

func TestNativeAgentOfAMemberClusterReportsItsWorks(t *testing.T) {
	f := newFixture(t)
	m := f.register("native")
	m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "v1") })
	m.eventually("its rights are those of a native agent", func() error {
		if err := m.agent.Update(context.Background(),
			&placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespaceName(), Name: "none"}}); !apierrors.IsForbidden(err) {
			return fmt.Errorf("updating: %v", err)
		}
		return nil
	})
	f.mayReportWork(m.agent, m.namespaceName())
}

func TestAgentOfAClusterReportsItsWorks(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	bearer, namespace := f.join(values, map[string]any{"clientID": "works"}).credential()
	f.mayReportWork(f.as(bearer), namespace)
}
