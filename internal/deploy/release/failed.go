package release

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-fleet/muster/internal/deploy/removal"
)

// maxFailed is the number of failed revisions to keep besides the others until one succeeds. They
// list the objects of failed attempts.
const maxFailed = 8

// sweepFailed deletes objects of failed revisions missing in a successful release, because Helm
// compares only with the last deployed revision. It logs objects that cannot be deleted; they are
// removed with the Bundle.
func (c *Cluster) sweepFailed(ctx context.Context, s Summary, manifest string) {
	log := logr.FromContextOrDiscard(ctx).WithValues("release", s.String())
	rest, err := c.ofFailed(ctx, s, manifest)
	if err == nil {
		var left Left
		if left, err = c.deleteObjects(ctx, s, rest, removal.LeftRelease); len(left.Blocked) > 0 {
			log.Info("Objects of failed revisions are left", "blocked", left.Blocked)
		}
	}
	if err != nil {
		log.Info("Failed to delete the objects of failed revisions", "reason", err.Error())
	}
}

// ofFailed returns the objects of earlier revisions missing in a manifest, in any spelling of their
// namespace.
func (c *Cluster) ofFailed(ctx context.Context, s Summary, manifest string) ([]*unstructured.Unstructured, error) {
	now, err := parse([]byte(manifest))
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of release %s: %w", s, err)
	}
	former, err := c.Former(s, now)
	if err != nil || len(former) == 0 {
		return nil, err
	}
	current := map[string]bool{}
	for _, object := range now {
		name, err := c.resolved(ctx, s, object)
		if err != nil {
			return nil, err
		}
		current[name] = true
	}
	return slices.DeleteFunc(former, func(object *unstructured.Unstructured) bool {
		name, err := c.resolved(ctx, s, object)
		return err != nil || name == "" || current[name]
	}), nil
}

// resolved returns the cluster's identity of an object of a release; "" if its kind is not served.
func (c *Cluster) resolved(ctx context.Context, s Summary, object *unstructured.Unstructured) (string, error) {
	mapping, served, err := c.Find(ctx, object.GroupVersionKind())
	if err != nil || !served {
		return "", err
	}
	namespace := ""
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if namespace = object.GetNamespace(); namespace == "" {
			namespace = s.Namespace
		}
	}
	return placeOf(mapping, namespace, object.GetName()), nil
}
