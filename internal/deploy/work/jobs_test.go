package work

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
)

// migrates returns a Job that Kubernetes deletes when it has ended. The cluster runs no Pods.
func migrates(command string) string {
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: migrate, namespace: fleet-member-NAME},
		spec: {ttlSecondsAfterFinished: 60, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, command: [%s]}]}}}}`,
		command)
}

// job returns the Job migrate; its UID is empty if there is none.
func (r *rig) job() *batchv1.Job {
	r.t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "migrate"}}
	if err := r.Get(context.Background(), client.ObjectKeyFromObject(job), job); err != nil && !apierrors.IsNotFound(err) {
		r.t.Fatal(err)
	}
	return job
}

func (r *rig) untilJob(not types.UID) *batchv1.Job {
	r.t.Helper()
	r.eventually("the Job is there", func() error {
		if job := r.job(); job.UID == "" || job.UID == not {
			return fmt.Errorf("it is %q", job.UID)
		}
		return nil
	})
	return r.job()
}

// end does what the controllers of Kubernetes do when a Job has ended, and deletes it.
func (r *rig) end(how batchv1.JobConditionType) {
	r.t.Helper()
	r.eventually("the Job has ended", func() error {
		now := metav1.Now()
		job := r.job()
		begun := cmp.Or(job.Status.StartTime, &now) // a controller of Jobs may have set it, once for all
		job.Status = batchv1.JobStatus{StartTime: begun, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}}
		conditions := []batchv1.JobConditionType{batchv1.JobFailureTarget, how}
		if how == batchv1.JobComplete {
			job.Status.CompletionTime, conditions[0] = &now, batchv1.JobSuccessCriteriaMet
		}
		for _, kind := range conditions {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
				Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now,
			})
		}
		return r.Status().Update(context.Background(), job)
	})
	r.pass()
}

func (r *rig) pass() {
	r.t.Helper()
	r.check(r.Delete(context.Background(), r.job(), client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// stands waits until a Work with another object beside the Job is applied, and the Job is not
// there.
func (r *rig) stands(work *placement.Work, command, ended string, value int) {
	r.t.Helper()
	r.place("work", nil, migrates(command), configMap("beside", fmt.Sprintf("a: '%d'", value)))
	r.applied(work)
	r.untilData("beside", "a", fmt.Sprint(value))
	if job := r.job(); job.UID != "" {
		r.t.Fatalf("the Job runs again, as %s", job.UID)
	}
	if says := r.of(work, 0, placement.ConditionApplied).Message; !strings.Contains(says, "has run ("+ended+")") {
		r.t.Errorf("it says %q", says)
	}
}

func TestAJobThatEndsAndPassesRunsOncePerContent(t *testing.T) {
	r := newRig(t)
	work := r.place("work", nil, migrates("a"))
	first := r.untilJob("")
	r.end(batchv1.JobComplete) // at once, as with a TTL of 0
	r.stands(work, "a", "Complete", 1)
	r.until(work, placement.ConditionAvailable, placement.ReasonAllAvailable)
	r.halt()
	r.start()
	r.stands(work, "a", "Complete", 2)

	r.place("work", nil, migrates("b"))
	second := r.untilJob(first.UID)
	r.applied(work)
	r.pass() // a user deletes the Job while it runs
	third := r.untilJob(second.UID)
	r.end(batchv1.JobFailed)
	r.stands(work, "b", "Failed", 3)
	if says := r.of(work, 0, placement.ConditionAvailable); says.Status != metav1.ConditionFalse ||
		!strings.Contains(says.Message, "the Job failed") {
		t.Errorf("it says %+v", says)
	}

	r.place("work", nil, migrates("c"))
	r.untilJob(third.UID)
	r.applied(work)
	r.halt()
	r.pass() // while no agent looks on
	r.start()
	r.stands(work, "c", applied.JobUnseen, 4)
}

// TestAJobWithoutATTLThatHasEndedIsNotMadeAgain deletes Jobs as a user does who tidies up.
func TestAJobWithoutATTLThatHasEndedIsNotMadeAgain(t *testing.T) {
	r := newRig(t)
	manifest := strings.Replace(migrates("a"), "ttlSecondsAfterFinished: 60, ", "", 1)
	work := r.place("work", nil, manifest)
	first := r.untilJob("")
	r.applied(work)
	r.until(work, placement.ConditionAvailable, placement.ReasonSomeUnavailable)
	r.end(batchv1.JobComplete)
	r.until(work, placement.ConditionAvailable, placement.ReasonAllAvailable)
	r.place("work", nil, manifest, configMap("beside", "a: '1'"))
	r.untilData("beside", "a", "1")
	r.applied(work)
	if job := r.job(); job.UID != "" {
		t.Fatalf("the Job %s runs again, as %s", first.UID, job.UID)
	}
}
