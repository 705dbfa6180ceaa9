package access

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/kubeconfig"
)

// action is the next step for the Secret of a member for a tool.
//
//	         consent, listed workspace, valid kubeconfig
//	(none) ──────────────────────────────────────────────► apply ◄──► keep
//	   ▲                                                     │      faulty kubeconfig
//	   └─── remove ◄─── no consent, setting or member ───────┘
//
// The hub keeps the Secret while the kubeconfig is faulty. Without the Secret, Argo CD deletes the
// Applications of the cluster. A fault is no reason for this.
type action string

const (
	apply  action = "Apply"
	keep   action = "Keep"
	remove action = "Remove"
)

// member holds the inputs of the decisions about all tools.
type member struct {
	key types.NamespacedName
	// record is nil if no tool may reach the member.
	record client.Object
	// source names the kubeconfig Secret; empty if the member has none. found: the Secret exists, and
	// the member may use it.
	source types.NamespacedName
	found  bool
	// consent lists the tools with permission from the owner of the Secret.
	consent    []string
	kubeconfig kubeconfig.Kubeconfig
	// problem is the fault of the kubeconfig; empty if a tool can use it.
	problem string
	// present are the hub's Secrets for this member.
	present []metav1.PartialObjectMetadata
}

// observed holds the inputs of a decision about one tool.
type observed struct {
	member
	tool tool
	// listed: the settings list the workspace.
	listed bool
	// target is the fault of the namespace.
	target string
	// rival: another member gave the tool the same API server earlier.
	rival bool
}

// decision is the next step, and the problem for an Event.
type decision struct {
	action          action
	reason, message string
}

// wanted reports whether the owner of the kubeconfig lets the tool use it, and the tool is on.
func (o observed) wanted() bool {
	return o.record != nil && o.tool.namespace != "" && o.found && slices.Contains(o.consent, o.tool.name)
}

// decide is total and depends only on its arguments.
func decide(o observed) decision {
	withheld := func(do action, message string) decision {
		return decision{do, reasons.AccessWithheld, o.tool.title + " does not get the kubeconfig of this member: " + message}
	}
	switch {
	case !o.wanted() && o.namesMissing():
		return withheld(remove, fmt.Sprintf("Secret %s of the annotation %s does not exist: create it, or remove the annotation",
			o.source, fleet.AnnotationAccessSecret))
	case !o.wanted():
		return decision{action: remove}
	case !o.listed:
		return withheld(remove, fmt.Sprintf("the value access.workspaces of the chart fleet does not list %s", o.key.Namespace))
	case o.target != "":
		return withheld(remove, o.target)
	case o.problem != "":
		return withheld(keep, o.problem)
	case o.rival:
		return withheld(remove, "another member gave it the same API server earlier; remove one of the two members, or the consent of one")
	}
	return decision{action: apply}
}

// namesMissing reports whether the member names a missing Secret in its annotation. The condition
// Imported shows a missing kubeConfigSecret.
func (o observed) namesMissing() bool {
	return o.record != nil && o.tool.namespace != "" && o.source.Name != "" && !o.found &&
		o.record.GetAnnotations()[fleet.AnnotationAccessSecret] != ""
}

// secrets returns the hub's Secrets for the tool: the one at its place, nil if there is none, and
// Secrets at places of earlier settings.
func (o observed) secrets() (current *metav1.PartialObjectMetadata, strays []client.Object) {
	for i := range o.present {
		secret := &o.present[i]
		switch {
		case secret.Labels[fleet.LabelAccess] != o.tool.name:
		case secret.Namespace == o.tool.namespace && secret.Name == o.tool.secretName(o.key):
			current = secret
		default:
			strays = append(strays, secret)
		}
	}
	return current, strays
}
