package bundle

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
)

// values remembers which versions of the Secrets with values this controller wrote, and which Secrets somebody else did. The cache has
// their metadata only.
type values struct {
	mu      sync.Mutex
	written map[types.NamespacedName]string
	changed map[types.NamespacedName]bool
}

func (v *values) wrote(secret *corev1.Secret) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.written == nil {
		v.written = map[types.NamespacedName]string{}
	}
	key := client.ObjectKeyFromObject(secret)
	v.written[key] = secret.ResourceVersion
	delete(v.changed, key)
}

// suspect notes that a Secret has another version, and says whether that is somebody else's doing.
func (v *values) suspect(secret client.Object) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := client.ObjectKeyFromObject(secret)
	if v.written[key] == secret.GetResourceVersion() {
		return false
	}
	if v.changed == nil {
		v.changed = map[types.NamespacedName]bool{}
	}
	v.changed[key] = true
	return true
}

// suspected says whether a Secret has to be looked at, once.
func (v *values) suspected(key types.NamespacedName) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	was := v.changed[key]
	delete(v.changed, key)
	return was
}

func (v *values) forget(key types.NamespacedName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.written, key)
	delete(v.changed, key)
}

// valuesDiffer says whether the Secret of a deployment has other values than it promises.
func (c *Controller) valuesDiffer(ctx context.Context, d *fleet.BundleDeployment) (bool, error) {
	var secret corev1.Secret
	if err := c.Live.Get(ctx, keyOf(d), &secret); err != nil {
		return false, fmt.Errorf("reading Secret %s: %w", keyOf(d), err)
	}
	return delivery.ValuesHash(secret.Data) != d.Spec.ValuesHash, nil
}
