package policy

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// Controller writes the status of Policies.
type Controller struct {
	controller.Deps
}

// New returns a controller.
func New(deps controller.Deps) *Controller { return &Controller{deps} }

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("policy").
		For(&fleet.Policy{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

// Reconcile writes the conditions of a Policy.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var before fleet.Policy
	if err := c.Client.Get(ctx, request.NamespacedName, &before); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	after := before.DeepCopy()
	for _, condition := range []fleet.Condition{ready(&before), kube.Condition(fleet.ConditionSupported, true, reasons.Supported, "")} {
		after.Status.Conditions = kube.SetCondition(after.Status.Conditions, c.Clock.Now(), condition)
	}
	return ctrl.Result{}, client.IgnoreNotFound(kube.PatchStatus(ctx, c.Client, &before, after))
}

// maxProblems limits the invalid rules named at once.
const maxProblems = 5

// ready names the invalid rules of a Policy, or a rule with less effect than it seems to have.
func ready(p *fleet.Policy) fleet.Condition {
	var problems []string
	for _, rules := range rulesOf(p) {
		problems = append(problems, invalid(rules)...)
	}
	if len(problems) > 0 {
		return kube.Condition(fleet.ConditionReady, false, reasons.Invalid,
			kube.JoinTexts(problems[:min(maxProblems, len(problems))], len(problems))+"; the hub refuses all values under an invalid rule")
	}
	r := Unite([]fleet.Policy{*p})
	if len(r.accounts.by) > 0 && len(r.requiring) == 0 && r.account.value == "" {
		return kube.Condition(fleet.ConditionReady, true, reasons.Ready, "a Bundle that names no service account is allowed, and may have the "+
			"agent's own rights: to refuse it, set requireServiceAccount or defaultServiceAccount")
	}
	return kube.Condition(fleet.ConditionReady, true, reasons.Ready, "")
}

// invalid returns the problems of rules.
func invalid(rules *fleet.PolicyRules) (problems []string) {
	note := func(field string, err error) {
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %s", field, kube.Clip(err.Error(), maxQuoted)))
		}
	}
	_, err := metav1.LabelSelectorAsSelector(rules.AllowedTargetNamespaceSelector)
	note("allowedTargetNamespaceSelector", err)
	check := func(field string, texts []string) {
		for i, text := range texts {
			_, err := anchored(text)
			note(fmt.Sprintf("%s[%d]", field, i), err)
		}
	}
	if g := rules.GitRepo; g != nil {
		check("gitRepo.allowedRepoPatterns", g.AllowedRepoPatterns)
	}
	if h := rules.HelmOp; h != nil {
		check("helmOp.allowedHelmRepoPatterns", h.AllowedHelmRepoPatterns)
		check("helmOp.allowedChartPatterns", h.AllowedChartPatterns)
	}
	return problems
}
