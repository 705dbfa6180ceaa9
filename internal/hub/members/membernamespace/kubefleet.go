package membernamespace

import (
	"encoding/json"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubeFleetFinalizers lists finalizers of KubeFleet hub controllers without a counterpart in
// Muster. The list is exact, because others may use finalizers with the same prefix.
var kubeFleetFinalizers = []string{"kubernetes-fleet.io/cluster-profile-cleanup", "kubernetes-fleet.io/scheduler-cleanup"}

// IsKubeFleetFinalizer reports whether a finalizer is of KubeFleet's hub, and of no
// controller of Muster.
func IsKubeFleetFinalizer(name string) bool { return slices.Contains(kubeFleetFinalizers, name) }

// KubeFleetFinalizers are the finalizers of KubeFleet's hub on an object. No controller removes
// them after Muster has taken over.
func KubeFleetFinalizers(o client.Object) (left []string) {
	for _, name := range o.GetFinalizers() {
		if IsKubeFleetFinalizer(name) {
			left = append(left, name)
		}
	}
	return left
}

// TakeOffFinalizers returns the command to remove the finalizers of KubeFleet's hub from an object.
func TakeOffFinalizers(kind string, o client.Object) string {
	stay := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), IsKubeFleetFinalizer)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": stay}})
	if err != nil {
		panic(err) // texts can be encoded
	}
	name := o.GetName()
	if o.GetNamespace() != "" {
		name += " -n " + o.GetNamespace()
	}
	return fmt.Sprintf("kubectl patch %s %s --type=merge -p '%s'", kind, name, patch)
}
