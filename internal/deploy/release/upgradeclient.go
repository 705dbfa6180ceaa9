package release

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"

	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/removal"
)

// upgradeClient limits the deletions of an upgrade to objects of the release. Helm itself deletes,
// by name, everything in the last revision but not in the next.
type upgradeClient struct {
	*hookClient
	// releases are the release, and the releases with names still possible in its objects.
	releases []ID
	// after knows the objects to be replaced.
	after *renderer
}

// Update implements kube.Interface. Its result is never nil: Helm reads it after an error, too.
func (u *upgradeClient) Update(originals, targets kube.ResourceList, options ...kube.ClientUpdateOption) (*kube.Result, error) {
	result, err := u.update(originals, targets, options...)
	if result == nil {
		result = &kube.Result{}
	}
	return result, err
}

func (u *upgradeClient) update(originals, targets kube.ResourceList, options ...kube.ClientUpdateOption) (*kube.Result, error) {
	u.storeRuns()
	targets, err := u.jobs.withoutEnded(u.ctx, u.acting, targets)
	if err != nil {
		return nil, err
	}
	defer u.jobs.note(targets)
	originals = u.jobs.without(originals)
	replaced := targets.Filter(func(info *resource.Info) bool { return u.after.replacementOf(info) != nil })
	if err := u.yield(originals, targets.Difference(replaced)); err != nil {
		return nil, err
	}
	result, err := u.Client.Update(originals.Intersect(targets).Difference(replaced), targets.Difference(replaced), options...)
	if err != nil {
		return result, err
	}
	if err := u.replace(replaced, result, options...); err != nil {
		return result, err
	}
	var failures []error
	for _, dropped := range originals.Difference(targets) {
		deleted, err := drop(u.ctx, u.acting, u.releases, dropped, removal.LeftRelease)
		if err != nil {
			failures = append(failures, err)
		}
		if deleted {
			result.Deleted = append(result.Deleted, dropped)
		}
	}
	return result, errors.Join(failures...)
}

// Create implements kube.Interface.
func (u *upgradeClient) Create(resources kube.ResourceList, options ...kube.ClientCreateOption) (*kube.Result, error) {
	fresh, err := u.jobs.withoutEnded(u.ctx, u.acting, resources)
	if err != nil {
		return nil, err
	}
	if len(fresh) == 0 && len(resources) > 0 {
		return &kube.Result{Created: resources}, nil
	}
	defer u.jobs.note(fresh)
	return u.hookClient.Create(fresh, options...)
}

// replace replaces objects in handover with changed immutable fields, after everything else has
// succeeded.
func (u *upgradeClient) replace(replaced kube.ResourceList, result *kube.Result, options ...kube.ClientUpdateOption) error {
	for _, info := range replaced {
		if err := u.after.replacementOf(info).MakeWay(u.ctx, clientOf(u.acting, info)); err != nil {
			return fmt.Errorf("handing over %s: %w", info.ObjectName(), err)
		}
		made, err := u.Client.Update(nil, kube.ResourceList{info}, options...)
		if err != nil {
			return err
		}
		result.Created = append(result.Created, made.Created...)
	}
	return nil
}

// drop deletes an object of one of the releases, unless it has another owner by now or its own
// annotation keeps it.
func drop(ctx context.Context, acting *Cluster, releases []ID, info *resource.Info, cause removal.Cause) (deleted bool, err error) {
	found, err := clientOf(acting, info).Get(ctx, info.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking whose %s is before it is deleted: %w", info.ObjectName(), err)
	case applied.Keeps(found) || !belongsToAny(releases, found):
		return false, nil
	}
	err = removal.Delete(ctx, removal.Of(clientOf(acting, info)), found, cause)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("deleting %s: %w", info.ObjectName(), err)
	}
	return true, nil
}

func belongsToAny(releases []ID, found *unstructured.Unstructured) bool {
	return slices.ContainsFunc(releases, func(id ID) bool { return Belongs(Summary{Name: id.Name, Namespace: id.Namespace}, found) })
}

func clientOf(c *Cluster, info *resource.Info) dynamic.ResourceInterface {
	return c.Dynamic.Resource(info.Mapping.Resource).Namespace(info.Namespace)
}
