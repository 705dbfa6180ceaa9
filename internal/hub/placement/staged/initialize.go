package staged

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// maxNamed limits the members named in a message.
const maxNamed = 10

// waits is the reason why a run is not initialized yet: an input is missing but may appear.
type waits string

func (w waits) Error() string { return string(w) }

// initialize divides the members of the placement into the stages of the strategy. An error of
// another type than waits is final.
func (r Run) initialize(w writer) (placement.UpdateRunStatus, error) {
	status := placement.UpdateRunStatus{}
	switch {
	case r.Missing:
		return status, waits(fmt.Sprintf("there is no %s", r.Placement))
	case !r.External:
		return status, waits(fmt.Sprintf("the hub rolls %s out itself: set its spec.strategy.type to External", r.Placement))
	case r.Strategy == nil:
		return status, waits(fmt.Sprintf("there is no %s %s", r.StrategyKind, r.Spec.StagedUpdateStrategyName))
	case r.Problem != "":
		return status, waits(fmt.Sprintf("%s cannot be rolled out: %s", r.Placement, r.Problem))
	case r.Latest == "":
		return status, waits(fmt.Sprintf("the latest version of %s is being stored", r.Placement))
	}
	status.StagedUpdateStrategySnapshot = r.Strategy.DeepCopy()
	status.ResourceSnapshotIndexUsed = cmp.Or(r.Spec.ResourceSnapshotIndex, r.Latest)
	if !slices.Contains(r.Versions, status.ResourceSnapshotIndexUsed) {
		return status, fmt.Errorf("version %s of %s is not kept; kept are %s (status.resourceIndexes)",
			status.ResourceSnapshotIndexUsed, r.Placement, strings.Join(r.Versions, ", "))
	}
	if err := validate(r.Strategy.Stages); err != nil {
		return status, fmt.Errorf("%s %s: %w", r.StrategyKind, r.Spec.StagedUpdateStrategyName, err)
	}
	var picked, losing []string
	for _, name := range slices.Sorted(maps.Keys(r.Members)) {
		if m := r.Members[name]; m.Picked {
			picked = append(picked, name)
		} else if m.Holds {
			losing = append(losing, name)
		}
	}
	if n := len(picked) + len(losing); n == 0 || n > MaxMembers {
		return status, fmt.Errorf("%s picks %d members; a run is for at least one and at most %d", r.Placement, n, MaxMembers)
	}
	status.PolicyObservedClusterCount, status.ApplyStrategy = len(picked), r.ApplyStrategy.DeepCopy()
	stages, err := r.divide(picked)
	if err != nil {
		return status, err
	}
	status.StagesStatus, status.PlacementUID = stages, r.UID
	status.DeletionStageStatus = &placement.StageUpdatingStatus{StageName: placement.DeletionStage, Clusters: clusters(losing)}
	w.set(&status.Conditions, placement.ConditionInitialized, metav1.ConditionTrue, placement.ReasonRunInitialized,
		fmt.Sprintf("%d members in %d stages", len(picked), len(stages)))
	return status, nil
}

// validate checks rules outside the schema.
func validate(stages []placement.StageConfig) error {
	if len(stages) == 0 {
		return fmt.Errorf("spec.stages: it has no stage")
	}
	seen := map[string]bool{}
	for _, s := range stages {
		if seen[s.Name] {
			return fmt.Errorf("spec.stages: two stages are called %s", s.Name)
		}
		seen[s.Name] = true
		if _, err := concurrency(s.MaxConcurrency, 1); err != nil {
			return fmt.Errorf("stage %s: %w", s.Name, err)
		}
		tasks := map[string]bool{}
		for _, task := range s.AfterStageTasks {
			switch waits := task.WaitTime != nil && task.WaitTime.Duration > 0; {
			case tasks[task.Type]:
				return fmt.Errorf("stage %s: afterStageTasks has the type %s twice", s.Name, task.Type)
			case task.Type == placement.TaskTimedWait && !waits:
				return fmt.Errorf("stage %s: a TimedWait needs a waitTime of more than 0", s.Name)
			case task.Type == placement.TaskApproval && task.WaitTime != nil:
				return fmt.Errorf("stage %s: an Approval has no waitTime", s.Name)
			}
			tasks[task.Type] = true
		}
		for _, task := range s.BeforeStageTasks {
			if task.Type != placement.TaskApproval || task.WaitTime != nil {
				return fmt.Errorf("stage %s: beforeStageTasks can only have the type Approval, without waitTime", s.Name)
			}
		}
	}
	return nil
}

// concurrency returns the number of members of a stage updated at once.
func concurrency(given *intstr.IntOrString, members int) (int, error) {
	if given == nil {
		return 1, nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(given, members, false)
	if err != nil || given.Type == intstr.Int && n < 1 || n < 0 {
		return 0, fmt.Errorf("maxConcurrency %s is neither a number of at least 1 nor a percentage", given.String())
	}
	return max(n, 1), nil
}

// divide returns the stages with their members. Each member must be in exactly one stage.
func (r Run) divide(picked []string) ([]placement.StageUpdatingStatus, error) {
	stageOf := map[string]string{}
	var stages []placement.StageUpdatingStatus
	for _, s := range r.Strategy.Stages {
		selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("stage %s: labelSelector: %w", s.Name, err)
		}
		var names []string
		for _, name := range picked {
			if !selector.Matches(labels.Set(r.Members[name].Labels)) {
				continue
			}
			if other, found := stageOf[name]; found {
				return nil, fmt.Errorf("member %s is in the stages %s and %s: have each labelSelector select other members", name, other, s.Name)
			}
			stageOf[name] = s.Name
			names = append(names, name)
		}
		if err := r.sort(names, s); err != nil {
			return nil, err
		}
		stage := placement.StageUpdatingStatus{StageName: s.Name, Clusters: clusters(names)}
		for _, task := range s.BeforeStageTasks {
			stage.BeforeStageTaskStatus = append(stage.BeforeStageTaskStatus, placement.StageTaskStatus{Type: task.Type})
		}
		for _, task := range s.AfterStageTasks {
			stage.AfterStageTaskStatus = append(stage.AfterStageTaskStatus, placement.StageTaskStatus{Type: task.Type})
		}
		stages = append(stages, stage)
	}
	without := slices.DeleteFunc(slices.Clone(picked), func(name string) bool { return stageOf[name] != "" })
	if len(without) > 0 {
		return nil, fmt.Errorf("no stage selects %s, which %s picks: add a stage, or labels to the members", someOf(without), r.Placement)
	}
	return stages, nil
}

// sort orders the members of a stage by a numeric label, then by name.
func (r Run) sort(names []string, s placement.StageConfig) error {
	if s.SortingLabelKey == nil {
		return nil
	}
	order := map[string]int{}
	for _, name := range names {
		value, found := r.Members[name].Labels[*s.SortingLabelKey]
		n, err := strconv.Atoi(value)
		if err != nil || !found {
			return fmt.Errorf("stage %s: label %s of member %s is %q, and not a whole number", s.Name, *s.SortingLabelKey, name, value)
		}
		order[name] = n
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(order[a], order[b]), strings.Compare(a, b)) })
	return nil
}

func clusters(names []string) (all []placement.ClusterUpdatingStatus) {
	for _, name := range names {
		all = append(all, placement.ClusterUpdatingStatus{ClusterName: name})
	}
	return all
}

// someOf names the first of many members.
func someOf(names []string) string {
	text := strings.Join(names[:min(maxNamed, len(names))], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
