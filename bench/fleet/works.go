package main

import (
	"context"
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hubclient"
)

func (p *program) putWork(work *unstructured.Unstructured) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	name, generation := work.GetName(), work.GetGeneration()
	switch {
	case work.GetDeletionTimestamp() != nil:
		p.running.Go(func() { p.countWork(p.letGo(work)) })
	case !slices.Contains(work.GetFinalizers(), placement.FinalizerWork):
		p.works[name] = 0
		p.running.Go(func() { p.countWork(p.claim(work)) })
	case p.works[name] != generation && reported(work) != generation:
		p.works[name] = generation
		p.running.Go(func() { p.countWork(p.answerWork(work)) })
	default:
		p.works[name] = generation
	}
	return true
}

func (p *program) dropWork(work *unstructured.Unstructured) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.works, work.GetName())
}

// reported returns the generation that the status of a Work is about.
func reported(work *unstructured.Unstructured) (generation int64) {
	conditions, _, _ := unstructured.NestedSlice(work.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, is := c.(map[string]any); is {
			if observed, is := condition["observedGeneration"].(int64); is {
				generation = max(generation, observed)
			}
		}
	}
	return generation
}

// claim adds the finalizer that keeps a Work until its objects are removed.
func (p *program) claim(work *unstructured.Unstructured) error {
	return p.patchWork(work, map[string]any{
		"finalizers":  append(work.GetFinalizers(), placement.FinalizerWork),
		"annotations": map[string]string{placement.AnnotationRetains: "true"},
	})
}

// letGo removes the finalizer of a deleted Work.
func (p *program) letGo(work *unstructured.Unstructured) error {
	return p.patchWork(work, map[string]any{
		"finalizers": slices.DeleteFunc(work.GetFinalizers(), func(f string) bool { return f == placement.FinalizerWork }),
	})
}

// patchWork writes the metadata of a Work even if the program ends.
func (p *program) patchWork(work *unstructured.Unstructured, metadata map[string]any) error {
	metadata["resourceVersion"] = work.GetResourceVersion()
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	all, err := p.worksOnHub()
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: "work-api-agent"}
	_, err = all.Patch(context.WithoutCancel(p.ctx), work.GetName(), types.MergePatchType, patch, options)
	if apierrors.IsConflict(err) {
		return nil // the watch shows the other version
	}
	return err
}

// answerWork reports a Work as applied and available, once for each generation.
func (p *program) answerWork(work *unstructured.Unstructured) error {
	var conditions []metav1.Condition
	for _, kind := range []string{placement.ConditionApplied, placement.ConditionAvailable} {
		conditions = append(conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "Simulated",
			ObservedGeneration: work.GetGeneration(), LastTransitionTime: metav1.Now(),
		})
	}
	p.deployed.works.Add(1)
	return p.patch(hubclient.Works, work.GetName(), map[string]any{"conditions": conditions})
}
