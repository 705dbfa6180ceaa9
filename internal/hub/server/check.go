package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/muster-fleet/muster/internal/naming"
)

// checkTimeout bounds a check's wait for a leader; a live leader renews its Lease at least twice in
// this time.
const checkTimeout = 20 * time.Second

// newCheck returns the command muster-hub check. kubeconfig and namespace are flags of its parent.
func newCheck(configure func() (*rest.Config, error), namespace *string) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check whether a hub leads and the kinds of the fleet are served",
		Long: `check reports whether the hub cluster serves the kinds of the fleet, and waits until the leading hub renews its Lease.
It fails if a kind is missing or no hub leads. helm test runs it for the chart fleet. It needs the right to watch the Lease
` + naming.HubLease + ` in the hub's namespace.`,
		Example: `  muster-hub check --kubeconfig hub.kubeconfig --namespace ` + naming.SystemNamespace,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if *namespace == "" {
				return errNamespace
			}
			config, err := configure()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(command.Context(), checkTimeout)
			defer cancel()
			return check(ctx, config, *namespace, command.OutOrStdout())
		},
	}
}

func check(ctx context.Context, config *rest.Config, namespace string, out io.Writer) error {
	calls, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, calls)
	if err != nil {
		return fmt.Errorf("asking the hub cluster at %s for its kinds: %w", config.Host, err)
	}
	if err := requireCRDs(mapper); err != nil {
		return err
	}
	fmt.Fprintln(out, "The kinds of the fleet are served.")
	cl, err := client.NewWithWatch(config, client.Options{HTTPClient: calls, Mapper: mapper, Scheme: NewScheme()})
	if err != nil {
		return err
	}
	leader, err := awaitRenewal(ctx, cl, namespace)
	if err != nil {
		return fmt.Errorf("%w; for the cause: kubectl -n %s logs -l app=fleet-controller", err, namespace)
	}
	fmt.Fprintf(out, "%s leads.\n", leader)
	return nil
}

// awaitRenewal returns the name of the leader after its next renewal of the Lease, so it compares
// no two clocks.
func awaitRenewal(ctx context.Context, cl client.WithWatch, namespace string) (string, error) {
	events, err := cl.Watch(ctx, &coordinationv1.LeaseList{}, client.InNamespace(namespace), client.MatchingFields{
		"metadata.name": naming.HubLease,
	})
	if err != nil {
		return "", fmt.Errorf("watching Lease %s/%s: %w", namespace, naming.HubLease, err)
	}
	defer events.Stop()
	last := "nobody ever led"
	for {
		select {
		case <-ctx.Done():
			return "", errors.New("no hub leads: " + last)
		case event, open := <-events.ResultChan():
			if !open {
				return "", errors.New("the API server ended the watch, and no hub leads: " + last)
			}
			if event.Type == watch.Error {
				return "", fmt.Errorf("watching Lease %s/%s: %w", namespace, naming.HubLease, apierrors.FromObject(event.Object))
			}
			lease, ok := event.Object.(*coordinationv1.Lease)
			if !ok || lease.Spec.HolderIdentity == nil || lease.Spec.RenewTime == nil || *lease.Spec.HolderIdentity == "" {
				continue
			}
			leader, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
			if event.Type == watch.Modified {
				return leader, nil
			}
			last = fmt.Sprintf("the last one was %s, at %s", leader, lease.Spec.RenewTime.UTC().Format(time.RFC3339))
		}
	}
}
