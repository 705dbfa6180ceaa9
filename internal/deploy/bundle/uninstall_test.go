package bundle

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// jobHook is a Job that is a hook.
func jobHook(name, event, more string) fleet.BundleResource {
	return file(name+".yaml", `apiVersion: batch/v1
kind: Job
metadata:
  name: `+name+`
  annotations: {helm.sh/hook: `+event+more+`}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: a, image: nowhere.example.com/a}]}
`)
}

// jobUID is the UID of a Job; empty if it is not there or goes.
func (r *rig) jobUID(name string) types.UID {
	r.t.Helper()
	job := &batchv1.Job{}
	r.check(client.IgnoreNotFound(r.kube.Get(r.t.Context(), client.ObjectKey{Namespace: r.target, Name: name}, job)))
	if job.DeletionTimestamp != nil {
		return ""
	}
	return job.UID
}

// begins waits until a Job is there, and returns which one it is.
func (r *rig) begins(name string) (is types.UID) {
	r.t.Helper()
	r.eventually(name+" runs", func() error {
		if is = r.jobUID(name); is == "" {
			return errors.New("it does not")
		}
		return nil
	})
	return is
}

// waitsFor waits until a deployer has waited for a hook of an uninstall twice.
func (r *rig) waitsFor(run *running, name string) {
	r.t.Helper()
	says := "has not ended yet: Job " + r.target + "/" + name + " of release"
	r.eventually("the deployer waits for "+name+" again", func() error {
		if count := strings.Count(run.lines(), says); count < 2 {
			return fmt.Errorf("it has waited %d times", count)
		}
		return nil
	})
}

func TestAHookBeforeARemovalHasTheTimeThatItTakes(t *testing.T) {
	r := newRig(t)
	r.hookWait = time.Second
	run := r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"),
		jobHook("first", "pre-delete", ", helm.sh/hook-weight: '1', helm.sh/hook-delete-policy: 'before-hook-creation,hook-succeeded'"),
		jobHook("drain", "pre-delete", ", helm.sh/hook-weight: '2', helm.sh/hook-delete-policy: 'before-hook-creation,hook-failed'"),
		jobHook("after", "post-delete", ""))
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	first := r.begins("first")
	r.waitsFor(run, "first")
	r.completeJob("first")
	drain := r.begins("drain")
	r.waitsFor(run, "drain")
	r.blocked(run, "RemovalBlocked", "Job "+r.target+"/drain of release "+r.target+"/web:1 is waited for")
	run.stop()
	run = r.start()
	r.waitsFor(run, "drain")
	if again := r.jobUID("first"); again != first {
		t.Errorf("the hook that has succeeded was %s and is %q", first, again)
	}
	if again := r.jobUID("drain"); again != drain {
		t.Errorf("the hook that runs was %s and is %q", drain, again)
	}
	if _, err := r.data("web"); err != nil {
		t.Errorf("what the hook works on: %v", err)
	}
	r.completeJob("drain")
	after := r.begins("after")
	r.blocked(run, "RemovalBlocked", "Job "+r.target+"/after, a hook, runs still")
	if again := r.jobUID("after"); again != after {
		t.Errorf("the hook that runs after the removal was %s and is %q", after, again)
	}
	r.completeJob("after")
	r.untilRemoved(run, "web")
	for _, name := range []string{"first", "drain", "after"} {
		if is := r.jobUID(name); is != "" {
			t.Errorf("hook %s is there", name)
		}
	}
}

func TestAHookBeforeARemovalThatFailedRunsAgain(t *testing.T) {
	r := newRig(t)
	r.hookWait = time.Second
	run := r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"), jobHook("drain", "pre-delete", ""))
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	drain := r.begins("drain")
	r.waitsFor(run, "drain")
	job := &batchv1.Job{}
	r.check(r.kube.Get(t.Context(), client.ObjectKey{Namespace: r.target, Name: "drain"}, job))
	now := time.Now().UTC().Format(time.RFC3339)
	patch := fmt.Sprintf(
		`{"status":{"active":0,"ready":0,"failed":1,"conditions":[`+
			`{"type":"FailureTarget","status":"True","lastTransitionTime":%q},`+
			`{"type":"Failed","status":"True","lastTransitionTime":%q}]}}`, now, now,
	)
	r.check(r.kube.Status().Patch(t.Context(), job, client.RawPatch(types.MergePatchType, []byte(patch))))
	r.eventually("another one runs", func() error {
		if is := r.jobUID("drain"); is == "" || is == drain {
			return fmt.Errorf("it is %q", is)
		}
		return nil
	})
	r.completeJob("drain")
	r.untilRemoved(run, "web")
}
