package gitrepo

import (
	"cmp"
	"context"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/bundles/policy"
	"github.com/muster-fleet/muster/internal/hub/gitops/clone"
	"github.com/muster-fleet/muster/internal/hub/gitops/ownbundle"
	"github.com/muster-fleet/muster/internal/kube"
)

const conditionPolling = "GitPolling"

// observe reads the Bundles of the GitRepo, and first of all the rules of its namespace.
func (r *reconciliation) observe(ctx context.Context) error {
	r.seen = r.seenOf(r.repo)
	var list fleet.BundleList
	if err := r.List(ctx, &list, client.InNamespace(r.repo.Namespace), client.MatchingLabels{fleet.LabelRepoName: r.repo.Name}); err != nil {
		return fmt.Errorf("listing the Bundles: %w", err)
	}
	owner := ownerOf(r.repo)
	for _, bundle := range list.Items {
		if owner.Is(&bundle) {
			r.bundles = append(r.bundles, bundle)
		}
	}
	if err := r.restrict(ctx); err != nil || r.Problem != nil {
		return err
	}
	address, err := clone.ParseURL(r.repo.Spec.Repo)
	if err != nil {
		r.Fail(ownbundle.ConditionAccepted, reasons.GitRepoInvalid, "%s", err)
		return nil
	}
	if _, err := regexp.Compile(r.repo.Spec.HelmRepoURLRegex); err != nil {
		r.Fail(ownbundle.ConditionAccepted, reasons.GitRepoInvalid, "spec.helmRepoURLRegex is no valid regular expression: %s", err)
		return nil
	}
	if r.repo.Spec.OCIRegistrySecret != "" {
		r.Fail(ownbundle.ConditionAccepted, reasons.GitRepoInvalid, "spec.ociRegistrySecret has no effect in Muster, which stores the files "+
			"of Bundles in the hub: remove the field; %s", shrink)
		return nil
	}
	r.source = &clone.Repository{URL: address, Branch: cmp.Or(r.repo.Spec.Branch, fleet.DefaultBranch), Revision: r.repo.Spec.Revision,
		CABundle: r.repo.Spec.CABundle, Insecure: r.repo.Spec.InsecureSkipTLSVerify, Dialer: r.Dialer, Directory: r.Directory,
		Cache: r.Cache, Owner: string(r.repo.UID)}
	return nil
}

// restrict applies the Policies and GitRepoRestrictions of the namespace. Their defaults fill the
// empty fields of the GitRepo.
func (r *reconciliation) restrict(ctx context.Context) error {
	var policies fleet.PolicyList
	if err := r.List(ctx, &policies, client.InNamespace(r.repo.Namespace)); err != nil {
		return fmt.Errorf("listing the Policies: %w", err)
	}
	var restrictions fleet.GitRepoRestrictionList
	if err := r.List(ctx, &restrictions, client.InNamespace(r.repo.Namespace)); err != nil {
		return fmt.Errorf("listing the GitRepoRestrictions: %w", err)
	}
	spec := &r.repo.Spec
	r.policies, r.restrictions = policy.Unite(policies.Items), policy.UniteRestrictions(restrictions.Items)
	allowed := policy.GitRepo{Repo: spec.Repo, ServiceAccount: spec.ServiceAccount, ClientSecretName: spec.ClientSecretName,
		TargetNamespace: spec.TargetNamespace}
	for _, rules := range []policy.Rules{r.policies, r.restrictions} {
		var err error
		if allowed, err = rules.CheckGitRepo(allowed); err != nil {
			r.Fail(ownbundle.ConditionAccepted, reasons.PolicyViolation, "%s", err)
			return nil
		}
		for field, name := range helmSecrets(spec) {
			if err := rules.CheckHelmSecret("spec."+field, name); err != nil {
				r.Fail(ownbundle.ConditionAccepted, reasons.PolicyViolation, "%s", err)
				return nil
			}
		}
	}
	r.repo = r.repo.DeepCopy()
	r.repo.Spec.ServiceAccount, r.repo.Spec.ClientSecretName = allowed.ServiceAccount, allowed.ClientSecretName
	return nil
}

// helmSecrets returns the Secrets for charts by their fields.
func helmSecrets(spec *fleet.GitRepoSpec) map[string]string {
	return map[string]string{"helmSecretName": spec.HelmSecretName, "helmSecretNameForPaths": spec.HelmSecretNameForPaths}
}

// authenticate reads the credentials before a request to the repository. A Secret of the default
// name need not exist.
func (r *reconciliation) authenticate(ctx context.Context) error {
	key := types.NamespacedName{Namespace: r.repo.Namespace, Name: cmp.Or(r.repo.Spec.ClientSecretName, fleet.DefaultGitSecret)}
	secret := &corev1.Secret{}
	err := r.Live.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err) && !kube.NotServed(err) && r.repo.Spec.ClientSecretName == "":
		return nil
	case apierrors.IsNotFound(err) && !kube.NotServed(err):
		r.Fail(ownbundle.ConditionAccepted, reasons.GitCredentialsUnusable, "spec.clientSecretName names Secret %s, which does not exist: "+
			"create it, of type %s or %s", key, corev1.SecretTypeBasicAuth, corev1.SecretTypeSSHAuth)
		return nil
	case apierrors.IsForbidden(err):
		r.Fail(ownbundle.ConditionAccepted, reasons.GitCredentialsUnusable, "the hub has no right to read Secret %s yet: the hub grants it "+
			"when it sees the GitRepo", key)
		r.Problem.Again = ownbundle.GrantAgain
		return nil
	case err != nil:
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	hosts, err := r.knownHosts(ctx)
	if err != nil {
		return err
	}
	credentials, err := clone.ParseCredentials(secret, hosts)
	if err == nil {
		credentials, err = r.Apps.Login(ctx, credentials, r.source.URL)
	}
	if err != nil {
		r.Fail(ownbundle.ConditionAccepted, reasons.GitCredentialsUnusable, "%s", err)
	}
	r.source.Credentials = credentials
	return nil
}
