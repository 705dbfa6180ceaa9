package release

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/muster-fleet/muster/internal/deploy/readiness"
	"github.com/muster-fleet/muster/internal/kubeclient"
)

// establishTimeout is how long an API server may take to serve a new kind.
const establishTimeout = time.Minute

// establish applies a CustomResourceDefinition as a part of a release that is about to be deployed, and returns when the kind is served. An existing
// definition is left to Helm, which checks its owner.
func (c *Cluster) establish(ctx context.Context, crd *unstructured.Unstructured, request Request) error {
	crds := c.Dynamic.Resource(crdResource)
	name := crd.GetName()
	if _, err := crds.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		if err != nil {
			return fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
		}
		return nil
	}
	owned := crd.DeepCopy()
	Mark(owned, request.ID())
	if _, err := Apply(ctx, crds, owned); err != nil {
		return fmt.Errorf("applying CustomResourceDefinition %s: %w", name, err)
	}
	return c.awaitCRD(ctx, name)
}

// Apply applies a manifest by server-side apply.
func Apply(ctx context.Context, objects dynamic.ResourceInterface, desired *unstructured.Unstructured, dryRun ...string) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(desired)
	if err != nil {
		return nil, err
	}
	return objects.Patch(ctx, desired.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: FieldManager, Force: new(true), DryRun: dryRun})
}

func (c *Cluster) awaitCRD(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, establishTimeout)
	defer cancel()
	watch, err := c.Dynamic.Resource(crdResource).Watch(ctx, metav1.ListOptions{
		FieldSelector: kubeclient.Name(name),
	})
	if err != nil {
		return fmt.Errorf("watching CustomResourceDefinition %s: %w", name, err)
	}
	defer watch.Stop()
	said := "it is not established"
	for event := range watch.ResultChan() {
		crd, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		is := readiness.Of(crd)
		if is.State == readiness.Ready {
			return nil
		}
		said = is.Message
	}
	return fmt.Errorf("CustomResourceDefinition %s is not served after %s: %s", name, establishTimeout, said)
}
