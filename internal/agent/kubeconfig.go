package agent

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/hublogin"
	"github.com/muster-fleet/muster/internal/naming"
)

// HubKubeconfig names a kubeconfig of the hub, in place of a token. An agent uses its identity
// until the hub has issued a credential, and hands it to no other program.
type HubKubeconfig struct {
	// Secret is the name of the Secret in the agent's namespace; empty if there is none.
	Secret string
	// Context is the context to use; empty for the current one.
	Context string
}

// errWithoutKey means that the hub can never replace the identity of a kubeconfig.
var errWithoutKey = errors.New("the agent cannot keep a key, so the hub cannot issue a credential in place of the kubeconfig: " +
	"upgrade the agent's chart, which grants the right to secret " + naming.AgentKeySecret)

// login reads the kubeconfig of a Secret. A kubeconfig may run a program with the rights of the
// agent, so it must not come from a hub.
func (k HubKubeconfig) login(secret *corev1.Secret) (*hublogin.Login, error) {
	if delivered(secret) {
		return nil, errors.New("a hub has delivered it, and a kubeconfig may run a program in the agent's container: an administrator of " +
			"this cluster must create it")
	}
	return hublogin.Parse(secret.Data[hublogin.Key], k.Context)
}

// delivered reports whether an object was deployed by a Bundle or applied by a Work.
func delivered(secret *corev1.Secret) bool {
	for _, owner := range secret.OwnerReferences {
		if group, err := schema.ParseGroupVersion(owner.APIVersion); err == nil && group.Group == placement.GroupVersion.Group {
			return true
		}
	}
	_, deployed := secret.Labels[naming.LabelObjectSet]
	return deployed
}

// kind names the content of the user's Secret.
func (k HubKubeconfig) kind() string {
	if k.Secret != "" {
		return "a kubeconfig"
	}
	return "a token"
}

// digest changes with the kubeconfig of a Secret.
func (k HubKubeconfig) digest(secret *corev1.Secret) string {
	return naming.DigestOfParts(string(secret.Data[hublogin.Key]), k.Context)[:16]
}

// identify adds the present identity to a credential from a kubeconfig.
func (a *Agent) identify(ctx context.Context, c hubclient.Credential) (hubclient.Credential, error) {
	identified, err := c.WithIdentity(ctx, a.clock.Now())
	if err != nil {
		return c, fmt.Errorf("secret %s: %w", a.mode.credentialRef(), err)
	}
	return identified, nil
}
