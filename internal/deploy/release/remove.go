package release

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	helm "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Remove uninstalls a release, or forgets it and leaves its objects if it was deployed to be kept.
func (c *Cluster) Remove(ctx context.Context, s Summary) error {
	if s.KeepResources {
		return c.Forget(s)
	}
	if err := c.uninstall(s, false); err != nil {
		return err
	}
	return c.removeNamespace(ctx, s)
}

// Uninstall deletes the objects of a release and keeps its history, which says what they were, until Forget is called.
func (c *Cluster) Uninstall(s Summary) error {
	if s.Uninstalled {
		return nil
	}
	return c.uninstall(s, true)
}

// Finish ends the removal of a release whose objects are gone.
func (c *Cluster) Finish(ctx context.Context, s Summary) error {
	if err := c.removeNamespace(ctx, s); err != nil {
		return err
	}
	return c.Forget(s)
}

func (c *Cluster) uninstall(s Summary, keepHistory bool) error {
	acting, err := c.As(s.ServiceAccount)
	if err != nil {
		return err
	}
	un := action.NewUninstall(c.configuration(acting, s.Namespace, 0))
	un.Timeout, un.WaitStrategy, un.IgnoreNotFound, un.KeepHistory = defaultTimeout, kube.HookOnlyStrategy, true, keepHistory
	if _, err := un.Run(s.Name); err != nil {
		return fmt.Errorf("uninstalling release %s: %w", s, err)
	}
	return nil
}

// removeNamespace deletes the namespace of a release that was deployed to take it along.
func (c *Cluster) removeNamespace(ctx context.Context, s Summary) error {
	if !s.DeleteNamespace || c.mayNotGo(s.Namespace) {
		return nil
	}
	acting, err := c.As(s.ServiceAccount)
	if err != nil {
		return err
	}
	if err := acting.Kube.CoreV1().Namespaces().Delete(ctx, s.Namespace, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting namespace %s of release %s: %w", s.Namespace, s, err)
	}
	return nil
}

// Forget deletes the history of a release and leaves its objects.
func (c *Cluster) Forget(s Summary) error {
	releases := c.configuration(c, s.Namespace, 0).Releases
	history, err := releases.History(s.Name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the history of release %s: %w", s, err)
	}
	for _, entry := range history {
		revision, ok := entry.(*helm.Release)
		if !ok {
			return fmt.Errorf("the history of release %s is of an unknown version: %T", s, entry)
		}
		if _, err := releases.Delete(s.Name, revision.Version); err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
			return fmt.Errorf("deleting revision %d of release %s: %w", revision.Version, s, err)
		}
	}
	return nil
}

// mayNotGo is for namespaces that no Bundle may take with it.
func (c *Cluster) mayNotGo(namespace string) bool {
	return slices.Contains([]string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease", c.AgentNamespace}, namespace)
}
