package work

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
)

// Kubernetes deletes a Job with ttlSecondsAfterFinished after its end. The missing Job is no drift:
// it runs once per content of its manifest.

const (
	// annotationJobs is the annotation of an AppliedWork for the runs of its Jobs, as JSON.
	annotationJobs = "muster/jobs"
	// maxOthers is the maximum number of kept runs of Jobs no longer in the Work. Another Work of the
	// placement may list them now.
	maxOthers = 100
	// endedUnseen is the end of a Job that the agent did not see.
	endedUnseen = "Unseen"
)

// run is the known run of the Job of a manifest.
type run struct {
	Hash string    `json:"hash"`
	UID  types.UID `json:"uid"`
	// Ended is Complete, Failed, or empty until the agent has seen the end.
	Ended string `json:"ended,omitempty"`
}

// over returns the end of a missing Job, and whether its manifest has had its run. A user can
// delete a Job before its end to run it again; seen is the UID of the Job that this agent saw.
func (r run) over(hash string, seen types.UID) (ended string, is bool) {
	switch {
	case r.UID == "" || r.Hash != hash, r.Ended == "" && r.UID == seen:
		return "", false
	case r.Ended == "":
		return endedUnseen, true
	}
	return r.Ended, true
}

// runsOf reads the runs noted in an AppliedWork, by namespace and name of the Job. It ignores an
// annotation without valid JSON, because another client wrote it.
func runsOf(appliedWork *placement.AppliedWork) map[string]run {
	noted := map[string]run{}
	if json.Unmarshal([]byte(appliedWork.Annotations[annotationJobs]), &noted) != nil {
		return map[string]run{}
	}
	return noted
}

// ran returns the end of a missing Job after its run, also if another Work of the placement ran it;
// empty without a run.
func (c *Controller) ran(ctx context.Context, p *pass, m manifest) (string, error) {
	if !applied.IsJob(m.key.GroupKind) {
		return "", nil
	}
	name, seen := m.key.NamespacedName.String(), p.attempts[m.key].as.uid
	if ended, is := p.runs[name].over(m.hash, seen); is {
		return ended, nil
	}
	siblings, err := c.siblings(ctx, p.work)
	if err != nil {
		return "", err
	}
	for _, sibling := range siblings {
		appliedWork, err := c.getAppliedWork(ctx, c.member, sibling.Name)
		if err != nil {
			return "", err
		}
		if appliedWork == nil || !appliedFor(appliedWork, c.Namespace, c.Membership) {
			continue
		}
		one := runsOf(appliedWork)[name]
		if ended, is := one.over(m.hash, seen); is {
			p.runs[name] = one
			return ended, nil
		}
	}
	return "", nil
}

// note stores the runs of Jobs and their ends in the AppliedWork, if they changed.
func (c *Controller) note(ctx context.Context, p *pass, appliedWork *placement.AppliedWork) error {
	mine := map[string]bool{}
	for _, m := range p.manifests {
		if !applied.IsJob(m.key.GroupKind) {
			continue
		}
		name, is := m.key.NamespacedName.String(), p.manifestStatus[m.ordinal].summary
		mine[name] = true
		if is.passes && is.uid != p.runs[name].UID {
			p.runs[name] = run{Hash: is.hash, UID: is.uid}
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
