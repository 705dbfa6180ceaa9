package bundle

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// valuesDiffer reports whether the Secret of a deployment has other values than its valuesHash.
func (c *Controller) valuesDiffer(ctx context.Context, d *fleet.BundleDeployment) (bool, error) {
	var secret corev1.Secret
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(d), &secret); err != nil {
		return false, fmt.Errorf("reading Secret %s: %w", client.ObjectKeyFromObject(d), err)
	}
	return delivery.ValuesHash(secret.Data) != d.Spec.ValuesHash, nil
}

// refusesValues reports whether the agent cannot deploy with the values it found.
func refusesValues(d *fleet.BundleDeployment) bool {
	if d == nil {
		return false
	}
	deployed := kube.FindCondition(d.Status.Conditions, fleet.ConditionDeployed)
	return deployed != nil && deployed.Status == corev1.ConditionFalse && deployed.Reason == reasons.ValuesInvalid
}

// refusesCopies reports whether the agent cannot deploy for want of a copy in downstreamResources.
func refusesCopies(d *fleet.BundleDeployment) bool {
	return d != nil && kube.ReasonOf(d.Status.Conditions, fleet.ConditionDeployed) == reasons.DownstreamResourceUnreadable
}

// staged returns the Secret of a deployment held back by the rollout. It has the agent's current
// values, and the values of the staged options from fresh, if any. It is nil if there is nothing
// to write.
func (c *Controller) staged(ctx context.Context, before, d *fleet.BundleDeployment, fresh *corev1.Secret) (*corev1.Secret, error) {
	d.Spec.ValuesHash = before.Spec.ValuesHash
	var current corev1.Secret
	if before.Spec.ValuesHash != "" {
		if err := c.Live.Get(ctx, client.ObjectKeyFromObject(before), &current); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading Secret %s: %w", client.ObjectKeyFromObject(before), err)
		}
		if delivery.ValuesHash(current.Data) != before.Spec.ValuesHash {
			return nil, nil // the agent's values are unknown; the next release writes all
		}
	}
	var wanted []byte
	if fresh != nil {
		wanted = fresh.Data[fleet.KeyStagedValues]
	}
	if bytes.Equal(current.Data[fleet.KeyStagedValues], wanted) {
		return nil, nil
	}
	secret := fresh
	if secret == nil {
		meta := metav1.ObjectMeta{Namespace: current.Namespace, Name: current.Name, Labels: current.Labels}
		secret = &corev1.Secret{ObjectMeta: meta, Type: current.Type}
	}
	secret.Data = map[string][]byte{}
	for key, values := range map[string][]byte{fleet.KeyValues: current.Data[fleet.KeyValues], fleet.KeyStagedValues: wanted} {
		if len(values) > 0 {
			secret.Data[key] = values
		}
	}
	d.Spec.ValuesHash = delivery.ValuesHash(secret.Data)
	return secret, nil
}
