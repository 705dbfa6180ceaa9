package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// BenchmarkWorks: 40 Works of 50 ConfigMaps each are written for one member → all of them are
// applied, as their status says; then one value of each manifest changes. Hub and member are
// control planes of their own on the same machine.
func BenchmarkWorks(b *testing.B) {
	const works, each = 40, 50
	r := newRig(b)
	on := testkube.Start(b, "applying")
	on.InstallCRDs(b)
	m := &leaving{testRig: r, on: on, member: on.Client(b), programs: r.programs()}
	agent := m.join("applies")
	b.Cleanup(func() { m.end(agent) })
	namespace := naming.MemberClusterNamespace("applies")
	ceiling := m.ceiling()
	m.write(works, func(w int) *placement.Work { return work(namespace, w, 1, "0") })
	m.untilApplied(namespace, works)
	m.settle()
	idle := m.rss(m.child(agent))

	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ceiling, "ceiling/s")
	for _, value := range []string{"1", "2"} {
		mark, begun, cpu := m.audit(), time.Now(), m.cpu()
		m.write(works, func(w int) *placement.Work { return work(namespace, w, each, value) })
		m.untilApplied(namespace, works)
		took := time.Since(begun)
		now := m.cpu()
		writes, kinds := mark.writes(b)
		b.ReportMetric(float64(writes)/works, map[string]string{"1": "new-hub-writes/work", "2": "change-hub-writes/work"}[value])
		b.Logf("%s: writes on the hub: %v", value, kinds)
		for program, used := range now {
			b.Logf("%s: processor time of the hub's side: %6.2f s %s", value, used-cpu[program], program)
		}
		b.ReportMetric(took.Seconds(), map[string]string{"1": "new-s", "2": "change-s"}[value])
		b.ReportMetric(works*each/took.Seconds(), map[string]string{"1": "new-objects/s", "2": "change-objects/s"}[value])
	}
	child := m.child(agent)
	m.settle()
	b.ReportMetric(idle, "idle-deployer-MiB")
	b.ReportMetric(m.rss(child), "deployer-MiB")
	b.ReportMetric(m.memory(child, "VmHWM:"), "deployer-peak-MiB")
}

// work is a Work with so many ConfigMaps that have a value.
func work(namespace string, w, manifests int, value string) *placement.Work {
	made := &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("work-%d", w)}}
	for i := range manifests {
		made.Spec.Workload.Manifests = append(made.Spec.Workload.Manifests,
			placement.Manifest{RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"applied-%d-%d"},"data":{"a":%q,"text":"%01000d"}}`,
				w, i, value, i)}})
	}
	return made
}

// write writes all Works at once.
func (m *leaving) write(works int, of func(int) *placement.Work) {
	m.b.Helper()
	m.each(works, func(w int) error {
		made := of(w)
		if err := m.Create(context.Background(), made); !apierrors.IsAlreadyExists(err) {
			return err
		}
		patch, err := json.Marshal(map[string]any{"spec": of(w).Spec})
		if err != nil {
			return err
		}
		return m.Patch(context.Background(), made, client.RawPatch(types.MergePatchType, patch))
	})
}

// untilApplied waits until every Work says that it is applied and available as it now is. It asks
// for one after the other, and not often: asking costs the API server more than what is measured.
func (m *leaving) untilApplied(namespace string, works int) {
	m.b.Helper()
	for w := range works {
		is := &placement.Work{}
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
			m.check(m.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: fmt.Sprintf("work-%d", w)}, is))
			c := meta.FindStatusCondition(is.Status.Conditions, placement.ConditionAvailable)
			if c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == is.Generation {
				break
			}
			if time.Now().After(end) {
				m.b.Fatalf("Work %d is not applied after two minutes: %+v", w, is.Status.Conditions)
			}
		}
	}
}
