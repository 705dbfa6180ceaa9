package helmop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/chartfetch"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/bundles/policy"
	"github.com/muster-fleet/muster/internal/hub/gitops/charts"
	"github.com/muster-fleet/muster/internal/hub/gitops/ownbundle"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/repository/scan"
)

// observe reads the Bundle, and checks the spec and the Policies before any request to a server.
func (r *reconciliation) observe(ctx context.Context) error {
	r.seen = r.seenOf(r.op)
	bundle := &fleet.Bundle{}
	err := r.Get(ctx, client.ObjectKeyFromObject(r.op), bundle)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the Bundle: %w", err)
	}
	if err == nil && ownerOf(r.op).Is(bundle) {
		r.bundle = bundle
	}
	if err := check(&r.op.Spec); err != nil {
		r.Fail(ownbundle.ConditionAccepted, reasons.HelmOpInvalid, "%s", err)
		return nil
	}
	var policies fleet.PolicyList
	if err := r.List(ctx, &policies, client.InNamespace(r.op.Namespace)); err != nil {
		return fmt.Errorf("listing the Policies: %w", err)
	}
	rules := policy.Unite(policies.Items)
	allowed, err := rules.CheckHelmOp(policy.HelmOp{HelmSecretName: r.op.Spec.HelmSecretName, Options: r.op.Spec.BundleDeploymentOptions})
	if err == nil {
		err = rules.CheckBundle(&r.op.Spec.BundleSpec)
	}
	if err != nil {
		r.Fail(ownbundle.ConditionAccepted, reasons.PolicyViolation, "%s", err)
		return nil
	}
	r.op.Spec.HelmSecretName, r.op.Spec.BundleDeploymentOptions = allowed.HelmSecretName, allowed.Options
	return nil
}

func ownerOf(op *fleet.HelmOp) ownbundle.Owner {
	return ownbundle.Owner{Object: op, Kind: kind, Label: fleet.LabelHelmOpName, Reason: reasons.BundleRefused,
		Rename: "the HelmOp another name", Shrink: "make its values smaller, or name the credentials for the chart in helm.secretName, so that " +
			"the members fetch it"}
}

// act brings the Bundle to the chosen version.
func (r *reconciliation) act(ctx context.Context) error {
	s, now := r.seen, r.Clock.Now()
	if r.Problem != nil {
		return nil
	}
	changed, polls := s.generation != r.op.Generation, r.interval() > 0 && !now.Before(s.next)
	wanted := r.bundle == nil || !ownbundle.Unchanged(r.bundle) || r.op.Status.ObservedGeneration != r.op.Generation
	switch {
	case s.problem != nil && !changed && now.Before(s.next):
		r.Problem = s.problem
		return nil
	case wanted && !changed && s.problem == nil && now.Before(s.wrote.Add(cacheLag)):
		r.Again = s.wrote.Add(cacheLag)
		return nil
	case !wanted && !changed && !polls && s.problem == nil:
		return nil
	}
	key := client.ObjectKeyFromObject(r.op)
	if r.waits = !r.shares.Enter(key); r.waits {
		return nil
	}
	defer r.shares.Leave(key)
	err := r.deploy(ctx, wanted, changed || polls)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.remember(err)
	return err
}

// remember notes the attempt. After each failure, the next attempt waits longer.
func (r *reconciliation) remember(err error) {
	s, interval := r.seen, r.interval()
	if r.Problem == nil || s.generation != r.op.Generation {
		s.failures = 0
	}
	s.problem = r.Problem
	switch {
	case r.Problem == nil:
	case r.Problem.Condition == ownbundle.ConditionAccepted: // a Secret, and these are not watched
		interval = cmp.Or(r.Problem.Again, retryInterval)
	default:
		interval = max(interval, min(maxBackoff, retryInterval<<min(s.failures, 10)))
		s.failures++
	}
	if err == nil {
		s.generation = r.op.Generation
	}
	s.next = r.Clock.Now().Add(time.Duration(float64(interval) * (1 + kube.Jitter(r.op.UID)/10)))
}

// interval is the time between two looks for a newer version; zero if the hub does not look.
func (r *reconciliation) interval() time.Duration {
	own := r.op.Spec.PollingInterval
	if own == nil || own.Duration <= 0 || r.op.Spec.Helm == nil || !isRange(r.op.Spec.Helm) {
		return 0
	}
	return max(own.Duration, minInterval)
}

// deploy writes the Bundle, if it is wanted or there is a newer version.
func (r *reconciliation) deploy(ctx context.Context, wanted, looks bool) error {
	credentials, err := r.credentials(ctx)
	if err != nil || r.Problem != nil {
		return err
	}
	helm := r.op.Spec.Helm.DeepCopy()
	if isRange(helm) {
		if helm.Version, err = r.version(ctx, looks, credentials); err != nil {
			r.Fail(conditionPolled, reasons.ChartUnreadable, "%s; %s", explained(err, lookTimeout), kept(r.op))
			return nil
		}
		if !wanted && helm.Version == r.op.Status.Version {
			return nil
		}
	}
	chart := &scan.Chart{Version: helm.Version}
	if helm.SecretName == "" { // else the members have the Secret, and fetch the chart
		if chart, err = r.fetch(ctx, helm, credentials); err != nil {
			r.Fail(readyCondition, reasons.ChartUnreadable, "%s; %s", explained(err, fetchTimeout), kept(r.op))
			return nil
		}
	}
	bundle, err := bundleOf(r.op, helm, chart)
	if err != nil {
		r.Fail(readyCondition, reasons.ChartUnreadable, "%s", err)
		return nil
	}
	refusal, err := ownbundle.Writer{Client: r.Client, Live: r.Live}.Write(ctx, ownerOf(r.op), bundle)
	if err != nil {
		return err
	}
	if refusal != nil {
		r.Fail(readyCondition, refusal.Reason, "%s", refusal.Message)
		return nil
	}
	r.seen.wrote = r.Clock.Now()
	r.Again = r.seen.wrote.Add(cacheLag)
	r.op.Status.Version, r.op.Status.ObservedGeneration = cmp.Or(chart.Version, helm.Version), r.op.Generation
	return nil
}

// version returns the version of a range. Between two looks it is the deployed one.
func (r *reconciliation) version(ctx context.Context, looks bool, credentials *chartfetch.Credentials) (string, error) {
	if !looks && r.op.Status.Version != "" {
		return r.op.Status.Version, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return r.Charts.Version(ctx, *r.op.Spec.Helm, credentials)
}

func (r *reconciliation) fetch(ctx context.Context, helm *fleet.HelmOptions, credentials *chartfetch.Credentials) (*scan.Chart, error) {
	select {
	case r.fetching <- struct{}{}:
		defer func() { <-r.fetching }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	return charts.Fetch(ctx, r.Charts, helm, credentials)
}

// credentials reads the Secret of the HelmOp; nil if it names none.
func (r *reconciliation) credentials(ctx context.Context) (credentials *chartfetch.Credentials, err error) {
	spec := r.op.Spec
	if spec.HelmSecretName != "" {
		credentials, err = charts.Credentials(ctx, r.Live, types.NamespacedName{Namespace: r.op.Namespace, Name: spec.HelmSecretName})
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			r.Fail(ownbundle.ConditionAccepted, reasons.ChartCredentialsUnusable, "%s", err)
			if apierrors.IsForbidden(err) {
				r.Problem.Again = ownbundle.GrantAgain
			}
			return nil, nil
		}
	}
	if spec.InsecureSkipTLSVerify {
		credentials = chartfetch.AcceptingAnyCertificate(credentials)
	}
	return credentials, nil
}

// isRange reports whether more than one version of a chart can be meant.
func isRange(helm *fleet.HelmOptions) bool {
	return !chartfetch.IsFixed(*helm) && (helm.Version == "" || delivery.CheckChartVersion(helm) != nil)
}

// explained names the time limit of a request.
func explained(err error, limit time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the chart could not be read within %s", limit)
	}
	return err
}

// kept describes the resources on the Clusters while a chart is unreadable.
func kept(op *fleet.HelmOp) string {
	if op.Status.Version == "" {
		return "no version is deployed yet"
	}
	return "deployed objects stay at version " + op.Status.Version
}
