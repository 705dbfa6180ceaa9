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

// annotationCorrection is the annotation of a revision that only notes a failed correction of
// drift.
const annotationCorrection = "muster/failed-correction"

// RecordFailedCorrection adds a failed revision to the history of a release, as after a failed
// rollback, so that users see the attempt. The release stays at its revision.
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
	is, known := entry.(*helm.Release)
	last, knownLast := newest.(*helm.Release)
	if !known || !knownLast {
		return wrap(fmt.Errorf("it is of an unknown version: %T", entry))
	}
	failed, info := *is, *is.Info
	failed.Info, failed.Version = &info, last.Version+1
	failed.Chart = withCorrectionNote(is.Chart)
	failed.SetStatus(common.StatusFailed, "Correction of drift failed: "+why.Error())
	if err := releases.Create(&failed); err != nil {
		return wrap(err)
	}
	return nil
}

// withCorrectionNote returns a chart with the annotation of a correction.
func withCorrectionNote(of *chart.Chart) *chart.Chart {
	metadata := *of.Metadata
	metadata.Annotations = maps.Clone(metadata.Annotations)
	if metadata.Annotations == nil {
		metadata.Annotations = map[string]string{}
	}
	metadata.Annotations[annotationCorrection] = "true"
	made := &chart.Chart{}
	*made = *of
	made.Metadata = &metadata
	return made
}

// isCorrectionNote reports whether a revision only notes a correction and is no state of the
// release.
func (s stored) isCorrectionNote() bool {
	return s.Info.Status == common.StatusFailed && s.Chart.Metadata.Annotations[annotationCorrection] != ""
}
