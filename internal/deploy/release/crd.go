package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/muster-fleet/muster/internal/deploy/readiness"
	"github.com/muster-fleet/muster/internal/kubeclient"
)

// establishTimeout bounds the time for an API server to serve the new kinds of a release.
const establishTimeout = time.Minute

// establish applies CustomResourceDefinitions as parts of a release before its deployment, and
// waits for all their kinds at the same time. It leaves an existing definition to Helm, because
// Helm checks the owner.
func (c *Cluster) establish(ctx context.Context, crds []*unstructured.Unstructured, id ID) error {
	var created []string
	for _, crd := range crds {
		applied, err := c.applyCRD(ctx, crd, id)
		if err != nil {
			return err
		}
		if applied {
			created = append(created, crd.GetName())
		}
	}
	ctx, cancel := context.WithTimeout(ctx, establishTimeout)
	defer cancel()
	failures := make([]error, len(created))
	var waiting sync.WaitGroup
	for i, name := range created {
		waiting.Go(func() { failures[i] = c.awaitCRD(ctx, name) })
	}
	waiting.Wait()
	return errors.Join(failures...)
}

// applyCRD applies a missing definition.
func (c *Cluster) applyCRD(ctx context.Context, crd *unstructured.Unstructured, id ID) (applied bool, err error) {
	crds := c.Dynamic.Resource(crdResource)
	name := crd.GetName()
	if _, err := crds.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		if err != nil {
			return false, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
		}
		return false, nil
	}
	owned := crd.DeepCopy()
	Mark(owned, id)
	if _, err := Apply(ctx, crds, owned); err != nil {
		return false, fmt.Errorf("applying CustomResourceDefinition %s: %w", name, err)
	}
	return true, nil
}

// Apply applies a manifest by server-side apply.
func Apply(ctx context.Context, objects dynamic.ResourceInterface, desired *unstructured.Unstructured,
	dryRun ...string) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(desired)
	if err != nil {
		return nil, err
	}
	return objects.Patch(ctx, desired.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{
		FieldManager: FieldManager, Force: new(true), DryRun: dryRun,
	})
}

func (c *Cluster) awaitCRD(ctx context.Context, name string) error {
	watch, err := c.Dynamic.Resource(crdResource).Watch(ctx, metav1.ListOptions{
		FieldSelector: kubeclient.Name(name),
	})
	if err != nil {
		return fmt.Errorf("watching CustomResourceDefinition %s: %w", name, err)
	}
	defer watch.Stop()
	message := "it is not established"
	for event := range watch.ResultChan() {
		crd, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		is := readiness.Of(crd)
		if is.State == readiness.Ready {
			return nil
		}
		message = is.Message
	}
	return fmt.Errorf("CustomResourceDefinition %s is not served after %s: %s", name, establishTimeout, message)
}
