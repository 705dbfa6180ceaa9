package access

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// rival reports whether another member gave Argo CD the same API server earlier. Argo CD finds
// clusters by their server, so a second Secret could replace the credential of the first.
func (c *Controller) rival(ctx context.Context, o observed) (bool, error) {
	if o.tool.name != argoCD || o.problem != "" {
		return false, nil
	}
	digest := o.serverDigest()
	same := &metav1.PartialObjectMetadataList{}
	same.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := c.Client.List(ctx, same, client.MatchingFields{byServer: digest}); err != nil {
		return false, fmt.Errorf("looking for members with the same API server: %w", err)
	}
	current, _ := o.secrets()
	for i := range same.Items {
		other := &same.Items[i]
		if other.Namespace == o.tool.namespace && other.Name != o.tool.secretName(o.key) && (current == nil || isEarlier(other, current)) {
			c.waiting.add(digest, o.key)
			return true, nil
		}
	}
	return false, nil
}

func isEarlier(a, b *metav1.PartialObjectMetadata) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// waiting holds the members waiting for another one to give up its API server.
type waiting struct {
	mu      sync.Mutex
	members map[string]map[types.NamespacedName]bool
}

func (w *waiting) add(server string, key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.members == nil {
		w.members = map[string]map[types.NamespacedName]bool{}
	}
	if w.members[server] == nil {
		w.members[server] = map[types.NamespacedName]bool{}
	}
	w.members[server][key] = true
}

// of returns requests for the members waiting for a server, once. Members with another rival wait
// again.
func (w *waiting) of(server string) (requests []reconcile.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.members[server] {
		requests = append(requests, reconcile.Request{NamespacedName: key})
	}
	delete(w.members, server)
	return requests
}
