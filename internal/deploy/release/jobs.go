package release

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/readiness"
	"github.com/muster-fleet/muster/internal/naming"
)

// jobRuns keeps Helm from running an ended Job again: a retry or an upgrade would create a missing
// Job with the same content. Hooks run as Helm runs them.
type jobRuns struct {
	runs map[string]applied.Run
	// annotations are the annotations of the chart, where Helm stores the note.
	annotations map[string]string
	// hashes are the digests of the manifests: Helm replaces the manifest by the created object.
	hashes map[hookKey]string
	// ended are the Jobs that have run and are gone.
	ended map[hookKey]bool
}

func newJobRuns(r Request) *jobRuns {
	return &jobRuns{runs: RunsOf(r.Jobs), annotations: r.Chart.Metadata.Annotations,
		hashes: map[hookKey]string{}, ended: map[hookKey]bool{}}
}

// RunsOf reads a note of the runs of Jobs, by namespace and name. It ignores a note without
// valid JSON, because another client wrote it.
func RunsOf(note string) map[string]applied.Run {
	runs := map[string]applied.Run{}
	if note == "" {
		return runs
	}
	if json.Unmarshal([]byte(note), &runs) != nil {
		return map[string]applied.Run{}
	}
	return runs
}

// JobHash returns a digest of the manifest of a Job, without Helm's additions.
func JobHash(manifest *unstructured.Unstructured) string {
	wanted := manifest.DeepCopy()
	wanted.SetNamespace("")
	without := func(values map[string]string, names ...string) map[string]string {
		for _, name := range names {
			delete(values, name)
		}
		return values
	}
	wanted.SetAnnotations(without(wanted.GetAnnotations(), "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"))
	wanted.SetLabels(without(wanted.GetLabels(), "app.kubernetes.io/managed-by"))
	text, err := json.Marshal(wanted.Object)
	if err != nil {
		return "" // impossible: it was read as JSON
	}
	return naming.ShortDigest(text)
}

// isJob returns the manifest of an ordinary Job, not of a hook.
func isJob(info *resource.Info) (*unstructured.Unstructured, bool) {
	manifest, ok := info.Object.(*unstructured.Unstructured)
	return manifest, ok && applied.IsJob(info.Mapping.GroupVersionKind.GroupKind()) && !ofHook(info)
}

func jobName(info *resource.Info) string {
	return types.NamespacedName{Namespace: info.Namespace, Name: info.Name}.String()
}

// withoutEnded returns the resources without the Jobs missing after a run with the same content. It
// notes the ends of the others.
func (j *jobRuns) withoutEnded(ctx context.Context, acting *Cluster, resources kube.ResourceList) (kube.ResourceList, error) {
	for _, info := range resources {
		manifest, ok := isJob(info)
		if !ok {
			continue
		}
		hash := JobHash(manifest)
		j.hashes[keyOf(info)] = hash
		run, noted := j.runs[jobName(info)]
		if !noted || run.Hash != hash {
			continue
		}
		found, err := clientOf(acting, info).Get(ctx, info.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			if _, over := run.Over(run.Hash, applied.Passes(manifest), ""); over {
				j.ended[keyOf(info)] = true
			}
		case err != nil:
			return nil, fmt.Errorf("looking whether Job %s has run: %w", jobName(info), err)
		case found.GetUID() == run.UID && applied.EndOf(found) != "":
			j.runs[jobName(info)] = run.End(applied.EndOf(found), readiness.Of(found).Message)
		}
	}
	return j.without(resources), nil
}

// without returns the resources without the finished Jobs.
func (j *jobRuns) without(resources kube.ResourceList) kube.ResourceList {
	if len(j.ended) == 0 {
		return resources
	}
	return resources.Filter(func(info *resource.Info) bool { return !j.ended[keyOf(info)] })
}

// note notes the Jobs created by Helm. Helm stores the note with the outcome of the revision, also
// after a failure.
func (j *jobRuns) note(resources kube.ResourceList) {
	for _, info := range resources {
		manifest, is := isJob(info)
		if !is || manifest.GetUID() == "" {
			continue
		}
		if run := j.runs[jobName(info)]; run.UID != manifest.GetUID() {
			j.runs[jobName(info)] = applied.Run{Hash: j.hashes[keyOf(info)], UID: manifest.GetUID()}
		}
	}
	if len(j.runs) == 0 {
		return
	}
	if text, err := json.Marshal(j.runs); err == nil { // texts only
		j.annotations[annotationJobs] = string(text)
	}
}

// Wait implements kube.Waiter: it waits for no object missing after its run.
func (w *hookWaiter) Wait(resources kube.ResourceList, timeout time.Duration) error {
	return w.Waiter.Wait(w.of.jobs.without(resources), timeout)
}

// WaitWithJobs implements kube.Waiter.
func (w *hookWaiter) WaitWithJobs(resources kube.ResourceList, timeout time.Duration) error {
	return w.Waiter.WaitWithJobs(w.of.jobs.without(resources), timeout)
}
