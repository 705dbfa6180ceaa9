package placement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/author"
	"github.com/muster-fleet/muster/internal/fleet/updaterun"
	"github.com/muster-fleet/muster/internal/hub/placement/authorization"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
	"github.com/muster-fleet/muster/internal/hub/placement/staged"
)

// staging is the data of a placement rolled out by staged update runs.
type staging struct {
	// hash identifies the selection, regardless of its division among Works.
	hash string
	// versions are the stored versions, the latest last. No other version is stored before
	// recordAt.
	versions []version
	recordAt time.Time
	// tooLarge is the reason why the selection cannot be stored as a version.
	tooLarge string
	// selected is the current selection; the resources are the target's.
	selected selection.Resources
	// target is the version of the last started run, or nil. targetProblem is the reason why it cannot
	// be delivered: it is no longer stored, or the author may not read it.
	target        *version
	targetProblem string
}

// runDecision is the next step of a run.
type runDecision struct {
	run genericRun
	staged.Decision
}

// isStaged reports whether staged update runs roll a placement out.
func isStaged(spec *placement.PlacementSpec) bool {
	return spec.Strategy.Type == placement.RolloutExternal
}

// observeStaging reads the versions of a placement rolled out by runs, and replaces the selection
// by the version for the members.
func (c *Controller) observeStaging(ctx context.Context, s genericPlacement, o *observed) error {
	o.staging = &staging{selected: o.resources, recordAt: c.memory.nextVersion(s.key)}
	var err error
	if o.parts, err = pack(o.resources.Objects, nil, maxManifests, true); err != nil {
		return err
	}
	o.staging.hash = hashParts(o.parts)
	c.requireCauses(ctx, s, o)
	o.staging.tooLarge = c.memory.tooLarge(s.key, o.staging.hash)
	if o.staging.versions, err = c.versions(ctx, s); err != nil {
		return err
	}
	run := latest(o.runs)
	if run == nil {
		return nil
	}
	index := run.status.ResourceSnapshotIndexUsed
	i := slices.IndexFunc(o.staging.versions, func(v version) bool { return v.String() == index })
	if i < 0 {
		o.staging.targetProblem = fmt.Sprintf("version %s is not kept any more", index)
		return nil
	}
	target := o.staging.versions[i]
	o.staging.target = &target
	if target.hash == o.staging.hash {
		return nil
	}
	resources, err := c.loadVersion(ctx, s, target)
	var unusable unusableError
	if errors.As(err, &unusable) {
		o.staging.target, o.staging.targetProblem = nil, unusable.Error()
		return nil
	} else if err != nil {
		return err
	}
	resources.Withheld = o.resources.Withheld // the status reports it for the selection
	o.resources = resources
	return c.reviewVersion(ctx, s, o)
}

// reviewVersion checks that the author of a placement may still read the objects of a version.
// Objects from envelopes were reviewed when the version was stored.
func (c *Controller) reviewVersion(ctx context.Context, s genericPlacement, o *observed) error {
	if !readsAsAuthor(c.Config.Current().PlacementAuthorRights, s) || o.rightsProblem != (condition{}) {
		return nil
	}
	writer, _ := author.Of(s.GetAnnotations())
	for _, r := range o.resources.Objects {
		gvk := r.GroupVersionKind()
		id := placement.ResourceIdentifier{
			Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: r.GetNamespace(), Name: r.GetName(),
		}
		if _, isWrapped := o.resources.Envelopes[id]; isWrapped {
			continue
		}
		resource, err := c.selector.ResourceOf(gvk)
		if err != nil {
			return err
		}
		right := authorization.Right{Resource: resource, Namespace: r.GetNamespace()}
		allowed, err := c.reviewer.Allows(ctx, writer, right)
		if err == nil && !allowed {
			right.Name = r.GetName()
			allowed, err = c.reviewer.Allows(ctx, writer, right)
		}
		var unanswered *authorization.UnansweredError
		switch {
		case errors.As(err, &unanswered):
			o.rightsErr, o.staging.targetProblem = err, err.Error()
			return nil
		case err != nil:
			return err
		case !allowed:
			o.staging.targetProblem = fmt.Sprintf("version %s has %s, and %s, who last changed the spec, may not %s: "+
				"grant that, or let a user change the spec who may", o.staging.target, nameOf(id), writer.Name, right)
			return nil
		}
	}
	return nil
}

// newest returns the version of the current selection. Its index is the next one if it is not
// stored.
func (o observed) newest() (v version, recorded bool) {
	s := o.staging
	if n := len(s.versions); n > 0 {
		if last := s.versions[n-1]; last.hash == s.hash {
			return last, true
		}
		return version{index: s.versions[n-1].index + 1, hash: s.hash}, false
	}
	index := 0
	if last, err := strconv.Atoi(o.before.ObservedResourceIndex); err == nil { // the hub rolled it out itself until now
		index = last
		if o.before.ResourceHash != s.hash {
			index++
		}
	}
	return version{index: index, hash: s.hash}, false
}

// usedVersions returns the versions of unfinished runs, and of the last started run.
func usedVersions(runs []observedRun) map[string]bool {
	used := map[string]bool{}
	last := latest(runs)
	for _, r := range runs {
		if !updaterun.Ended(*r.status) || last != nil && last.GetUID() == r.GetUID() {
			used[cmp.Or(r.status.ResourceSnapshotIndexUsed, r.spec.ResourceSnapshotIndex)] = true
		}
	}
	return used
}

// commonIndex returns the version of all picked members; empty if they have several, or none.
func (o observed) commonIndex(d decision) string {
	index := ""
	for i, picked := range d.result.Picked() {
		current := o.current[picked.Member.Namespace]
		if current == nil {
			return ""
		}
		has := current.works[0].Labels[placement.LabelResourceIndex]
		if i > 0 && has != index {
			return ""
		}
		index = has
	}
	return index
}

// listVersions returns the versions for the status.
func (o observed) listVersions() (all []string) {
	if o.staging != nil {
		for _, v := range o.staging.versions {
			all = append(all, v.String())
		}
	}
	return all
}
