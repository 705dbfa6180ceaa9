package work

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
)

const (
	// annotationJobs is the annotation of an AppliedWork for the runs of its Jobs, as JSON.
	annotationJobs = "muster/jobs"
	// maxOthers is the maximum number of kept runs of Jobs no longer in the Work. Another Work of the
	// placement may list them now.
	maxOthers = 100
)

// runsOf reads the runs noted in an AppliedWork, by namespace and name of the Job. It ignores an
// annotation without valid JSON, because another client wrote it.
func runsOf(appliedWork *placement.AppliedWork) map[string]applied.Run {
	noted := map[string]applied.Run{}
	if json.Unmarshal([]byte(appliedWork.Annotations[annotationJobs]), &noted) != nil {
		return map[string]applied.Run{}
	}
	return noted
}

// ran returns the ended run of a missing Job, or an empty run. Another Work of the placement may
// have run the Job.
func (c *Controller) ran(ctx context.Context, p *pass, m manifest) (applied.Run, error) {
	if !applied.IsJob(m.key.GroupKind) {
		return applied.Run{}, nil
	}
	name, seen, passes := m.key.NamespacedName.String(), p.attempts[m.key].as.uid, applied.Passes(m.object())
	if of := p.ended[m.key]; of.UID != "" && of.UID == p.runs[name].UID {
		p.runs[name] = of // it ended and went between two passes
	}
	if ended, is := p.runs[name].Over(m.hash, passes, seen); is {
		return p.runs[name].End(ended, p.runs[name].Why), nil
	}
	siblings, err := c.siblings(ctx, p.work)
	if err != nil {
		return applied.Run{}, err
	}
	for _, sibling := range siblings {
		appliedWork, err := c.getAppliedWork(ctx, c.member, sibling.Name)
		if err != nil {
			return applied.Run{}, err
		}
		if appliedWork == nil || !appliedFor(appliedWork, c.Namespace, c.Membership) {
			continue
		}
		one := runsOf(appliedWork)[name]
		if ended, is := one.Over(m.hash, passes, seen); is {
			p.runs[name] = one
			return one.End(ended, one.Why), nil
		}
	}
	return applied.Run{}, nil
}

// note stores the runs of Jobs and their ends in the AppliedWork, if they changed.
func (c *Controller) note(ctx context.Context, p *pass, appliedWork *placement.AppliedWork) error {
	mine := map[string]bool{}
	for _, m := range p.manifests {
		if !applied.IsJob(m.key.GroupKind) {
			continue
		}
		name, job := m.key.NamespacedName.String(), p.manifestStatus[m.ordinal].summary
		mine[name] = true
		if job.uid != "" && job.uid != p.runs[name].UID {
			p.runs[name] = applied.Run{Hash: job.hash, UID: job.uid}
		}
		if job.ended != "" && job.uid == p.runs[name].UID {
			p.runs[name] = p.runs[name].End(job.ended, job.readiness.Message)
		}
		if seen := p.ended[m.key]; seen.UID != "" && seen.UID == p.runs[name].UID {
			p.runs[name] = seen
		}
	}
	others := 0
	for _, name := range slices.Sorted(maps.Keys(p.runs)) {
		if mine[name] {
			continue
		}
		if others++; others > maxOthers {
			delete(p.runs, name)
		}
	}
	if maps.Equal(p.runs, runsOf(appliedWork)) {
		return nil
	}
	text, err := json.Marshal(p.runs)
	if err != nil {
		return fmt.Errorf("encoding the Jobs of Work %s: %w", p.work.Name, err)
	}
	before := appliedWork.DeepCopy()
	metav1.SetMetaDataAnnotation(&appliedWork.ObjectMeta, annotationJobs, string(text))
	if err := c.member.Patch(ctx, appliedWork, changesOf(before), client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("noting in AppliedWork %s which Jobs have run: %w", appliedWork.Name, err)
	}
	c.expected.Expect(client.ObjectKeyFromObject(appliedWork), appliedWork)
	return nil
}
