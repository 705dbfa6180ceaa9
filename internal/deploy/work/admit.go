package work

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// strategy is the apply strategy of a Work.
type strategy struct {
	// reports is set if the agent only reports differences and applies nothing.
	reports bool
	// full is set if fields missing from the manifest count as differences too.
	full bool
	// force takes fields from other managers.
	force        bool
	coOwned      bool
	ifNotDrifted bool
	takeOver     placement.WhenToTakeOver
	// merges is set if several entries of one key count as one, as in an apply on the client.
	merges bool
}

// strategyOf reads the strategy of a Work. A three-way merge on the client has the same effect as a
// forced apply on the server. Only an explicit ServerSideApply can be without force.
func strategyOf(given *placement.ApplyStrategy) strategy {
	if given == nil {
		return strategy{force: true, takeOver: placement.TakeOverAlways, merges: true}
	}
	return strategy{
		reports:      given.Type == placement.ApplyReportDiff,
		full:         given.ComparisonOption == placement.CompareFully,
		force:        given.Type != placement.ApplyServerSide || given.ServerSideApplyConfig != nil && given.ServerSideApplyConfig.ForceConflicts,
		coOwned:      given.AllowCoOwnership,
		ifNotDrifted: given.WhenToApply == placement.ApplyIfNotDrifted,
		takeOver:     given.WhenToTakeOver,
		merges:       given.Type != placement.ApplyServerSide,
	}
}

// admission decides whether and how a manifest may be applied to an existing object.
type admission struct {
	// refusal is the refused outcome; its reason is empty if the manifest may be applied.
	refusal outcome
	// compare is the reason of a refusal if the object differs from the manifest; empty if differences
	// do not matter.
	compare string
	// extras is the reason of a refusal if the object has fields beyond the manifest; empty if such
	// fields do not matter.
	extras string
	force  bool
	// conflict is the reason if other managers own fields of the manifest.
	conflict string
	// keep are the remaining owners among the agent's own fields.
	keep []metav1.OwnerReference
	// takesOver is set if the object holds data and existed before.
	takesOver bool
	// uid is the UID of the object if another Work hands it over; empty otherwise.
	uid types.UID
}

// owner is the AppliedWork of a manifest.
type owner struct {
	name string
	uid  types.UID
}

func (o owner) reference() metav1.OwnerReference {
	block := true
	return metav1.OwnerReference{
		APIVersion: placement.GroupVersion.String(), Kind: "AppliedWork", Name: o.name, UID: o.uid, BlockOwnerDeletion: &block,
	}
}

// admit decides whether a manifest may be applied to an existing object; nil if there is none. The
// map from has the other AppliedWorks with the object, and whether they hand it over.
func admit(m manifest, s strategy, self owner, existing *summary, from map[types.UID]giver) admission {
	refuse := func(reason, format string, args ...any) admission {
		return admission{refusal: outcome{reason: reason, message: fmt.Sprintf(format, args...)}}
	}
	admitted := admission{force: s.force, conflict: reasons.FieldConflict}
	if existing == nil {
		return admitted
	}
	if existing.deleting {
		return admission{refusal: deletion(existing)}
	}
	own, first := false, metav1.OwnerReference{}
	var other string
	for _, reference := range existing.owners {
		switch {
		case !isAppliedWork(reference):
			other = reference.Kind + " " + reference.Name
			continue
		case reference.Name == self.name:
			own = true
		case from[reference.UID] == giving:
			own, admitted.uid = true, existing.uid
			continue
		default:
			admitted.keep = append(admitted.keep, reference)
		}
		if first.Name == "" {
			first = reference
		}
	}
	own = own || existing.isOrphanOf(self.name)
	admitted.takesOver = existing.stays == takenOver || !own && first.Name == "" && applied.HoldsData(m.key.GroupKind)
	contested := first.Name != "" && first.Name != self.name
	switch {
	case contested && from[first.UID] == holding && !s.coOwned:
		return admission{
			refusal: waitsFor(reasons.AppliedByAnotherWork,
				"Work %s of the same placement still has it; this Work takes it over without deleting it", first.Name),
		}
	case contested && !s.coOwned:
		return refuse(reasons.AppliedByAnotherWork,
			"Work %s has applied it already: take it out of one of the two, or set applyStrategy.allowCoOwnership", first.Name)
	case contested && existing.hash != m.hash:
		return refuse(reasons.AppliedByAnotherWork, "Work %s has applied it already, and with other content: both must have the same content",
			first.Name)
	case !own && other != "" && !s.coOwned:
		return refuse(reasons.OwnedByOthers, "it is owned by %s: set applyStrategy.allowCoOwnership to apply it nevertheless", other)
	case !own && s.takeOver == placement.TakeOverNever:
		return refuse(reasons.NotTakenOver,
			"it was there before, and applyStrategy.whenToTakeOver is Never: delete it on the member, or allow that it is taken over")
	case !own && s.takeOver == placement.TakeOverIfNoDiff:
		admitted.compare = reasons.NotTakenOver
	case own && s.ifNotDrifted && existing.hash == m.hash:
		admitted.compare = reasons.Drifted
	case own && s.ifNotDrifted:
		admitted.force, admitted.conflict = false, reasons.Drifted
		if s.full {
			admitted.extras = reasons.Drifted
		}
	}
	return admitted
}

func deletion(is *summary) outcome {
	result := outcome{
		reason: reasons.BeingDeleted, message: "it is being deleted on the member and the agent creates it again when it is gone", waits: true,
	}
	if len(is.finalizers) > 0 {
		result.message = fmt.Sprintf("it is being deleted on the member and waits for finalizer %s: the agent creates it again when it is gone",
			is.finalizers[0])
	}
	return result
}
