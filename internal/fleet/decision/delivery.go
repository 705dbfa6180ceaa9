package decision

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
)

// Paused reports whether a user has paused a delivery or a member.
func Paused(o client.Object) bool {
	switch o := o.(type) {
	case *fleet.Bundle:
		return o.Spec.Paused
	case *fleet.GitRepo:
		return o.Spec.Paused
	case *fleet.HelmOp:
		return o.Spec.Paused
	}
	return membership.Paused(o)
}

// Pause holds back all changes of a Bundle, GitRepo, HelmOp or placement, or on a member. Deployed
// resources stay.
func Pause(ctx context.Context, c client.Client, o client.Object) error {
	if isBundleOrSource(o) {
		return change(ctx, c, o, nil, map[string]any{"paused": true})
	}
	return change(ctx, c, o, map[string]any{fleet.AnnotationPaused: "true"}, nil)
}

// Resume ends a pause.
func Resume(ctx context.Context, c client.Client, o client.Object) error {
	if isBundleOrSource(o) {
		return change(ctx, c, o, nil, map[string]any{"paused": nil})
	}
	var spec map[string]any
	if cluster, ok := o.(*fleet.Cluster); ok && cluster.Spec.Paused {
		spec = map[string]any{"paused": nil}
	}
	return change(ctx, c, o, map[string]any{fleet.AnnotationPaused: nil}, spec)
}

// Retry deploys a Bundle, or the Bundles of a GitRepo or HelmOp, again on all of their members.
func Retry(ctx context.Context, c client.Client, o client.Object) error {
	var generation int64
	switch o := o.(type) {
	case *fleet.Bundle:
		generation = o.Spec.ForceSyncGeneration
	case *fleet.GitRepo:
		generation = o.Spec.ForceSyncGeneration
	case *fleet.HelmOp:
		generation = o.Spec.ForceSyncGeneration
	default:
		return fmt.Errorf("%T cannot be retried", o)
	}
	return change(ctx, c, o, nil, map[string]any{"forceSyncGeneration": generation + 1})
}

// SourceOf returns the GitRepo or HelmOp of a Bundle; nil without one. It writes the spec of the
// Bundle, so changes of users do not stay.
func SourceOf(ctx context.Context, c client.Reader, o client.Object) (client.Object, error) {
	bundle, ok := o.(*fleet.Bundle)
	if !ok {
		return nil, nil
	}
	var source client.Object
	name := bundle.Labels[fleet.LabelRepoName]
	if source = (&fleet.GitRepo{}); name == "" {
		source, name = &fleet.HelmOp{}, bundle.Labels[fleet.LabelHelmOpName]
	}
	if name == "" {
		return nil, nil
	}
	err := c.Get(ctx, client.ObjectKey{Namespace: bundle.Namespace, Name: name}, source)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return source, err
}

// isBundleOrSource reports whether a pause of an object is in its spec.
func isBundleOrSource(o client.Object) bool {
	switch o.(type) {
	case *fleet.Bundle, *fleet.GitRepo, *fleet.HelmOp:
		return true
	}
	return false
}

// change sets annotations and fields of the spec of an object; nil removes one. It fails with a
// conflict if the object of this name has another UID.
func change(ctx context.Context, c client.Client, o client.Object, annotations, spec map[string]any) error {
	metadata := map[string]any{"uid": o.GetUID()}
	body := map[string]any{"metadata": metadata}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	if spec != nil {
		body["spec"] = spec
	}
	patch, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))
}
