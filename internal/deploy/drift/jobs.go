package drift

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/readiness"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

const (
	// maxEnds limits the ended Jobs between two observations.
	maxEnds = 1000
	// maxOthers limits the runs kept for Jobs from earlier revisions of the release.
	maxOthers = 100
)

// jobs are the Jobs of a release.
type jobs struct {
	manifests map[Key]jobManifest
	// runs has the runs by namespace and name; seen has the UIDs of the Jobs from this deployer's
	// watch.
	runs map[string]applied.Run
	seen map[Key]types.UID
}

// jobManifest is the kept part of the manifest of a Job.
type jobManifest struct {
	hash   string
	passes bool
}

// newJobs returns the Jobs of a release, with the runs in its note.
func newJobs(s release.Summary) jobs {
	return jobs{manifests: map[Key]jobManifest{}, runs: release.RunsOf(s.Jobs), seen: map[Key]types.UID{}}
}

// add notes the manifest of a Job, and ignores other objects.
func (j jobs) add(key Key, manifest *unstructured.Unstructured) {
	if applied.IsJob(key.Kind.GroupKind()) {
		j.manifests[key] = jobManifest{release.JobHash(manifest), applied.Passes(manifest)}
	}
}

// over returns the run of a missing Job, and whether it has ended.
func (j jobs) over(key Key) (applied.Run, bool) {
	manifest, listed := j.manifests[key]
	if !listed {
		return applied.Run{}, false
	}
	run := j.runs[key.name().String()]
	ended, over := run.Over(manifest.hash, manifest.passes, j.seen[key])
	if !over && run.UID == "" && manifest.passes && j.seen[key] == "" {
		// The note was lost, or an earlier version deployed the Job.
		ended, over = applied.JobUnseen, true
	}
	return run.End(ended, run.Why), over
}

// observe updates the runs from the watched Jobs.
func (j jobs) observe(d *Detector, watched map[Key]summary) {
	for key, manifest := range j.manifests {
		name := key.name().String()
		job, found := watched[key]
		if found {
			if j.runs[name].UID != job.uid {
				j.runs[name] = applied.Run{Hash: manifest.hash, UID: job.uid}
			}
			j.seen[key] = job.uid
		} else {
			job = d.takeEnd(key.Object())
		}
		run := j.runs[name]
		if !found && job.ended != "" && run.UID != job.uid && manifest.passes {
			run = applied.Run{Hash: manifest.hash, UID: job.uid} // created, ended and deleted between two events
		}
		if job.ended != "" && job.uid == run.UID {
			j.runs[name] = run.End(job.ended, job.readiness.Message)
		}
	}
}

// Runs returns the note of the runs of the Jobs, and whether the note of the release lacks some.
func (s *Set) Runs() (note string, more bool) {
	s.jobs.forgetOthers()
	if len(s.jobs.runs) == 0 || maps.Equal(s.jobs.runs, release.RunsOf(s.release.Jobs)) {
		return s.release.Jobs, false
	}
	text, err := json.Marshal(s.jobs.runs)
	if err != nil {
		return s.release.Jobs, false // impossible: they are texts
	}
	return string(text), true
}

// forgetOthers bounds the number of runs kept for Jobs from earlier revisions.
func (j jobs) forgetOthers() {
	mine, others := map[string]bool{}, 0
	for key := range j.manifests {
		mine[key.name().String()] = true
	}
	for _, name := range slices.Sorted(maps.Keys(j.runs)) {
		if mine[name] {
			continue
		}
		if others++; others > maxOthers {
			delete(j.runs, name)
		}
	}
}

// SetRuns stores the current note of the release.
func (s *Set) SetRuns(note string) { s.release.Jobs = note }

// keepEnd keeps the end of a Job until the next observation: Kubernetes may delete the Job before.
func (d *Detector) keepEnd(object applied.Query, is *summary) {
	if is == nil || is.ended == "" {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ends == nil || len(d.ends) >= maxEnds {
		d.ends = map[applied.Query]summary{}
	}
	d.ends[object] = *is
}

// takeEnd returns the kept end of a missing Job.
func (d *Detector) takeEnd(object applied.Query) summary {
	d.mu.Lock()
	defer d.mu.Unlock()
	is := d.ends[object]
	delete(d.ends, object)
	return is
}

// countPassed handles an object that may be missing: it counts a failed Job as not ready, and
// others not at all.
func (o *Observation) countPassed(s *Set, key Key) {
	run, over := s.jobs.over(key)
	if !over || run.Ended != applied.JobFailed {
		o.Counts.DesiredReady--
		return
	}
	o.countNotReady(key, summary{uid: run.UID, readiness: readiness.Result{State: readiness.Failed, Message: run.Failure()}})
}

// noteSuspended names a ready object with a readiness message: its manifest suspends it.
func (o *Observation) noteSuspended(key Key, is readiness.Result) {
	if is.State == readiness.Ready && is.Message != "" && len(o.Suspended) < maxNamed {
		o.Suspended = append(o.Suspended, fmt.Sprintf("%s is %s", key, is.Message))
	}
}
