package release

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/muster-fleet/muster/internal/deploy/cause"
)

// maxHookCauses is the maximum number of hooks with causes in an error.
const maxHookCauses = 3

// explainHooks adds to an error of waiting for hooks why they have not succeeded.
func (c *Cluster) explainHooks(ctx context.Context, hooks []*resource.Info, err error) error {
	for _, hook := range hooks[:min(len(hooks), maxHookCauses)] {
		if why := c.hookCause(ctx, hook); why != "" {
			err = fmt.Errorf("%w; %s: %s", err, objectName(hook), why)
		}
	}
	return err
}

// hookCause returns the causes why a hook has not succeeded, with the rights of the cluster's
// account; empty if there are none.
func (c *Cluster) hookCause(ctx context.Context, hook *resource.Info) string {
	found, err := clientOf(c, hook).Get(ctx, hook.Name, metav1.GetOptions{})
	if err != nil || !isRun(found) || hasSucceeded(found) {
		return ""
	}
	return strings.Join(cause.Find(ctx, c.Dynamic, cause.Object{
		GroupVersionResource: hook.Mapping.Resource,
		NamespacedName:       types.NamespacedName{Namespace: hook.Namespace, Name: hook.Name},
		UID:                  found.GetUID(),
	}), "; ")
}
