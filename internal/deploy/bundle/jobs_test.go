package bundle

import (
	"cmp"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// migrates is a Job with a further part of its specification. Nothing runs Pods here.
func migrates(more, command string) fleet.BundleResource {
	return file("job.yaml", fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: migrate}, spec: {%s
		template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, command: [%s]}]}}}}`, more, command))
}

const passes = "ttlSecondsAfterFinished: 60, "

// untilJob waits for another Job than the one with the UID.
func (r *rig) untilJob(not types.UID) *batchv1.Job {
	r.t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: r.target, Name: "migrate"}}
	r.eventually("the Job is made", func() error {
		err := r.kube.Get(r.t.Context(), client.ObjectKeyFromObject(job), job)
		if err == nil && job.UID == not {
			err = fmt.Errorf("it is %s still", not)
		}
		return err
	})
	return job
}

// end does what the controllers of Kubernetes do at the end of a Job.
func (r *rig) end(job *batchv1.Job, how batchv1.JobConditionType) {
	r.t.Helper()
	r.eventually("the Job has ended", func() error {
		if err := r.kube.Get(r.t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		now := metav1.Now()
		begun := cmp.Or(job.Status.StartTime, &now)
		job.Status = batchv1.JobStatus{StartTime: begun, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}}
		conditions := []batchv1.JobConditionType{batchv1.JobFailureTarget, how}
		if how == batchv1.JobComplete {
			job.Status.CompletionTime, conditions[0] = &now, batchv1.JobSuccessCriteriaMet
		}
		for _, kind := range conditions {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
				Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now, Reason: "Ended", Message: "as the test says",
			})
		}
		return r.kube.Status().Update(r.t.Context(), job)
	})
}

// pass deletes a Job, as Kubernetes or a user does.
func (r *rig) pass(job *batchv1.Job) {
	r.t.Helper()
	r.check(r.kube.Delete(r.t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	r.gone(job)
}

func (r *rig) gone(job *batchv1.Job) {
	r.t.Helper()
	if err := r.kube.Get(r.t.Context(), client.ObjectKeyFromObject(job), job.DeepCopy()); !apierrors.IsNotFound(err) {
		r.t.Fatalf("the Job is there (%v)", err)
	}
}

// rests waits until another object of the Bundle is set back or upgraded, and the Job did not come
// back.
func (r *rig) rests(job *batchv1.Job, state fleet.BundleState, parts ...string) {
	r.t.Helper()
	r.edit("beside", `{"data":{"key":"by hand"}}`)
	r.untilData("beside", "one")
	r.until("web", state, parts...)
	r.gone(job)
}

func TestAJobOfABundleRunsOncePerContent(t *testing.T) {
	for name, ttl := range map[string]string{"with a TTL": passes, "without a TTL": ""} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			run := r.start()
			corrects := fleet.BundleDeploymentOptions{CorrectDrift: &fleet.CorrectDrift{Enabled: true}}
			r.place("web", corrects, migrates(ttl, "a"), configMap("beside", "one"))
			job := r.untilJob("")
			r.until("web", fleet.StateNotReady, "the Job is ")
			r.end(job, batchv1.JobComplete)
			r.until("web", fleet.StateReady)
			r.pass(job)
			r.rests(job, fleet.StateReady)
			run.stop()
			r.start()
			r.rests(job, fleet.StateReady)
			r.place("web", corrects, migrates(ttl, "a"), configMap("beside", "two"))
			r.untilData("beside", "two")
			r.until("web", fleet.StateReady)
			r.gone(job)
			r.place("web", corrects, migrates(ttl, "b"), configMap("beside", "two"))
			r.untilJob(job.UID)
		})
	}
}

func TestAFailedJobOfABundleStaysAnErrorWhenItIsGone(t *testing.T) {
	r := newRig(t)
	run := r.start()
	corrects := fleet.BundleDeploymentOptions{CorrectDrift: &fleet.CorrectDrift{Enabled: true}}
	r.place("web", corrects, migrates(passes, "a"), configMap("beside", "one"))
	job := r.untilJob("")
	r.end(job, batchv1.JobFailed)
	r.until("web", fleet.StateNotReady, "Ended: as the test says")
	r.pass(job)
	r.rests(job, fleet.StateNotReady, "the Job failed", "as the test says", "and is gone")
	run.stop()
	r.start()
	r.rests(job, fleet.StateNotReady, "and is gone")
}

func TestAJobThatAUserDeletesBeforeItsEndRunsAgain(t *testing.T) {
	r := newRig(t)
	r.start()
	r.place("web", fleet.BundleDeploymentOptions{CorrectDrift: &fleet.CorrectDrift{Enabled: true}}, migrates(passes, "a"))
	job := r.untilJob("")
	r.until("web", fleet.StateNotReady, "the Job is ")
	r.check(r.kube.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	r.untilJob(job.UID)
}

func TestASuspendedJobIsReady(t *testing.T) {
	r := newRig(t)
	r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, migrates("suspend: true, ", "a"))
	r.until("web", fleet.StateReady, "Job "+r.target+"/migrate is suspended by its manifest")
}

// TestAJobOfAnAttemptThatFailsIsNotMadeAgain deploys beside the Job an object that is refused.
func TestAJobOfAnAttemptThatFailsIsNotMadeAgain(t *testing.T) {
	r := newRig(t)
	r.start()
	refused := file("refused.yaml", "{apiVersion: v1, kind: Service, metadata: {name: refused}, spec: {ports: []}}")
	r.place("web", fleet.BundleDeploymentOptions{}, migrates(passes, "a"), refused)
	job := r.untilJob("")
	r.until("web", fleet.StateErrApplied, "refused")
	r.end(job, batchv1.JobComplete)
	r.pass(job)
	r.place("web", fleet.BundleDeploymentOptions{}, migrates(passes, "a"), configMap("beside", "one"))
	r.untilData("beside", "one")
	r.until("web", fleet.StateReady)
	r.gone(job)
}
