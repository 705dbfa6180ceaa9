package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// Kinds of objects with causes in this package.
const (
	kindCluster          = "Cluster"
	kindMemberCluster    = "MemberCluster"
	kindRequest          = "ClusterRegistration"
	kindToken            = "ClusterRegistrationToken"
	kindBundle           = "Bundle"
	kindBundleDeployment = "BundleDeployment"
	kindGitRepo          = "GitRepo"
	kindHelmOp           = "HelmOp"
	kindClusterPlacement = "ClusterResourcePlacement"
	kindPlacement        = "ResourcePlacement"
	kindWork             = "Work"
	kindClusterRun       = "ClusterStagedUpdateRun"
	kindRun              = "StagedUpdateRun"
)

// reasonNew is the reason of an object before any hub has reconciled it.
const reasonNew = "NotObserved"

// problemsOf returns the problems reported by an object. It panics for an unknown kind, because the
// caller has a bug.
func problemsOf(o client.Object) []Problem {
	switch o := o.(type) {
	case *fleet.Cluster:
		return append(fromFleet(problemOf(o, kindCluster), o.Status.Conditions), fromDrain(problemOf(o, kindCluster), o)...)
	case *fleet.ClusterRegistrationToken:
		return fromFleet(problemOf(o, kindToken), o.Status.Conditions)
	case *fleet.Bundle:
		return fromBundle(problemOf(o, kindBundle), &o.Status)
	case *fleet.GitRepo:
		return fromFleet(problemOf(o, kindGitRepo), o.Status.Conditions)
	case *fleet.HelmOp:
		return fromFleet(problemOf(o, kindHelmOp), o.Status.Conditions)
	case *fleet.BundleDeployment:
		return fromDeployment(problemOf(o, kindBundleDeployment), &o.Status)
	case *fleet.ClusterRegistration:
		return fromRequest(problemOf(o, kindRequest), o)
	case *clusterv1beta1.MemberCluster:
		return append(fromConditions(problemOf(o, kindMemberCluster), o.Status.Conditions), fromDrain(problemOf(o, kindMemberCluster), o)...)
	case *placement.ClusterResourcePlacement:
		return fromPlacement(problemOf(o, kindClusterPlacement), &o.Status)
	case *placement.ResourcePlacement:
		return fromPlacement(problemOf(o, kindPlacement), &o.Status)
	case *placement.Work:
		return fromWork(problemOf(o, kindWork), &o.Status)
	case *placement.ClusterStagedUpdateRun:
		return fromRun(problemOf(o, kindClusterRun), o.Status.Conditions)
	case *placement.StagedUpdateRun:
		return fromRun(problemOf(o, kindRun), o.Status.Conditions)
	}
	panic("no explanation for this kind of object")
}

// problemOf returns the start of an object's problem.
func problemOf(o client.Object, kind string) Problem {
	return Problem{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// says returns the problem of a condition.
func (p Problem) says(condition, reason, message string, since time.Time) Problem {
	p.Condition, p.Reason, p.Message, p.Since = condition, reason, message, since
	return p
}

// isBad reports whether a condition shows a problem. For most types True is good.
func isBad(kind, status string) bool {
	if kind == fleet.ConditionCloned {
		return status == string(corev1.ConditionTrue)
	}
	return status != string(corev1.ConditionTrue)
}

func fromFleet(problem Problem, conditions []fleet.Condition) []Problem {
	if len(conditions) == 0 {
		return []Problem{problem.says("", reasonNew, "", time.Time{})}
	}
	var problems []Problem
	for _, c := range conditions {
		since, _ := time.Parse(time.RFC3339, c.LastTransitionTime) // zero if an agent has written another value
		switch {
		case isBad(c.Type, string(c.Status)), isAside(problem.Kind, c.Reason) && c.Type != fleet.ConditionCloned:
			problems = append(problems, problem.says(c.Type, c.Reason, c.Message, since))
		case c.Type == fleet.ConditionReady && c.Message != "": // ready, with a restriction
			problems = append(problems, problem.says(c.Type, "", c.Message, since))
		}
	}
	return problems
}

// fromDeployment names the state of a deployed release. All agents report the reason Error for
// every unready state.
func fromDeployment(problem Problem, status *fleet.BundleDeploymentStatus) []Problem {
	problems := fromFleet(problem, status.Conditions)
	if differ := kube.FindCondition(status.Conditions, fleet.ConditionCRDsCurrent); differ != nil {
		// Ready repeats the message, because some users see only Ready.
		problems = slices.DeleteFunc(problems, func(p Problem) bool {
			return p.Condition == fleet.ConditionReady && p.Reason == "" && p.Message == differ.Message
		})
	}
	if deployed := kube.FindCondition(status.Conditions, fleet.ConditionDeployed); deployed == nil || deployed.Status != corev1.ConditionTrue {
		return problems
	}
	for i := range problems {
		if p := &problems[i]; p.Condition == fleet.ConditionReady && p.Reason == reasons.Error {
			p.Reason = string(fleet.StateNotReady)
			if len(status.ModifiedStatus) > 0 {
				p.Reason = string(fleet.StateModified)
			}
		}
	}
	return problems
}

// fromBundle adds the lost Clusters, if others are unready for other reasons.
func fromBundle(base Problem, status *fleet.BundleStatus) []Problem {
	problems := fromFleet(base, status.Conditions)
	if ready := kube.FindCondition(status.Conditions, fleet.ConditionReady); ready == nil || ready.Reason == reasons.AgentLost {
		return problems
	}
	for _, r := range status.Summary.NonReadyResources {
		if membership.IsAsOf(r.Message) {
			problems = append(problems, base.says(fleet.ConditionReady, reasons.AgentLost, "Cluster "+r.Name+": "+r.Message, time.Time{}))
		}
	}
	return problems
}

// lost replaces the reason of a problem in the last report of a lost member.
func (p Problem) lost() Problem {
	if membership.IsAsOf(p.Message) {
		p.Reason = reasons.AgentLost
	}
	return p
}

func fromConditions(base Problem, conditions []metav1.Condition) []Problem {
	if len(conditions) == 0 {
		return []Problem{base.says("", reasonNew, "", time.Time{})}
	}
	var problems []Problem
	for _, c := range conditions {
		if isBad(c.Type, string(c.Status)) || c.Reason == clusterv1beta1.ReasonLeaving || isAside(base.Kind, c.Reason) {
			problems = append(problems, base.says(c.Type, c.Reason, c.Message, c.LastTransitionTime.Time))
		}
	}
	return problems
}

func fromRequest(base Problem, r *fleet.ClusterRegistration) []Problem {
	problems := fromAttribution(base, r)
	switch r.Status.State {
	case fleet.RegistrationGranted:
	case "":
		if !r.Status.Granted { // granted by the hub of Rancher Fleet: its requests have no states
			problems = append(problems, base.says("", reasonNew, "", r.CreationTimestamp.Time))
		}
	default:
		problems = append(problems, base.says("", r.Status.Reason, r.Status.Message, r.CreationTimestamp.Time))
	}
	return problems
}

func fromAttribution(base Problem, r *fleet.ClusterRegistration) []Problem {
	if len(r.Status.Conditions) == 0 {
		return nil
	}
	return fromFleet(base, r.Status.Conditions)
}

// fromPlacement returns the problems in the status of a placement and of its members.
func fromPlacement(base Problem, status *placement.PlacementStatus) []Problem {
	problems := fromConditions(base, status.Conditions)
	for i := range problems {
		problems[i].Condition = strings.TrimPrefix(problems[i].Condition, base.Kind)
		problems[i] = problems[i].lost()
	}
	note := PlacementNote(status)
	if note != "" && meta.IsStatusConditionTrue(status.Conditions, base.Kind+placement.ConditionScheduled) {
		problems = append(problems, base.says(placement.ConditionScheduled, "", note, time.Time{}))
	}
	problems = append(problems, fromFailures(base, status.PlacementStatuses)...)
	overall := len(problems)
	for _, p := range fromMembers(base, status.PlacementStatuses) {
		quoted := func(whole Problem) bool {
			return whole.Reason == p.Reason && strings.Contains(whole.Message, strings.TrimPrefix(p.Message, onMembers))
		}
		if !slices.ContainsFunc(problems[:overall], quoted) {
			problems = append(problems, p)
		}
	}
	return append(problems, fromObstacles(base, status)...)
}

// PlacementNote returns the omissions of an available placement, such as an object missing on the
// hub. It is empty if the placement is complete.
func PlacementNote(status *placement.PlacementStatus) string {
	_, note, _ := strings.Cut(status.Message, " members picked; ")
	return note
}

// isUnscheduled reports whether a member is not picked; its obstacle explains more.
func isUnscheduled(member placement.PerClusterStatus) bool {
	return meta.IsStatusConditionFalse(member.Conditions, placement.ConditionScheduled)
}

// fromFailures returns one problem for each failure of a resource, with all members reporting it in
// the same words.
func fromFailures(base Problem, members []placement.PerClusterStatus) []Problem {
	var reported sameProblems
	for _, member := range members {
		if isUnscheduled(member) {
			continue
		}
		for _, failed := range member.FailedPlacements {
			c := failed.Condition
			reported.add(failed.Kind+" "+objectName(failed.Namespace, failed.Name)+" on ", member.ClusterName,
				base.says(c.Type, c.Reason, c.Message, c.LastTransitionTime.Time))
		}
	}
	return reported.problems()
}

// sameProblems collects problems of members, each with the members that report it in the same
// words, in the order of the first ones.
type sameProblems struct {
	index  map[sameProblem]int
	groups []problemOfMembers
}

// sameProblem identifies a problem; prefix is the text before the names of the members.
type sameProblem struct{ prefix, condition, reason, message string }

type problemOfMembers struct {
	Problem
	prefix string
	names  []string
}

func (s *sameProblems) add(prefix, member string, p Problem) {
	key := sameProblem{prefix, p.Condition, p.Reason, p.Message}
	i, exists := s.index[key]
	if !exists {
		if s.index == nil {
			s.index = map[sameProblem]int{}
		}
		i = len(s.groups)
		s.index[key], s.groups = i, append(s.groups, problemOfMembers{Problem: p, prefix: prefix})
	}
	s.groups[i].names = append(s.groups[i].names, member)
	if p.Since.Before(s.groups[i].Since) {
		s.groups[i].Since = p.Since
	}
}

func (s *sameProblems) problems() (problems []Problem) {
	for _, group := range s.groups {
		p := group.Problem
		p.Message = group.prefix + kube.Group{Text: p.Message, Names: group.names}.String()
		problems = append(problems, p)
	}
	return problems
}

// fromObstacles returns the reasons for missing picks, if the placement requires more members than
// it has. It also returns members that stay although the placement would no longer pick them.
func fromObstacles(base Problem, status *placement.PlacementStatus) (problems []Problem) {
	scheduled := meta.FindStatusCondition(status.Conditions, base.Kind+placement.ConditionScheduled)
	if scheduled == nil {
		return nil
	}
	for _, o := range status.Obstacles {
		if scheduled.Status == metav1.ConditionFalse || isAside(base.Kind, o.Reason) {
			problems = append(problems,
				base.says(placement.ConditionScheduled, o.Reason, "on "+o.ClusterName+": "+o.Message, scheduled.LastTransitionTime.Time))
		}
	}
	return problems
}

// onMembers is the text before the names of members with the same problem.
const onMembers = "on "

// fromMembers returns the problems of members without failed resources, and of placements that
// name no member in their status.
func fromMembers(base Problem, members []placement.PerClusterStatus) (problems []Problem) {
	var reported sameProblems
	for _, member := range members {
		if len(member.FailedPlacements) > 0 || isUnscheduled(member) || len(member.Conditions) == 0 {
			continue
		}
		for _, p := range fromConditions(base, member.Conditions) {
			if member.ClusterName == "" {
				problems = append(problems, p.lost())
			} else {
				reported.add(onMembers, member.ClusterName, p.lost())
			}
		}
	}
	return append(problems, reported.problems()...)
}

// fromRun returns the problems of a staged update run: a wait or a failure. A successful run has
// none.
func fromRun(base Problem, conditions []metav1.Condition) []Problem {
	if meta.IsStatusConditionTrue(conditions, placement.ConditionSucceeded) {
		return nil
	}
	return fromConditions(base, conditions)
}

// fromWork returns the problems in the conditions of a Work and of its objects.
func fromWork(base Problem, status *placement.WorkStatus) []Problem {
	problems := fromConditions(base, status.Conditions)
	for _, manifest := range status.ManifestConditions {
		if len(manifest.Conditions) == 0 {
			continue
		}
		for _, p := range fromConditions(base, manifest.Conditions) {
			p.Message = fmt.Sprintf("%s %s: %s", manifest.Identifier.Kind, objectName(manifest.Identifier.Namespace, manifest.Identifier.Name),
				p.Message)
			problems = append(problems, p)
		}
	}
	return problems
}
