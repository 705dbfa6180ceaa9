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

// A Job with ttlSecondsAfterFinished is deleted by Kubernetes when it has ended. It is not drift that
// such a Job is not there: it runs once per content of its manifest.

const (
	// annotationJobs of an AppliedWork has the runs of its Jobs, as JSON.
	annotationJobs = "muster/jobs"
	// maxOthers is how many runs of Jobs that are in the Work no more are kept: another Work of the
	// placement may list them now.
	maxOthers = 100
	// endedUnseen is the end of a Job that nobody saw.
	endedUnseen = "Unseen"
)

// run is what is known of the Job that a manifest has made.
type run struct {
	Hash string    `json:"hash"`
	UID  types.UID `json:"uid"`
	// Ended is Complete, Failed, or empty while nobody has seen the end.
	Ended string `json:"ended,omitempty"`
}

// over says how a Job that is not there has ended, and whether its manifest has had its run. Somebody
// deletes a Job before its end to have it run again; seen is the UID of the one that this agent saw.
func (r run) over(hash string, seen types.UID) (ended string, is bool) {
	switch {
	case r.UID == "" || r.Hash != hash, r.Ended == "" && r.UID == seen:
		return "", false
	case r.Ended == "":
		return endedUnseen, true
	}
	return r.Ended, true
}

// runsOf reads the runs that an AppliedWork has noted, by namespace and name of the Job. What is no JSON
// was written by somebody else, and says nothing.
func runsOf(appliedWork *placement.AppliedWork) map[string]run {
	noted := map[string]run{}
	if json.Unmarshal([]byte(appliedWork.Annotations[annotationJobs]), &noted) != nil {
		return map[string]run{}
	}
	return noted
}

// ran says how the Job of a manifest has ended that is not there and has had its run, also if another
// Work of the placement has run it; empty if it has not.
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

// note keeps in the AppliedWork which Jobs run and how they ended, if that is new.
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
