package placement

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// maxBindingMessage limits the bytes of a message in a binding.
const maxBindingMessage = 250

// binding is a ClusterResourceBinding or a ResourceBinding. The hub writes bindings for other
// programs, and decides nothing by them: only a Work proves a picked member.
type binding struct {
	client.Object
	spec   *placement.ResourceBindingSpec
	status *placement.ResourceBindingStatus
	// pending: the result of the write is unknown, and the status stays unchanged. Its conditions
	// then belong to an earlier generation.
	pending bool
}

func ofBinding(o client.Object) binding {
	switch o := o.(type) {
	case *placement.ClusterResourceBinding:
		return binding{Object: o, spec: &o.Spec, status: &o.Status}
	case *placement.ResourceBinding:
		return binding{Object: o, spec: &o.Spec, status: &o.Status}
	}
	return binding{}
}

func (b binding) copy() binding {
	copied := ofBinding(kube.Whole(b.Object))
	copied.pending = b.pending
	return copied
}

// newBinding returns an empty binding of a placement.
func (s genericPlacement) newBinding(name string) binding {
	b := ofBinding(&placement.ClusterResourceBinding{})
	if s.kind == kindRP {
		b = ofBinding(&placement.ResourceBinding{})
	}
	b.SetNamespace(s.key.Namespace)
	b.SetName(name)
	b.SetLabels(map[string]string{fleet.LabelManaged: "true", placement.LabelParentCRP: s.key.Name})
	controls := true
	b.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: placement.GroupVersion.String(), Kind: s.kind, Name: s.key.Name, UID: s.GetUID(), Controller: &controls,
	}})
	return b
}

// bindingName returns the name of the binding of a placement and a member namespace.
func bindingName(of types.NamespacedName, namespace string) string {
	return naming.SafeConcat(of.Name, namespace)
}

// binding returns the name of the binding for the Works of a member. Works of KubeFleet's hub
// already have such a name, and KubeFleet's hub needs it if you go back. A member may be able to
// change the label, so the hub ignores a name without KubeFleet's prefix.
func (w *currentWorks) binding(of types.NamespacedName, member, namespace string) string {
	if w != nil {
		for _, work := range w.works {
			name := work.Labels[placement.LabelParentBinding]
			if strings.HasPrefix(name, of.Name+"-"+member+"-") && len(validation.IsDNS1123Subdomain(name)) == 0 {
				return name
			}
		}
	}
	return bindingName(of, namespace)
}

// bindings returns the desired bindings of a placement by name: one for each picked member, and for
// each member with Works.
func (o observed) bindings(s genericPlacement, d decision, failed failures) map[string]binding {
	desired, written := map[string]binding{}, map[string]bool{}
	for _, t := range d.plan.write {
		written[t.namespace] = failed[t.namespace] == nil
	}
	add := func(namespace, member string, state placement.BindingState, index string, conditions []metav1.Condition) {
		b := s.newBinding(o.current[namespace].binding(o.key, member, namespace))
		if _, twice := desired[b.GetName()]; twice {
			return
		}
		*b.spec = placement.ResourceBindingSpec{State: state, TargetCluster: member}
		if index != "" {
			b.spec.ResourceSnapshotName = snapshotName(o.key, index)
		}
		b.status.Conditions = conditions
		if last := len(conditions) - 1; last >= 0 {
			b.pending = conditions[last].Status == metav1.ConditionUnknown
		}
		desired[b.GetName()] = b
	}
	picked := map[string]bool{}
	for _, m := range o.memberStatuses(d, failed) {
		namespace, state := m.Member.Namespace, placement.BindingScheduled
		picked[namespace] = true
		if o.current[namespace] != nil || written[namespace] {
			state = placement.BindingBound
		}
		var conditions []metav1.Condition
		for _, stage := range m.stages {
			if c, set := m.conditions[stage]; set {
				c.message = kube.Clip(c.message, maxBindingMessage)
				conditions = append(conditions, c.as(stage, 0, time.Time{}))
			}
		}
		add(namespace, m.Name, state, m.index, conditions)
	}
	for _, m := range o.members {
		if current := o.current[m.Namespace]; current != nil && !picked[m.Namespace] {
			add(m.Namespace, m.Name, placement.BindingUnscheduled, current.works[0].Labels[placement.LabelResourceIndex], nil)
		}
	}
	return desired
}
