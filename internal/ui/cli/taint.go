package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/ui/view"
)

func newTaint(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	c := &changer{IOStreams: streams, access: h}
	looked := lookedFor{"muster taint", kindsNamed("members")}
	return h.acceptAllNamespaces(&cobra.Command{
		Use:    "taint [clusters|memberclusters] NAME KEY[=VALUE]:NoSchedule|KEY-...",
		Hidden: true, // for lack of room on the page: the help of muster cordon names it
		Short:  "Set or remove taints of a member",
		Long: `Set taints of a member, or remove all taints of a key with KEY-. A Bundle or placement that
does not tolerate all taints gets nothing new there. Present deliveries stay, and are updated.

Tolerations are spec.targets[].tolerations of a Bundle, and spec.policy.tolerations of a
placement. Taints in the spec of a MemberCluster count, too. You need the verb taint on
clusters or memberclusters.`,
		Example: `  # Keep everything away that does not tolerate the taint
  muster taint clusters/web dedicated=gpu:NoSchedule

  # Remove the taint
  muster taint clusters/web dedicated-`,
		Args:              takes(2, 0, "the name of a member and a taint"),
		ValidArgsFunction: h.completeNames(looked),
		RunE: func(command *cobra.Command, args []string) error {
			subject, changes := tainted(args)
			o, hub, err := h.subject(command.Context(), looked, subject)
			if err != nil {
				return err
			}
			return c.taint(command.Context(), hub, o, changes)
		},
	})
}

// tainted splits the arguments into the member, a name or a kind and a name, and its taints.
func tainted(args []string) (subject, taints []string) {
	if _, isKind := kindOf(args[0]); isKind && !strings.Contains(args[1], ":") && !strings.HasSuffix(args[1], "-") {
		return args[:2], args[2:]
	}
	return args[:1], args[1:]
}

// taint writes the taints, unless another user changes the member meanwhile.
func (c *changer) taint(ctx context.Context, hub client.Client, o client.Object, changes []string) error {
	texts, err := taintedBy(o.GetAnnotations()[fleet.AnnotationTaints], changes)
	if err != nil {
		return usageError{err}
	}
	before := o.DeepCopyObject().(client.Object)
	annotations := metav1.ObjectMeta{Annotations: o.GetAnnotations()}
	if metav1.SetMetaDataAnnotation(&annotations, fleet.AnnotationTaints, strings.Join(texts, ",")); len(texts) == 0 {
		delete(annotations.Annotations, fleet.AnnotationTaints)
	}
	o.SetAnnotations(annotations.Annotations)
	err = hub.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%s has changed, and no taint is set: run the command again: %w", c.title(o), err)
	}
	if err != nil {
		return fmt.Errorf("changing %s: %w", c.title(o), err)
	}
	texts = nil
	for _, taint := range membership.Taints(o) {
		texts = append(texts, membership.TaintText(taint))
	}
	return c.line("%s has the taints %s", c.title(o), view.Or(strings.Join(texts, ", ")))
}

// taintedBy returns the taints of an annotation after some changes. A taint replaces another one of
// its key.
func taintedBy(annotation string, changes []string) (texts []string, err error) {
	taints := membership.Taints(&fleet.Cluster{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{fleet.AnnotationTaints: annotation},
	}})
	if len(changes) == 0 {
		return nil, fmt.Errorf("no taint given: use KEY=VALUE:%s to set one, or KEY- to remove one", membership.NoSchedule)
	}
	for _, text := range changes {
		key, removes := strings.CutSuffix(text, "-")
		taint := membership.ParseTaint(text)
		if !removes && membership.TaintText(taint) != text {
			return nil, fmt.Errorf("%s is not a taint: use KEY=VALUE:%s to set one, or KEY- to remove one; no other effect is supported",
				text, membership.NoSchedule)
		}
		if !removes {
			key = taint.Key
		}
		if key == membership.TaintLost().Key {
			return nil, fmt.Errorf("the hub sets the taint %s of a member without heartbeats, and removes it after the next one", key)
		}
		taints = slices.DeleteFunc(taints, func(t clusterv1beta1.Taint) bool { return t.Key == key })
		if !removes {
			taints = append(taints, taint)
		}
	}
	for _, taint := range taints {
		texts = append(texts, membership.TaintText(taint))
	}
	return texts, nil
}
