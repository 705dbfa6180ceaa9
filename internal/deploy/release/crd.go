package release

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/internal/deploy/readiness"
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
	data, err := json.Marshal(owned)
	if err != nil {
		return fmt.Errorf("encoding CustomResourceDefinition %s: %w", name, err)
	}
	force := true
	if _, err := crds.Patch(ctx, name, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: FieldManager, Force: &force}); err != nil {
		return fmt.Errorf("applying CustomResourceDefinition %s: %w", name, err)
	}
	return c.awaitCRD(ctx, name)
}

func (c *Cluster) awaitCRD(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, establishTimeout)
	defer cancel()
	watch, err := c.Dynamic.Resource(crdResource).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(),
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
