package selection

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Kinds knows which kinds the hub serves that live in namespaces.
type Kinds struct {
	client discovery.ServerResourcesInterface
	mu     sync.Mutex
	known  []schema.GroupVersionResource
}

// NewKinds returns an empty knowledge, filled when it is asked.
func NewKinds(client discovery.ServerResourcesInterface) *Kinds { return &Kinds{client: client} }

// Forget makes the server be asked again, because a kind has come or gone.
func (k *Kinds) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known = nil
}

// Namespaced returns the kinds of which everything in a namespace is placed.
func (k *Kinds) Namespaced() ([]schema.GroupVersionResource, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known != nil {
		return k.known, nil
	}
	lists, err := k.client.ServerPreferredNamespacedResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("asking the hub cluster for its kinds: %w", err)
	}
	failed := err != nil // a group that does not answer is asked for again next time
	var found []schema.GroupVersionResource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("reading the kinds of the hub cluster: %w", err)
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch") && !strings.Contains(r.Name, "/") && neverPlaced(gv.WithKind(r.Kind)) == "" {
				found = append(found, gv.WithResource(r.Name))
			}
		}
	}
	if !failed {
		k.known = found
	}
	return found, nil
}
