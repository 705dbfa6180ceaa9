package release

import (
	"context"
	"fmt"
	"maps"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// annotationCorrection is the annotation of a revision with nothing but the note of a failed
// correction of drift.
const annotationCorrection = "muster/failed-correction"

// RecordFailedCorrection adds a failed revision to the history of a release, as after a failed
// rollback. Users then see the attempt. The release stays at its revision.
func (c *Cluster) RecordFailedCorrection(ctx context.Context, s Summary, options fleet.BundleDeploymentOptions, why error) error {
	free, err := c.reserve(ctx, s.ID(), s.History, Owner{Bundle: s.Bundle, Workspace: s.Workspace})
	if err != nil {
		return err
	}
	defer free()
	wrap := func(err error) error {
		return fmt.Errorf("recording a correction that failed in the history of release %s: %w", s, err)
	}
	releases := c.configuration(c, s.Namespace, s.History, Request{Options: options}.maxHistory()).Releases
	entry, err := releases.Get(s.Name, s.Version)
	if err != nil {
		return wrap(err)
	}
	newest, err := releases.Last(s.Name)
	if err != nil {
		return wrap(err)
	}
	current, isRelease := entry.(*helm.Release)
	last, isLastRelease := newest.(*helm.Release)
	if !isRelease || !isLastRelease {
		return wrap(fmt.Errorf("it is of an unknown version: %T", entry))
	}
	failed, info := *current, *current.Info
	failed.Info, failed.Version = &info, last.Version+1
	failed.Chart = withCorrectionNote(current.Chart)
	failed.SetStatus(common.StatusFailed, "Correction of drift failed: "+why.Error())
	if err := releases.Create(&failed); err != nil {
		return wrap(err)
	}
	return nil
}

// withCorrectionNote returns a chart with the annotation of a correction.
func withCorrectionNote(original *chart.Chart) *chart.Chart {
	metadata := *original.Metadata
	metadata.Annotations = maps.Clone(metadata.Annotations)
	if metadata.Annotations == nil {
		metadata.Annotations = map[string]string{}
	}
	metadata.Annotations[annotationCorrection] = "true"
	noted := &chart.Chart{}
	*noted = *original
	noted.Metadata = &metadata
	return noted
}

// isCorrectionNote reports whether a revision only notes a correction and is no state of the
// release.
func (s stored) isCorrectionNote() bool {
	return s.Info.Status == common.StatusFailed && s.Chart.Metadata.Annotations[annotationCorrection] != ""
}
