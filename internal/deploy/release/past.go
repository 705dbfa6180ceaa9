package release

import (
	"fmt"
	"slices"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
)

// past is the state of a release before its deployment.
type past struct {
	// last is the newest deployed revision; nil if there is none.
	last *helm.Release
	// fresh is set if the release must be installed: no revision was deployed, or the newest is
	// uninstalled.
	fresh bool
	// failed is the number of failed revisions, newest the number of the newest revision.
	failed, newest int
	// former is the name on the objects of a renamed release until its next deployment.
	former string
	// cutOff are the newest revisions if a deployer ended during their deployment, the newest first.
	cutOff []*helm.Release
	// unmarked are hooks with objects without marks of the release.
	unmarked []*helm.Hook
}

// revision returns the revision number for the templates. After interrupted attempts it is the
// number of the first one, because a hook may have the number in its name.
func (p past) revision(r Request) int {
	switch attempts := p.attempts(r); {
	case p.fresh:
		return 1 // as with Helm
	case len(attempts) > 0:
		return attempts[len(attempts)-1].Version
	}
	return p.newest + 1
}

// Descriptions of revisions pending at the start of a deployer.
const (
	cutOffDeployment = "cut off: the deployer ended before it did; taken up again"
	cutOffRemoval    = "cut off: the deployer ended while it removed the release, or rolled it back"
)

// namesOf returns the release and its ID before a renaming.
func (p past) namesOf(release ID) []ID {
	if p.former == "" {
		return []ID{release}
	}
	return []ID{release, {Namespace: release.Namespace, Name: p.former}}
}

// recoverHistory marks pending revisions as failed, to let Helm continue.
func recoverHistory(configuration *action.Configuration, name string) (past, error) {
	history, err := revisions(configuration, name)
	if err != nil || len(history) == 0 {
		return past{fresh: true}, err
	}
	p := past{fresh: uninstalled(history), unmarked: ranUnmarked(history)}
	for _, revision := range history {
		if name := revision.Labels[labelRenamed]; name != "" {
			p.former = name
		} else if revision.Info.Status == common.StatusDeployed || revision.Info.Status == common.StatusSuperseded {
			p.former = ""
		}
		wasCutOff := false
		p.newest = revision.Version
		switch status := revision.Info.Status; {
		case status == common.StatusDeployed, status == common.StatusSuperseded:
			p.last = revision
		case status.IsPending(), status == common.StatusUninstalling:
			p.failed++
			description := cutOffRemoval
			if wasCutOff = status == common.StatusPendingInstall || status == common.StatusPendingUpgrade; wasCutOff {
				description = cutOffDeployment
			}
			revision.SetStatus(common.StatusFailed, description)
			if err := configuration.Releases.Update(revision); err != nil {
				return past{}, fmt.Errorf("marking revision %d of release %s as cut off: %w", revision.Version, name, err)
			}
		case status == common.StatusFailed:
			p.failed++
			wasCutOff = revision.Info.Description == cutOffDeployment
		}
		if p.cutOff = slices.Insert(p.cutOff, 0, revision); !wasCutOff {
			p.cutOff = nil
		}
	}
	p.fresh = p.fresh || p.last == nil
	return p, nil
}
