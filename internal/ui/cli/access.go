package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/nearest"
)

// defaultWorkspace is the workspace of new Clusters without --namespace.
const defaultWorkspace = "clusters"

// access reaches a cluster by kubectl's flags and the kubeconfig.
type access struct {
	*genericclioptions.ConfigFlags
	scheme *runtime.Scheme
	// role names the cluster in messages: the hub, or a cluster.
	role string
	// color is the flag --color.
	color string
	// quiet is the flag --quiet.
	quiet bool
}

// newAccess returns access to the hub.
func newAccess() *access {
	h := &access{ConfigFlags: genericclioptions.NewConfigFlags(true), scheme: runtime.NewScheme(), role: "the hub"}
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, apiextensionsv1.AddToScheme, appsv1.AddToScheme, authorizationv1.AddToScheme,
		coordinationv1.AddToScheme, corev1.AddToScheme,
		fleet.AddToScheme, clusterv1beta1.AddToScheme, placement.AddToScheme,
	} {
		if err := add(h.scheme); err != nil {
			panic(err) // two types with one name: a mistake in this program
		}
	}
	return h
}

// in returns access to the cluster of another context in the same kubeconfig.
func (h *access) in(context, role string) *access {
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.CacheDir, flags.Timeout, flags.Context = h.KubeConfig, h.CacheDir, h.Timeout, &context
	return &access{ConfigFlags: flags, scheme: h.scheme, role: role, quiet: h.quiet}
}

// within returns access to a namespace of the same cluster.
func (h *access) within(namespace string) *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true)
	flags.CacheDir, flags.KubeConfig, flags.Context, flags.ClusterName, flags.AuthInfoName = h.CacheDir, h.KubeConfig, h.Context,
		h.ClusterName, h.AuthInfoName
	flags.APIServer, flags.TLSServerName, flags.Insecure, flags.CAFile = h.APIServer, h.TLSServerName, h.Insecure, h.CAFile
	flags.BearerToken, flags.CertFile, flags.KeyFile = h.BearerToken, h.CertFile, h.KeyFile
	flags.Impersonate, flags.ImpersonateUID, flags.ImpersonateGroup = h.Impersonate, h.ImpersonateUID, h.ImpersonateGroup
	flags.Timeout, flags.DisableCompression, flags.Namespace = h.Timeout, h.DisableCompression, &namespace
	return flags
}

// client connects to the cluster, and returns its address.
func (h *access) client() (c client.WithWatch, server string, err error) {
	config, err := h.ToRESTConfig()
	if err != nil {
		return nil, "", h.explainConfig(err)
	}
	read, err := h.ToRawKubeConfigLoader().RawConfig()
	// a Pod has the token of its ServiceAccount
	if err == nil && clientcmdapi.IsConfigEmpty(&read) && *h.APIServer == "" && config.BearerTokenFile == "" {
		return nil, "", fmt.Errorf("there is no kubeconfig for %s: set --kubeconfig, or the variable KUBECONFIG", h.role)
	}
	config.QPS = -1 // the API server limits requests by priority and fairness
	mapper, err := h.ToRESTMapper()
	if err != nil {
		return nil, "", fmt.Errorf("reading the kinds of %s at %s: %w", h.role, config.Host, err)
	}
	c, err = client.NewWithWatch(config, client.Options{Scheme: h.scheme, Mapper: mapper})
	if err != nil {
		return nil, "", fmt.Errorf("connecting to %s at %s: %w", h.role, config.Host, err)
	}
	return c, config.Host, nil
}

// workspace returns the workspace of new Clusters.
func (h *access) workspace() string { return cmp.Or(*h.Namespace, defaultWorkspace) }

// contextName returns the context of the cluster.
func (h *access) contextName() string {
	if *h.Context != "" {
		return *h.Context
	}
	if read, err := h.ToRawKubeConfigLoader().RawConfig(); err == nil && read.CurrentContext != "" {
		return read.CurrentContext
	}
	return "CONTEXT"
}

// explainConfig returns the problem of a kubeconfig, or of the requested context.
func (h *access) explainConfig(err error) error {
	read, unread := h.ToRawKubeConfigLoader().RawConfig()
	if _, known := read.Contexts[*h.Context]; unread != nil || known || *h.Context == "" {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	names := slices.Sorted(maps.Keys(read.Contexts))
	if len(names) == 0 {
		return errors.New("the kubeconfig has no contexts: set another --kubeconfig, or the variable KUBECONFIG")
	}
	return fmt.Errorf("the kubeconfig has no context %s%s; it has %s", *h.Context, nearest.Question(*h.Context, names),
		strings.Join(names, ", "))
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
