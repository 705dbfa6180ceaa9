package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// completeWithin bounds the time of a completion.
const completeWithin = 3 * time.Second

// answersSoon bounds each request of a completion, also discovery, without a context. Call it
// before the first request.
func (h *access) answersSoon() { *h.Timeout = completeWithin.String() }

// complete completes the kind, and then the names.
func (g *get) complete(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return kindNames(), cobra.ShellCompDirectiveNoFileComp
	}
	shown, known := kindOf(args[0])
	if !known {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	g.answersSoon()
	names, err := g.names(command.Context(), client.InNamespace(*g.Namespace), shown.lists(*g.Namespace)...)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args[1:], name) }), cobra.ShellCompDirectiveNoFileComp
}

// namespaces completes the names of namespaces.
func (h *access) namespaces(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	namespaces := &metav1.PartialObjectMetadataList{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	h.answersSoon()
	names, err := h.names(command.Context(), "", namespaces)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// names returns the names of all objects of some kinds. It skips kinds without permission or
// support.
func (h *access) names(ctx context.Context, namespace client.InNamespace, lists ...client.ObjectList) ([]string, error) {
	return h.namesOfThose(ctx, func(client.Object) bool { return true }, namespace, lists...)
}

// namesOfThose returns the names of selected objects.
func (h *access) namesOfThose(ctx context.Context, these func(client.Object) bool, namespace client.InNamespace,
	lists ...client.ObjectList) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	hub, _, err := h.client()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, list := range lists {
		err := view.Each(ctx, hub, list, func(o client.Object) {
			if these(o) {
				names = append(names, view.NameOf(o))
			}
		}, namespace)
		if err != nil && !apierrors.IsForbidden(err) && !kube.NotServed(err) {
			return nil, err
		}
	}
	return names, nil
}

// contexts completes the names of contexts.
func (h *access) contexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	config, err := h.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for name := range config.Contexts {
		names = append(names, name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
