package bundle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
)

// maxNamed limits the namespaces named in the status of a mapping.
const maxNamed = 5

// mappings shows in BundleNamespaceMappings the opened namespaces and the missing consent. It
// decides nothing: the controller of Bundles checks the consent itself.
type mappings struct {
	client.Client
	clock  clock.PassiveClock
	config *settings.Controller
	// namespaces includes the workspaces of all mappings.
	namespaces *controller.Workspaces
}

func (m *mappings) register(mgr ctrl.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(controller.All(m.Client, &fleet.BundleNamespaceMappingList{}))
	return ctrl.NewControllerManagedBy(mgr).Named("bundlenamespacemapping").
		For(&fleet.BundleNamespaceMapping{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(m.namespaces.Source(controller.On(m.onNamespace))).
		WatchesRawSource(source.Channel(m.config.Subscribe(), all)).
		Complete(m)
}

// onNamespace enqueues the mappings for a created, deleted or changed namespace.
func (m *mappings) onNamespace(ctx context.Context, before, after *metav1.PartialObjectMetadata, q controller.Queue) {
	if before != nil && after != nil && !mattersToMappings(before, after) {
		return
	}
	for _, namespace := range []*metav1.PartialObjectMetadata{before, after} {
		if namespace != nil {
			enqueue(q, m.selecting(ctx, namespace))
		}
	}
}

// mattersToMappings reports whether a change of a namespace may open or close it.
func mattersToMappings(before, after *metav1.PartialObjectMetadata) bool {
	return !maps.Equal(before.Labels, after.Labels) ||
		before.Annotations[fleet.AnnotationBundlesFrom] != after.Annotations[fleet.AnnotationBundlesFrom]
}

// selecting returns requests for the mappings of a namespace.
func (m *mappings) selecting(ctx context.Context, namespace *metav1.PartialObjectMetadata) (requests []reconcile.Request) {
	var list fleet.BundleNamespaceMappingList
	if err := m.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the BundleNamespaceMappings")
	}
	for i := range list.Items {
		selector, err := metav1.LabelSelectorAsSelector(list.Items[i].NamespaceSelector)
		if err == nil && selector.Matches(labels.Set(namespace.Labels)) {
			requests = append(requests, controller.Requests(&list.Items[i])...)
		}
	}
	return requests
}

// Reconcile updates the status of a mapping.
func (m *mappings) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var mapping fleet.BundleNamespaceMapping
	if err := m.Get(ctx, request.NamespacedName, &mapping); err != nil || mapping.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var selected []metav1.PartialObjectMetadata
	problem := invalid(&mapping)
	if problem == nil {
		var err error
		if selected, err = selectedNamespaces(ctx, m.namespaces, &mapping); err != nil {
			return ctrl.Result{}, err
		}
	}
	after := mapping.DeepCopy()
	after.Status = describeMapping(&mapping, selected, problem, m.config.Current().Mappings, m.clock.Now())
	return ctrl.Result{}, client.IgnoreNotFound(kube.PatchStatus(ctx, m.Client, &mapping, after))
}

// describeMapping computes the status. No other function sets fields of it.
func describeMapping(
	mapping *fleet.BundleNamespaceMapping, selected []metav1.PartialObjectMetadata, problem error, settings settings.Mappings, now time.Time,
) fleet.BundleNamespaceMappingStatus {
	var closed []*metav1.PartialObjectMetadata
	open := 0
	for i := range selected {
		switch namespace := &selected[i]; {
		case namespace.Name == mapping.Namespace: // a Bundle needs no mapping for its own namespace
		case mayOpen(settings, mapping.Namespace, namespace):
			open++
		default:
			closed = append(closed, namespace)
		}
	}
	ready := kube.Condition(fleet.ConditionReady, true, reasons.Open, fmt.Sprintf("other namespaces that it opens: %d", open))
	switch {
	case problem != nil:
		ready = kube.Condition(fleet.ConditionReady, false, reasons.Invalid,
			problem.Error()+"; it opens nothing, and objects deployed in consenting namespaces stay")
	case len(closed) > 0:
		slices.SortFunc(closed, func(a, b *metav1.PartialObjectMetadata) int { return strings.Compare(a.Name, b.Name) })
		ready = kube.Condition(fleet.ConditionReady, false, reasons.ConsentMissing, explainConsent(mapping.Namespace, closed, settings))
	}
	return fleet.BundleNamespaceMappingStatus{Conditions: kube.SetCondition(slices.Clone(mapping.Status.Conditions), now, ready)}
}

// explainConsent explains how the closed namespaces of a mapping can consent. It does not reveal
// their consent to other namespaces.
func explainConsent(from string, closed []*metav1.PartialObjectMetadata, settings settings.Mappings) string {
	var names, unannotated, commands []string
	local := ""
	for _, namespace := range closed[:min(len(closed), maxNamed)] {
		names = append(names, namespace.Name)
		if settings.IsLocal(namespace.Name) && !settings.ToLocal {
			local = namespace.Name
		}
		switch {
		case consents(namespace, from):
		case namespace.Annotations[fleet.AnnotationBundlesFrom] == "":
			unannotated = append(unannotated, namespace.Name)
		default:
			commands = append(commands, fmt.Sprintf(
				`kubectl annotate --overwrite namespace %s %s="$(kubectl get namespace %[1]s -o 'jsonpath={.metadata.annotations.%[2]s}'),%[3]s"`,
				namespace.Name, fleet.AnnotationBundlesFrom, from))
		}
	}
	if len(unannotated) > 0 {
		commands = append(commands, fmt.Sprintf("kubectl annotate --overwrite namespace %s %s=%s",
			strings.Join(unannotated, " "), fleet.AnnotationBundlesFrom, from))
	}
	text := "no consent to Bundles of namespace " + from + " from namespace " + kube.JoinNames(names, len(closed))
	if len(commands) > 0 {
		text += "; an admin of these namespaces consents with: " + strings.Join(commands, "; ")
	}
	if local != "" {
		text += "; " + local + " is the workspace of the hub itself, which the chart fleet has to allow, too: helm upgrade with " +
			"--set bundleNamespaceMappingsToLocal=true"
	}
	return text
}
