package release

import (
	"context"
	"errors"
	"fmt"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/storage/driver"
)

// Remove goes as far as it can with the removal of a release, and returns what of it is left. The history is forgotten only when nothing
// is: every object was looked up and is gone, another's, or kept by its policy. It can be called again at any point. One that was deployed
// to be kept is forgotten and leaves its objects.
func (c *Cluster) Remove(ctx context.Context, s Summary, o Owner) (Left, error) {
	free, err := c.reserve(ctx, s.Name, o)
	if err != nil {
		return Left{}, err
	}
	defer free()
	if s.KeepResources {
		return Left{}, c.forget(s)
	}
	objects, err := c.everything(s)
	if err != nil {
		return Left{}, err
	}
	if err := c.uninstall(ctx, s); err != nil {
		return Left{}, err
	}
	left, err := c.sweep(ctx, s, objects)
	if err != nil || left.Count > 0 {
		return left, err
	}
	if left.Namespace, err = c.removeNamespace(ctx, s); err != nil {
		return left, err
	}
	return left, c.forget(s)
}

// Forget deletes the history of a release and leaves its objects.
func (c *Cluster) Forget(ctx context.Context, s Summary, o Owner) error {
	free, err := c.reserve(ctx, s.Name, o)
	if err != nil {
		return err
	}
	defer free()
	return c.forget(s)
}

// reserve keeps others from a release as long as it is worked on, and makes sure that it is the owner's. Whoever it does not belong to is
// refused before, so that he is never in the owner's way.
func (c *Cluster) reserve(ctx context.Context, name string, o Owner) (free func(), err error) {
	if err := c.mine(ctx, name, o); err != nil {
		return nil, err
	}
	if free, err = c.names.take(name, o.Bundle); err != nil {
		return nil, err
	}
	if err = c.mine(ctx, name, o); err != nil {
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
	configuration := c.configuration(acting, s.Namespace, 0)
	history, err := revisions(configuration, s.Name)
	if err != nil || len(history) == 0 || uninstalled(history) {
		return err
	}
	client := &remover{Client: configuration.KubeClient.(*kube.Client), ctx: ctx, cluster: c}
	configuration.KubeClient = client
	un := action.NewUninstall(configuration)
	un.Timeout, un.WaitStrategy, un.KeepHistory = defaultTimeout, kube.HookOnlyStrategy, true
	if _, err := un.Run(s.Name); err != nil {
		// Helm's own error does not say what failed.
		return fmt.Errorf("uninstalling release %s: %w", s, errors.Join(append(client.failures, err)...))
	}
	return nil
}

// forget deletes the history, the oldest revision first, so that the newest, which says whose it is, goes last.
func (c *Cluster) forget(s Summary) error {
	releases := c.configuration(c, s.Namespace, 0)
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
