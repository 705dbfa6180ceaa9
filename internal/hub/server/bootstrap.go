package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/fleet/agentroles"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// bootstrapPatience bounds the hub's attempts to create its own objects before it ends with the API
// server's error.
const bootstrapPatience = time.Minute

// bootstrap creates the objects without a controller: the roles of members, and the namespaces of
// upstream answers and of identities.
func bootstrap(c client.Client, systemNamespace string) func(context.Context) error {
	return func(ctx context.Context) error {
		// A momentary restart of the API server must not end the hub.
		backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 10, Cap: 10 * time.Second}
		for begun := time.Now(); ; {
			err := makeOwn(ctx, c, systemNamespace)
			if err == nil || time.Since(begun) > bootstrapPatience {
				return err
			}
			ctrl.LoggerFrom(ctx).Info("Failed to create the hub's own objects; the hub retries", "reason", err.Error())
			select {
			case <-ctx.Done():
				return err
			case <-time.After(backoff.Step()):
			}
		}
	}
}

// checkRoles returns an error with the names of all foreign ClusterRoles in the place of the hub's.
// It runs before the hub writes anything.
func checkRoles(ctx context.Context, reader client.Reader) error {
	there, err := agentroles.FindRoles(ctx, reader)
	if err != nil || len(there.Foreign) == 0 {
		return err
	}
	return fmt.Errorf("ClusterRoles exist that the hub did not create, without which no agent gets its rights (%s): if you do not need them, "+
		"kubectl delete clusterrole %s",
		strings.Join(there.Foreign, ", "), strings.Join(there.Foreign, " "))
}

func makeOwn(ctx context.Context, c client.Client, systemNamespace string) error {
	roles, err := agentroles.ClusterRoles()
	if err != nil {
		return err
	}
	found, err := agentroles.FindRoles(ctx, c)
	if err != nil {
		return err
	}
	found.TakeOver(roles)
	if err := kube.Ensure(ctx, c, roles...); err != nil {
		return err
	}
	for _, name := range []string{naming.RegistrationNamespace(systemNamespace), naming.MemberSystemNamespace} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := c.Create(ctx, namespace, kube.FieldOwner); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating namespace %s: %w", name, err)
		}
	}
	return nil
}
