package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release/common"
	"helm.sh/helm/v4/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-fleet/muster/internal/deploy/removal"
)

// Remove removes as much as possible of a release, and returns the rest. It deletes the history
// only after every object is deleted, belongs to another owner, or is kept by its policy. Remove
// can be repeated at any point. A release with keepResources loses only its history.
func (c *Cluster) Remove(ctx context.Context, s Summary, o Owner) (Left, error) {
	free, err := c.reserve(ctx, s.ID(), s.History, o)
	if err != nil {
		return Left{}, err
	}
	defer free()
	if s.KeepResources {
		return Left{}, c.forget(s)
	}
	objects, err := c.allObjects(s)
	if err != nil {
		return Left{}, err
	}
	if err := c.uninstall(ctx, s); err != nil {
		return Left{}, err
	}
	own := slices.IndexFunc(objects, func(object *unstructured.Unstructured) bool { return isNamespace(object, s.Namespace) })
	if own < 0 {
		own = len(objects)
	}
	left, err := c.deleteObjects(ctx, s, slices.Concat(objects[:own], objects[min(own+1, len(objects)):]), removal.ReleaseGone)
	if err == nil && left.Count == 0 && own < len(objects) {
		left, err = c.deleteObjects(ctx, s, objects[own:own+1], removal.ReleaseGone)
	}
	if err != nil || left.Count > 0 {
		return left, err
	}
	if left.Namespace, err = c.removeNamespace(ctx, s); err != nil {
		return left, err
	}
	labels, err := c.unlabelNamespace(ctx, s)
	if err != nil {
		return left, err
	}
	left.Namespace = cmp.Or(left.Namespace, labels)
	return left, c.forget(s)
}

// Forget deletes the history of a release and keeps its objects.
func (c *Cluster) Forget(ctx context.Context, s Summary, o Owner) error {
	free, err := c.reserve(ctx, s.ID(), s.History, o)
	if err != nil {
		return err
	}
	defer free()
	return c.forget(s)
}

// reserve reserves a release and checks its owner, before and after. The check before keeps another
// Bundle from blocking the owner.
func (c *Cluster) reserve(ctx context.Context, id ID, histories string, o Owner) (free func(), err error) {
	if err := c.checkOwner(ctx, id, histories, o); err != nil {
		return nil, err
	}
	if free, err = c.names.take(id, o.Bundle); err != nil {
		return nil, err
	}
	if err = c.checkOwner(ctx, id, histories, o); err != nil {
		free()
		return nil, err
	}
	return free, nil
}

// uninstall runs the hooks and deletes the objects, once; the history stays, marked as uninstalled.
func (c *Cluster) uninstall(ctx context.Context, s Summary) error {
	acting, err := c.As(s.ServiceAccount)
	if err != nil {
		return err
	}
	configuration := c.configuration(acting, s.Namespace, s.History, 0)
	history, err := revisions(configuration, s.Name)
	if err != nil || len(history) == 0 || uninstalled(history) {
		return err
	}
	client := &uninstallClient{Client: configuration.KubeClient.(*kube.Client), ctx: ctx, cluster: c, acting: acting, release: s.ID()}
	client.owner = hookOwner{release: s.ID(), releases: []ID{s.ID()}, unmarked: ranUnmarked(history)}
	client.hooks.again = history[len(history)-1].Info.Status == common.StatusUninstalling
	configuration.KubeClient = client
	un := action.NewUninstall(configuration)
	un.Timeout, un.WaitStrategy, un.KeepHistory = cmp.Or(c.HookWait, defaultTimeout), kube.HookOnlyStrategy, true
	if _, err := un.Run(s.Name); err != nil && client.hooks.runs != "" {
		waits := fmt.Errorf("%w: %s of release %s is waited for; if it cannot end, delete it, and it is started again",
			ErrHookRuns, client.hooks.runs, s)
		if client.hooks.cause != "" {
			waits = fmt.Errorf("%w; %s", waits, client.hooks.cause)
		}
		return waits
	} else if err != nil {
		// Helm's own error does not name the failed objects.
		return fmt.Errorf("uninstalling release %s: %w", s, errors.Join(append(client.failures, err)...))
	}
	return nil
}

// forget deletes the history, the oldest revision first, because the newest names the owner.
func (c *Cluster) forget(s Summary) error {
	releases := c.configuration(c, s.Namespace, s.History, 0)
	history, err := revisions(releases, s.Name)
	if err != nil {
		return err
	}
	for _, revision := range history {
		if _, err := releases.Releases.Delete(s.Name, revision.Version); err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
			return fmt.Errorf("deleting revision %d of release %s: %w", revision.Version, s, err)
		}
	}
	return nil
}
