package selection

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Kinds caches the kinds served by the hub cluster.
type Kinds struct {
	client discovery.ServerResourcesInterface
	mu     sync.Mutex
	// served holds all resources. namespaced holds the resources placed with their whole
	// namespace. Both are complete if every group has answered.
	served     map[schema.GroupResource]bool
	namespaced []schema.GroupVersionResource
	complete   bool
	// silent holds the group versions without an answer.
	silent []string
}

// NewKinds returns a cache filled at its first read.
func NewKinds(client discovery.ServerResourcesInterface) *Kinds { return &Kinds{client: client} }

// Invalidate empties the cache after a kind was added or removed.
func (k *Kinds) Invalidate() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.served, k.namespaced, k.complete, k.silent = nil, nil, false, nil
}

// Namespaced returns the resources placed with their whole namespace, and the group versions with
// unknown resources.
func (k *Kinds) Namespaced() (resources []schema.GroupVersionResource, silent []string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.complete {
		if err := k.refresh(); err != nil {
			return nil, nil, err
		}
	}
	return k.namespaced, k.silent, nil
}

// Serves reports whether a resource is served. It queries the server again if the cache lacks the
// resource.
func (k *Kinds) Serves(resource schema.GroupResource) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.served[resource] {
		if err := k.refresh(); err != nil {
			return false, err
		}
	}
	return k.served[resource], nil
}

// refresh fills the cache. The cache stays incomplete as long as a group does not answer.
func (k *Kinds) refresh() error {
	lists, err := k.client.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return fmt.Errorf("asking the hub cluster for its kinds: %w", err)
	}
	var failed *discovery.ErrGroupDiscoveryFailed
	complete, silent := err == nil, []string{}
	if errors.As(err, &failed) {
		for gv := range failed.Groups {
			silent = append(silent, gv.String())
		}
	}
	slices.Sort(silent)
	served, namespaced := map[schema.GroupResource]bool{}, []schema.GroupVersionResource{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return fmt.Errorf("reading the kinds of the hub cluster: %w", err)
		}
		for _, r := range list.APIResources {
			served[gv.WithResource(r.Name).GroupResource()] = true
			watchable := slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch") && !strings.Contains(r.Name, "/")
			if r.Namespaced && watchable && neverPlaced(gv.WithKind(r.Kind)) == "" {
				namespaced = append(namespaced, gv.WithResource(r.Name))
			}
		}
	}
	k.served, k.namespaced, k.complete, k.silent = served, namespaced, complete, silent
	return nil
}
