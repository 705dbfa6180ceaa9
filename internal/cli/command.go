// Package cli is the program muster: what the users of a fleet do, each in one line.
//
// It acts with the rights of the user's kubeconfig, and keeps nothing: what it shows is what the API server of the hub says at that moment.
package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/version"
)

// first are the commands that one needs first.
const first = `muster get                   who is in the fleet, and how they are
muster explain               what is wrong, and what to do
muster token create NAME     make the line that registers a cluster
muster approve NAME          let in who waits for that
muster leave NAME            have a member leave, to the end

muster --help has them all.
`

// NewCommand is the command muster, which users call by that name or as a plugin of kubectl.
func NewCommand(name string, streams genericiooptions.IOStreams) *cobra.Command {
	hub := newAccess()
	command := &cobra.Command{
		Use:   "muster",
		Short: "Look after a fleet of Kubernetes clusters",
		Long: `muster shows the members of a fleet and what is delivered to them, says what is wrong, and decides who is in. It asks the hub to which the
current context of the kubeconfig leads, or the one of --context, with the rights of its user.

It ends with 0 if it did what was asked for, else with 1 and a sentence that says why. It prints no colours.`,
		Example:      "  muster get\n  muster explain",
		Args:         cobra.NoArgs,
		Version:      version.Version,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(command.OutOrStdout(), strings.ReplaceAll(first, "muster ", name+" "))
			return err
		},
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: name},
	}
	command.SetIn(streams.In)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	hub.AddFlags(command.PersistentFlags())
	complete(command, "context", hub.contexts)
	complete(command, "namespace", hub.namespaces)
	command.AddCommand(newGet(streams, hub), newExplain(streams, hub), newTree(streams, hub), newApprove(streams, hub), newDeny(streams, hub), newRevoke(streams, hub), newLabel(streams, hub), newLeave(streams, hub), newToken(streams, hub))
	return command
}

// complete has a flag completed by a function; that cannot fail for a flag that there is.
func complete(command *cobra.Command, flag string, by cobra.CompletionFunc) {
	if err := command.RegisterFlagCompletionFunc(flag, by); err != nil {
		panic(err)
	}
}

// access is how a cluster is reached, as kubectl's flags and the kubeconfig say.
type access struct {
	*genericclioptions.ConfigFlags
	scheme *runtime.Scheme
}

func newAccess() *access {
	h := &access{ConfigFlags: genericclioptions.NewConfigFlags(true), scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, fleet.AddToScheme, clusterv1beta1.AddToScheme, placement.AddToScheme} {
		if err := add(h.scheme); err != nil {
			panic(err) // two types of one name: a mistake in this program
		}
	}
	return h
}

// client connects to the hub, of which it only knows the address afterwards.
func (h *access) client() (c client.WithWatch, server string, err error) {
	config, err := h.ToRESTConfig()
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	read, err := h.ToRawKubeConfigLoader().RawConfig()
	if err == nil && clientcmdapi.IsConfigEmpty(&read) && *h.APIServer == "" && config.BearerTokenFile == "" { // a Pod has the token of its account
		return nil, "", errors.New("no kubeconfig says where the hub is: name one with --kubeconfig, or in the variable KUBECONFIG")
	}
	config.QPS = -1 // the API server's own priority and fairness decides
	mapper, err := h.ToRESTMapper()
	if err != nil {
		return nil, "", fmt.Errorf("asking the hub at %s for its kinds: %w", config.Host, err)
	}
	c, err = client.NewWithWatch(config, client.Options{Scheme: h.scheme, Mapper: mapper})
	if err != nil {
		return nil, "", fmt.Errorf("connecting to the hub at %s: %w", config.Host, err)
	}
	return c, config.Host, nil
}

// gvkOf returns the kind of an object.
func (h *access) gvkOf(o runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(o, h.scheme)
}

// emptyOf returns an empty object of the kind of a list.
func (h *access) emptyOf(list client.ObjectList) (client.Object, error) {
	gvk, err := h.gvkOf(list)
	if err != nil {
		return nil, err
	}
	o, err := h.scheme.New(gvk.GroupVersion().WithKind(strings.TrimSuffix(gvk.Kind, "List")))
	if err != nil {
		return nil, err
	}
	return o.(client.Object), nil
}
