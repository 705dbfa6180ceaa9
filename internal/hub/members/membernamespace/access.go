package membernamespace

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/kube"
)

// Access names the member's objects that, according to the API server, still grant the agent
// access. A terminating namespace does not count: nothing can be created in it.
func (m Member) Access(ctx context.Context, c client.Client, live client.Reader) ([]string, error) {
	state, _, err := m.ObserveNamespace(ctx, live)
	if err != nil {
		return nil, err
	}
	var left []string
	if state == NamespaceOurs || state == NamespaceInherited {
		left = append(left, "Namespace "+m.Namespace)
	}
	giving := append([]client.Object{m.Account(), Rights{Member: m}.Binding()}, m.reconnectAccess()...)
	if m.Workspace != "" {
		giving = append(m.every(), m.Account())
	}
	if state == NamespaceTaken || state == NamespaceAbsent { // objects in another owner's namespace are not the member's
		giving = slices.DeleteFunc(giving, func(o client.Object) bool { return o.GetNamespace() == m.Namespace })
	}
	missing, err := kube.Missing(ctx, live, kube.MetadataOf(c.Scheme()), giving...)
	if err != nil {
		return nil, err
	}
	for _, object := range giving {
		if !slices.Contains(missing, object) {
			left = append(left, kube.Describe(c.Scheme(), object))
		}
	}
	return left, nil
}
