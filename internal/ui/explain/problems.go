package explain

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// Kinds of objects that explain knows.
const (
	kindCluster          = "Cluster"
	kindMemberCluster    = "MemberCluster"
	kindRequest          = "ClusterRegistration"
	kindToken            = "ClusterRegistrationToken"
	kindBundle           = "Bundle"
	kindBundleDeployment = "BundleDeployment"
	kindClusterPlacement = "ClusterResourcePlacement"
	kindPlacement        = "ResourcePlacement"
	kindWork             = "Work"
	kindClusterRun       = "ClusterStagedUpdateRun"
	kindRun              = "StagedUpdateRun"
)

// reasonNew is that of an object that no hub has looked at.
const reasonNew = "NotObserved"

// problemsOf returns the problems that an object reports. It panics for an unknown kind, which is a
// mistake of the caller.
func problemsOf(o client.Object) []Problem {
	switch o := o.(type) {
	case *fleet.Cluster:
		return fromFleet(problemOf(o, kindCluster), o.Status.Conditions)
	case *fleet.ClusterRegistrationToken:
		return fromFleet(problemOf(o, kindToken), o.Status.Conditions)
	case *fleet.Bundle:
		return fromFleet(problemOf(o, kindBundle), o.Status.Conditions)
	case *fleet.BundleDeployment:
		return fromFleet(problemOf(o, kindBundleDeployment), o.Status.Conditions)
	case *fleet.ClusterRegistration:
		return fromRequest(problemOf(o, kindRequest), o)
	case *clusterv1beta1.MemberCluster:
		return fromConditions(problemOf(o, kindMemberCluster), o.Status.Conditions)
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
	panic("nobody explains this kind of object")
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

func fromFleet(of Problem, conditions []fleet.Condition) []Problem {
	if len(conditions) == 0 {
		return []Problem{of.says("", reasonNew, "", time.Time{})}
	}
	var problems []Problem
	for _, c := range conditions {
		since, _ := time.Parse(time.RFC3339, c.LastTransitionTime) // zero if an agent has written another value
		switch {
		case isBad(c.Type, string(c.Status)), isAside(of.Kind, c.Reason) && c.Type != fleet.ConditionCloned:
			problems = append(problems, of.says(c.Type, c.Reason, c.Message, since))
		case c.Type == fleet.ConditionReady && c.Message != "": // ready, with a restriction
			problems = append(problems, of.says(c.Type, "", c.Message, since))
		}
	}
	return problems
}

func fromConditions(of Problem, conditions []metav1.Condition) []Problem {
	if len(conditions) == 0 {
		return []Problem{of.says("", reasonNew, "", time.Time{})}
	}
	var problems []Problem
	for _, c := range conditions {
		if isBad(c.Type, string(c.Status)) || c.Reason == clusterv1beta1.ReasonLeaving || isAside(of.Kind, c.Reason) {
			problems = append(problems, of.says(c.Type, c.Reason, c.Message, c.LastTransitionTime.Time))
		}
	}
	return problems
}

func fromRequest(of Problem, r *fleet.ClusterRegistration) []Problem {
	problems := fromAttribution(of, r)
	switch r.Status.State {
	case fleet.RegistrationGranted:
	case "":
		if !r.Status.Granted { // by the hub of Rancher Fleet, which knows no states
			problems = append(problems, of.says("", reasonNew, "", r.CreationTimestamp.Time))
		}
	default:
		problems = append(problems, of.says("", r.Status.Reason, r.Status.Message, r.CreationTimestamp.Time))
	}
	return problems
}

func fromAttribution(of Problem, r *fleet.ClusterRegistration) []Problem {
	if len(r.Status.Conditions) == 0 {
		return nil
	}
	return fromFleet(of, r.Status.Conditions)
}

// fromPlacement returns the problems in the status of a placement and of its members.
func fromPlacement(of Problem, status *placement.PlacementStatus) []Problem {
	problems := fromConditions(of, status.Conditions)
	for i := range problems {
		problems[i].Condition = strings.TrimPrefix(problems[i].Condition, of.Kind)
	}
	for _, member := range status.PlacementStatuses {
		if meta.IsStatusConditionFalse(member.Conditions, placement.ConditionScheduled) { // its obstacle explains more
			continue
		}
		problems = append(problems, fromMember(of, member)...)
	}
	return append(problems, fromObstacles(of, status)...)
}

// fromObstacles returns the causes why members are not picked, if the placement requires more
// members than it has. It also returns the members that stay although the placement would not pick
// them now.
func fromObstacles(of Problem, status *placement.PlacementStatus) (problems []Problem) {
	scheduled := meta.FindStatusCondition(status.Conditions, of.Kind+placement.ConditionScheduled)
	if scheduled == nil {
		return nil
	}
	for _, o := range status.Obstacles {
		if scheduled.Status == metav1.ConditionFalse || isAside(of.Kind, o.Reason) {
			problems = append(problems,
				of.says(placement.ConditionScheduled, o.Reason, "on "+o.ClusterName+": "+o.Message, scheduled.LastTransitionTime.Time))
		}
	}
	return problems
}

// fromMember returns the problems of a member in a placement's status, by failed resource if the
// status names any.
func fromMember(of Problem, member placement.PerClusterStatus) []Problem {
	var problems []Problem
	for _, failed := range member.FailedPlacements {
		c := failed.Condition
		message := fmt.Sprintf("%s %s on %s: %s", failed.Kind, objectName(failed.Namespace, failed.Name), member.ClusterName, c.Message)
		problems = append(problems, of.says(c.Type, c.Reason, message, c.LastTransitionTime.Time))
	}
	if len(problems) > 0 || len(member.Conditions) == 0 {
		return problems
	}
	for _, p := range fromConditions(of, member.Conditions) {
		if member.ClusterName != "" {
			p.Message = "on " + member.ClusterName + ": " + p.Message
		}
		problems = append(problems, p)
	}
	return problems
}

// fromRun takes what a staged update run waits for, or why it has failed. Nothing is wrong with a
// run that has succeeded.
func fromRun(of Problem, conditions []metav1.Condition) []Problem {
	if meta.IsStatusConditionTrue(conditions, placement.ConditionSucceeded) {
		return nil
	}
	return fromConditions(of, conditions)
}

// fromWork takes what a Work says of itself, and of each of its objects that has trouble.
func fromWork(of Problem, status *placement.WorkStatus) []Problem {
	problems := fromConditions(of, status.Conditions)
	for _, manifest := range status.ManifestConditions {
		if len(manifest.Conditions) == 0 {
			continue
		}
		for _, p := range fromConditions(of, manifest.Conditions) {
			p.Message = fmt.Sprintf("%s %s: %s", manifest.Identifier.Kind, objectName(manifest.Identifier.Namespace, manifest.Identifier.Name),
				p.Message)
			problems = append(problems, p)
		}
	}
	return problems
}
