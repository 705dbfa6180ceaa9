package importer

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/bootstrap"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// tokenLife is the life of an import token, tokenSpare the least remaining life for an agent to
	// register.
	tokenLife  = 12 * time.Hour
	tokenSpare = time.Hour
)

// token returns the values for an agent to register this Cluster. It returns nil while the hub
// creates them; an event of the token then enqueues the Cluster.
func (c *Controller) token(ctx context.Context, cluster *fleet.Cluster) (*bootstrap.Bootstrap, error) {
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: naming.ImportToken(cluster.Name)}
	var token fleet.ClusterRegistrationToken
	err := c.Client.Get(ctx, key, &token)
	if apierrors.IsNotFound(err) {
		return nil, c.createToken(ctx, cluster, key)
	}
	if err != nil {
		return nil, err
	}
	switch owner := kube.ControllerOf(&token, fleet.GroupVersion.WithKind("Cluster").GroupKind()); {
	case owner == nil || owner.Name != cluster.Name:
		return nil, badInput(reasons.TokenRefused, "ClusterRegistrationToken %s exists and was not created for this Cluster: delete it", key)
	case token.DeletionTimestamp != nil:
		return nil, nil
	case owner.UID != cluster.UID, !c.Clock.Now().Before(token.CreationTimestamp.Add(tokenLife - tokenSpare)):
		// The token belongs to an earlier Cluster of this name, or expires soon. Its deletion enqueues
		// this Cluster.
		return nil, client.IgnoreNotFound(c.Client.Delete(ctx, &token, client.Preconditions{UID: &token.UID}))
	case token.Status.SecretName == "":
		if ready := kube.FindCondition(token.Status.Conditions, fleet.ConditionReady); ready != nil && ready.Message != "" {
			return nil, setback(reasons.TokenRefused, "ClusterRegistrationToken %s: %s", key, ready.Message)
		}
		return nil, nil
	}
	var secret corev1.Secret
	if err := c.Live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: token.Status.SecretName},
		&secret); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	bootstrap := bootstrap.ReadBootstrap(&secret)
	if bootstrap.Token == "" { // edited by hand; the token's controller renders it again
		return nil, nil
	}
	return &bootstrap, nil
}

func (c *Controller) createToken(ctx context.Context, cluster *fleet.Cluster, key types.NamespacedName) error {
	token := &fleet.ClusterRegistrationToken{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{fleet.LabelManaged: "true"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cluster, fleet.GroupVersion.WithKind("Cluster"))},
		},
		Spec: fleet.ClusterRegistrationTokenSpec{TTL: &metav1.Duration{Duration: tokenLife}},
	}
	if err := c.Client.Create(ctx, token, kube.FieldOwner); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating ClusterRegistrationToken %s: %w", key, err)
	}
	return nil
}
