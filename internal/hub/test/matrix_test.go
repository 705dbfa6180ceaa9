package hub_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// Kinds of identities that the hub issues or admits, and users without any rights from Muster.
const (
	nativeMember  = "native agent of a Cluster"
	keylessMember = "native agent of a Cluster that has no key"
	legacyMember  = "Rancher Fleet's agent of a Cluster"
	unknownMember = "agent of a MemberCluster that has not shown whose it is"
	secondMember  = "native agent of a MemberCluster"
	exchangedOne  = "native agent of a MemberCluster with the credential that the hub has issued to its key"
	returningOne  = "native agent of a MemberCluster with the token to come back with"
	confinedOne   = "native agent of a quarantined Cluster"
	confinedOld   = "Rancher Fleet's agent of a quarantined Cluster"
	confinedAny   = "agent of a quarantined MemberCluster that has not shown whose it is"
	tokenHolder   = "registration token"
	importHolder  = "token of an import"
	repoReader    = "program that reads repositories"
	backupTaker   = "job that takes backups"
	nobody        = "account without rights"
	stranger      = "nobody who has logged in"
)

// nativeOwn is what a native agent of a Cluster may do in its member namespace.
var nativeOwn = []string{
	"get leases.coordination.k8s.io heartbeat", "patch leases.coordination.k8s.io heartbeat",
	"get internalmemberclusters.cluster.kubernetes-fleet.io", "list internalmemberclusters.cluster.kubernetes-fleet.io",
	"watch internalmemberclusters.cluster.kubernetes-fleet.io",
	"patch internalmemberclusters/status.cluster.kubernetes-fleet.io",
	"get works.placement.kubernetes-fleet.io", "list works.placement.kubernetes-fleet.io", "watch works.placement.kubernetes-fleet.io",
	"patch works.placement.kubernetes-fleet.io",
	"patch works/status.placement.kubernetes-fleet.io",
	"get serviceaccounts agent", "get secrets", "get configmaps", "get namespaces",
	"get bundledeployments.fleet.cattle.io", "list bundledeployments.fleet.cattle.io", "watch bundledeployments.fleet.cattle.io",
	"patch bundledeployments/status.fleet.cattle.io",
}

// beats is what the agent of a quarantined member may do in its member namespace.
var beats = []string{
	"get leases.coordination.k8s.io heartbeat", "patch leases.coordination.k8s.io heartbeat",
	"get internalmemberclusters.cluster.kubernetes-fleet.io", "list internalmemberclusters.cluster.kubernetes-fleet.io",
	"watch internalmemberclusters.cluster.kubernetes-fleet.io",
	"patch internalmemberclusters/status.cluster.kubernetes-fleet.io",
}

// secondOwn is what a native agent of a MemberCluster may do in its member namespace.
var secondOwn = []string{
	"get leases.coordination.k8s.io heartbeat", "patch leases.coordination.k8s.io heartbeat", "get namespaces",
	"get internalmemberclusters.cluster.kubernetes-fleet.io", "list internalmemberclusters.cluster.kubernetes-fleet.io",
	"watch internalmemberclusters.cluster.kubernetes-fleet.io",
	"patch internalmemberclusters/status.cluster.kubernetes-fleet.io", "update internalmemberclusters/status.cluster.kubernetes-fleet.io",
	"get works.placement.kubernetes-fleet.io", "list works.placement.kubernetes-fleet.io", "watch works.placement.kubernetes-fleet.io",
	"patch works.placement.kubernetes-fleet.io",
	"patch works/status.placement.kubernetes-fleet.io",
	"get bundledeployments.fleet.cattle.io", "list bundledeployments.fleet.cattle.io", "watch bundledeployments.fleet.cattle.io",
	"patch bundledeployments/status.fleet.cattle.io",
}

// allowed is all that each kind of identity may do: in every namespace and on objects without one,
// in its own member namespace, and in its workspace. In all other places it may do nothing. A
// right that is given anew fails the test until it stands here. $CLUSTER, $TOKEN and $REQUEST are
// its own.
var allowed = map[string]struct{ everywhere, own, workspace []string }{
	nativeMember: {everywhere: []string{"get contents.fleet.cattle.io"}, own: nativeOwn},
	keylessMember: {
		everywhere: []string{"get contents.fleet.cattle.io"}, own: append(slices.Clone(nativeOwn), "create serviceaccounts/token agent"),
	},
	legacyMember: {everywhere: []string{"get contents.fleet.cattle.io"}, own: []string{
		"get secrets", "get configmaps",
		"get bundledeployments.fleet.cattle.io", "list bundledeployments.fleet.cattle.io", "watch bundledeployments.fleet.cattle.io",
		"patch bundledeployments/status.fleet.cattle.io", "update bundledeployments/status.fleet.cattle.io",
	}, workspace: []string{"patch clusters/status.fleet.cattle.io $CLUSTER"}},
	unknownMember: {own: []string{
		"get leases.coordination.k8s.io heartbeat", "patch leases.coordination.k8s.io heartbeat",
		"get internalmemberclusters.cluster.kubernetes-fleet.io", "list internalmemberclusters.cluster.kubernetes-fleet.io",
		"watch internalmemberclusters.cluster.kubernetes-fleet.io",
		"update internalmemberclusters.cluster.kubernetes-fleet.io",
		"patch internalmemberclusters/status.cluster.kubernetes-fleet.io", "update internalmemberclusters/status.cluster.kubernetes-fleet.io",
		"get works.placement.kubernetes-fleet.io", "list works.placement.kubernetes-fleet.io", "watch works.placement.kubernetes-fleet.io",
		"update works.placement.kubernetes-fleet.io", "patch works.placement.kubernetes-fleet.io",
		"update works/status.placement.kubernetes-fleet.io", "patch works/status.placement.kubernetes-fleet.io",
		"create events", "patch events",
	}},
	secondMember: {own: secondOwn}, exchangedOne: {own: secondOwn},
	returningOne: {own: []string{"get internalmemberclusters.cluster.kubernetes-fleet.io"}}, // its namespace has only one
	confinedOne:  {own: beats},
	confinedOld:  {workspace: []string{"patch clusters/status.fleet.cattle.io $CLUSTER"}},
	confinedAny: {own: append(slices.Clone(beats), "update internalmemberclusters.cluster.kubernetes-fleet.io",
		"update internalmemberclusters/status.cluster.kubernetes-fleet.io")},
	tokenHolder: {workspace: []string{
		"create clusterregistrations.fleet.cattle.io", "register clusterregistrationtokens.fleet.cattle.io $TOKEN",
		"get clusterregistrations.fleet.cattle.io $REQUEST", "list clusterregistrations.fleet.cattle.io $REQUEST",
		"watch clusterregistrations.fleet.cattle.io $REQUEST",
	}},
	importHolder: {
		workspace: []string{"create clusterregistrations.fleet.cattle.io", "register clusterregistrationtokens.fleet.cattle.io $TOKEN"},
	},
	repoReader: {
		everywhere: []string{
			"get gitrepos.fleet.cattle.io", "list gitrepos.fleet.cattle.io", "watch gitrepos.fleet.cattle.io",
			"get gitreporestrictions.fleet.cattle.io", "list gitreporestrictions.fleet.cattle.io", "watch gitreporestrictions.fleet.cattle.io",
			"get policies.fleet.cattle.io", "list policies.fleet.cattle.io", "watch policies.fleet.cattle.io",
			"get helmops.fleet.cattle.io", "list helmops.fleet.cattle.io", "watch helmops.fleet.cattle.io",
			"patch gitrepos/status.fleet.cattle.io", "patch helmops/status.fleet.cattle.io", "get bundles.fleet.cattle.io",
			"list bundles.fleet.cattle.io", "watch bundles.fleet.cattle.io",
			"create bundles.fleet.cattle.io", "update bundles.fleet.cattle.io", "delete bundles.fleet.cattle.io",
			"create events.events.k8s.io", "patch events.events.k8s.io",
		},
		own: []string{
			"create leases.coordination.k8s.io", "get leases.coordination.k8s.io muster-gitops", "update leases.coordination.k8s.io muster-gitops",
			"create events", "patch events", "get configmaps known-hosts", "list configmaps known-hosts", "watch configmaps known-hosts",
			"get secrets gitjob-webhook",
		},
		workspace: []string{"get secrets gitcredential"},
	},
	backupTaker: {
		everywhere: []string{
			"list clusterregistrationtokens.fleet.cattle.io", "list policies.fleet.cattle.io", "list schedules.fleet.cattle.io",
			"list gitreporestrictions.fleet.cattle.io", "list clustergroups.fleet.cattle.io", "list bundlenamespacemappings.fleet.cattle.io",
			"list gitrepos.fleet.cattle.io", "list helmops.fleet.cattle.io", "list imagescans.fleet.cattle.io",
			"list bundles.fleet.cattle.io", "list clusters.fleet.cattle.io", "list memberclusters.cluster.kubernetes-fleet.io",
			"list internalmemberclusters.cluster.kubernetes-fleet.io", "list clusterresourceoverrides.placement.kubernetes-fleet.io",
			"list resourceoverrides.placement.kubernetes-fleet.io", "list clusterresourceenvelopes.placement.kubernetes-fleet.io",
			"list resourceenvelopes.placement.kubernetes-fleet.io",
			"list clusterresourceplacementdisruptionbudgets.placement.kubernetes-fleet.io",
			"list clusterstagedupdatestrategies.placement.kubernetes-fleet.io", "list stagedupdatestrategies.placement.kubernetes-fleet.io",
			"list clusterresourceplacements.placement.kubernetes-fleet.io", "list resourceplacements.placement.kubernetes-fleet.io",
			"list auditentries.muster-fleet.github.io", "list namespaces", "list serviceaccounts", "get namespaces kube-system",
		},
		own: []string{"get secrets muster-hub-identity"},
	},
	nobody: {}, stranger: {},
}

// whatKubernetesAllows lists the rights of any authenticated user: to query their own name and
// rights.
var whatKubernetesAllows = []string{
	"create selfsubjectaccessreviews.authorization.k8s.io", "create selfsubjectreviews.authentication.k8s.io",
	"create selfsubjectrulesreviews.authorization.k8s.io",
}

// unlisted are verbs that RBAC knows and discovery does not.
var unlisted = []string{
	"impersonate users", "impersonate groups", "impersonate uids.authentication.k8s.io", "impersonate serviceaccounts",
	"bind clusterroles.rbac.authorization.k8s.io",
	"escalate clusterroles.rbac.authorization.k8s.io", "bind roles.rbac.authorization.k8s.io", "escalate roles.rbac.authorization.k8s.io",
	"approve signers.certificates.k8s.io", "sign signers.certificates.k8s.io",
	"approve clusterregistrations.fleet.cattle.io", "register clusterregistrationtokens.fleet.cattle.io",
}

// identity is a user whose rights the matrix tries.
type identity struct {
	kind, user string
	groups     []string
	// own is the identity's member namespace; empty if it has none.
	own string
	// names replaces the identity's own names with the variables of allowed.
	names *strings.Replacer
	// beat sends a heartbeat; nil if the identity's rights do not depend on that.
	beat func() error
}

func account(kind, namespace, name, own string, names ...string) identity {
	return identity{kind: kind, user: "system:serviceaccount:" + namespace + ":" + name, own: own, names: strings.NewReplacer(names...),
		groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}}
}

// TestNoIdentityReachesAnotherMember queries the API server for the rights of each kind of identity
// in its own places, in the places of others, and in all. It compares the rights with the list
// above. Then it tries every resource and verb of the API server in the place of another identity,
// and checks that each attempt is denied.
func TestNoIdentityReachesAnotherMember(t *testing.T) {
	f := newFixture(t)
	who, places := f.everybody()
	served := f.servedRights()
	for _, i := range who {
		t.Run(i.kind, func(t *testing.T) {
			t.Parallel()
			f := f
			f.t = t
			m := matrix{f, places, served}
			m.compareRules(i)
			m.tryAllServed(i)
		})
	}
}

// everybody returns an identity of each kind, two of some, as soon as each of them has what it
// gets, and the namespaces in which they try.
func (f fixture) everybody() ([]identity, []string) {
	f.t.Helper()
	elsewhere := f.neighbour()
	elsewhere.token("new-token", "")
	_, values := f.token("new-token", "")
	f.join(values, map[string]any{"clientID": "a"})
	f.join(values, map[string]any{"clientID": "b"})
	legacy := f.legacyJoin(values, "legacy")
	f.eventually("Rancher Fleet's agent beats", func() error { return legacy.beat(time.Now()) })
	unknown, native := f.register("unknown"), f.register("native")
	unknown.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	f.eventually("the agent answers", func() error { return native.answer(metav1.ConditionTrue, "v1") })
	var who []identity
	for id, kind := range map[string]string{"a": nativeMember, "b": nativeMember, "legacy": legacyMember} {
		cluster := f.untilReady(naming.Cluster(id), "Ready")
		who = append(who, account(kind, cluster.Status.Namespace, naming.MemberServiceAccount, cluster.Status.Namespace,
			cluster.Name, "$CLUSTER"))
	}
	f.bundle("app", configMap+"targets: [{clusterSelector: {}}]") // with the first Bundle members may read what is in it
	who = append(who, f.confinedOnes(values)...)
	careful := f.stampingToken("careful", fleet.ClusterRegistrationTokenSpec{Approval: fleet.ApprovalManual})
	request := f.asking(careful, "waits")
	f.untilState(&request, fleet.RegistrationPending, "ApprovalRequired")
	cluster := f.clusters()[0]
	imported := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: naming.ImportToken(cluster.Name),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&cluster, fleet.GroupVersion.WithKind("Cluster"))}}}
	f.check(f.Create(context.Background(), imported))
	f.eventually("the token of the import is ready", func() error { return f.tokenIs(imported.Name, "Ready") })
	for kind, name := range map[string]string{tokenHolder: "careful", importHolder: imported.Name} {
		token := &fleet.ClusterRegistrationToken{}
		f.check(f.get(token, f.workspace, name))
		who = append(who, account(kind, f.workspace, naming.TokenServiceAccount(name, string(token.UID)), "", name,
			"$TOKEN", request.Name, "$REQUEST"))
	}
	bystander := f.namespace("bystander-")
	keyless := f.asking(values, "keyless")
	f.untilState(&keyless, fleet.RegistrationGranted, "Granted")
	ofKeyless := naming.MemberNamespace(f.workspace, keyless.Status.ClusterName)
	second := account(secondMember, naming.MemberSystemNamespace, native.name, native.namespaceName())
	// who is lost may come back with another agent, which needs more
	second.beat = func() error { return native.answer(metav1.ConditionTrue, "v1") }
	x := f.exchanging("exchanged")
	who = append(who, account(exchangedOne, x.namespaceName(), naming.MemberServiceAccount, x.namespaceName()))
	who = append(who, account(returningOne, x.namespaceName(), naming.MemberReconnectAccount, x.namespaceName()))
	f.gitRepo("read", "https://127.0.0.1:1/read", nil)
	f.eventually("the right on its Secret is there", func() error {
		return f.get(&rbacv1.RoleBinding{}, f.workspace, naming.GitOpsAccount)
	})
	who = append(who, account(repoReader, naming.SystemNamespace, naming.GitOpsAccount, naming.SystemNamespace))
	f.cluster.InstallTemplate(f.t, "fleet/templates/backup-rbac.yaml")
	who = append(who, account(backupTaker, naming.SystemNamespace, "fleet-backup", naming.SystemNamespace))
	who = append(who, account(keylessMember, ofKeyless, naming.MemberServiceAccount, ofKeyless),
		account(unknownMember, naming.MemberSystemNamespace, unknown.name, unknown.namespaceName()),
		second, account(nobody, bystander, "default", ""),
		identity{kind: stranger, user: "system:anonymous", groups: []string{"system:unauthenticated"}, names: strings.NewReplacer()})
	places := []string{f.workspace, elsewhere.workspace, bystander, naming.SystemNamespace,
		naming.RegistrationNamespace(naming.SystemNamespace),
		naming.MemberSystemNamespace, metav1.NamespaceDefault, metav1.NamespaceSystem}
	for _, i := range who {
		if i.own != "" {
			places = append(places, i.own)
		}
	}
	return who, places
}

// right is one verb on one resource, as the API server serves it.
type right struct {
	verb, group, resource string
	namespaced            bool
}

func (r right) String() string {
	if r.group == "" {
		return r.verb + " " + r.resource
	}
	return r.verb + " " + r.resource + "." + r.group
}

// servedRights are all resources that the API server serves, with all verbs.
func (f fixture) servedRights() []right {
	f.t.Helper()
	served, err := discovery.NewDiscoveryClientForConfig(f.cluster.Config)
	f.check(err)
	_, lists, err := served.ServerGroupsAndResources()
	f.check(err)
	known := map[right]bool{}
	for _, list := range lists {
		group, _, grouped := strings.Cut(list.GroupVersion, "/")
		if !grouped {
			group = ""
		}
		for _, resource := range list.APIResources {
			for _, verb := range resource.Verbs {
				known[right{verb, group, resource.Name, resource.Namespaced}] = true
			}
		}
	}
	for _, text := range unlisted {
		verb, resource, _ := strings.Cut(text, " ")
		resource, group, _ := strings.Cut(resource, ".")
		known[right{verb, group, resource, group == "fleet.cattle.io" || resource == "roles" || resource == "serviceaccounts"}] = true
	}
	if len(known) < 500 {
		f.t.Errorf("discovery knows %d verbs of resources only", len(known))
	}
	return slices.SortedFunc(maps.Keys(known), func(a, b right) int { return strings.Compare(a.String(), b.String()) })
}

type matrix struct {
	fixture
	places []string
	served []right
}

// mayHere is what an identity may do in a namespace.
func (m matrix) mayHere(i identity, namespace string) []string {
	list := allowed[i.kind]
	may := slices.Clone(list.everywhere)
	if i.kind != stranger {
		may = append(may, whatKubernetesAllows...)
	}
	switch namespace {
	case i.own:
		may = append(may, list.own...)
	case m.workspace:
		may = append(may, list.workspace...)
	}
	slices.Sort(may)
	return may
}

// compareRules compares all that RBAC gives an identity in each place with what the list allows. In
// its own place it waits for what the hub is about to give.
func (m matrix) compareRules(i identity) {
	if i.kind == stranger { // who may not even ask
		return
	}
	config := rest.CopyConfig(m.cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: i.user, Groups: i.groups}
	as, err := client.New(config, client.Options{Scheme: m.Scheme(), Mapper: m.RESTMapper()})
	m.check(err)
	compare := func(namespace string) error {
		if i.beat != nil {
			if err := i.beat(); err != nil {
				return err
			}
		}
		review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
		if err := as.Create(context.Background(), review); err != nil {
			return err
		}
		got := map[string]bool{}
		for _, rule := range review.Status.ResourceRules {
			for _, text := range m.expand(rule) {
				got[i.names.Replace(text)] = true
			}
		}
		if diff := gocmp.Diff(m.mayHere(i, namespace), slices.Sorted(maps.Keys(got))); diff != "" {
			return fmt.Errorf("the %s has in namespace %s other rights than are listed (-want +got):\n%s", i.kind, namespace, diff)
		}
		return nil
	}
	m.eventually("it has its own rights", func() error { return compare(cmp.Or(i.own, m.workspace)) })
	for _, namespace := range m.places {
		if err := compare(namespace); err != nil {
			m.t.Error(err)
		}
	}
}

// expand says what a rule allows, a line for each verb, resource and name; instead of a * all
// that it stands for.
func (m matrix) expand(rule authorizationv1.ResourceRule) []string {
	matches := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	var texts []string
	add := func(text string) {
		if len(rule.ResourceNames) == 0 {
			texts = append(texts, text)
		}
		for _, name := range rule.ResourceNames {
			texts = append(texts, text+" "+name)
		}
	}
	for _, r := range m.served {
		if matches(rule.APIGroups, r.group) && matches(rule.Resources, r.resource) && matches(rule.Verbs, r.verb) {
			add(r.String())
		}
	}
	for _, verb := range rule.Verbs { // also what is not served
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				add(right{verb: verb, group: group, resource: resource}.String())
			}
		}
	}
	return texts
}

// tryAllServed asks for every verb of every resource, without a name, whether the identity may do
// it: for what has no namespace, or in all namespaces, and in one of the places of others, a
// different one each time.
func (m matrix) tryAllServed(i identity) {
	var foreign []string
	for _, namespace := range m.places {
		if namespace != i.own && namespace != m.workspace {
			foreign = append(foreign, namespace)
		}
	}
	may := m.mayHere(i, "")
	questions := make(chan authorizationv1.ResourceAttributes)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for question := range questions {
				m.denies(i, question, may)
			}
		})
	}
	for number, r := range m.served {
		resource, subresource, _ := strings.Cut(r.resource, "/")
		question := authorizationv1.ResourceAttributes{Verb: r.verb, Group: r.group, Version: "*", Resource: resource, Subresource: subresource}
		if question.Namespace = foreign[number%len(foreign)]; !r.namespaced || number%4 == 0 {
			question.Namespace = ""
		}
		questions <- question
	}
	close(questions)
	workers.Wait()
}

// denies fails unless the API server denies what is not listed.
func (m matrix) denies(i identity, question authorizationv1.ResourceAttributes, may []string) {
	review := &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: i.user, Groups: i.groups, ResourceAttributes: &question},
	}
	resource := strings.TrimSuffix(question.Resource+"/"+question.Subresource, "/")
	text := right{verb: question.Verb, group: question.Group, resource: resource}.String()
	if err := m.Create(context.Background(), review); err != nil {
		m.t.Errorf("asking whether the %s may %s: %v", i.kind, text, err)
	} else if review.Status.Allowed != slices.Contains(may, text) {
		m.t.Errorf("the %s may %s in namespace %q: %t (%s)", i.kind, text, question.Namespace, review.Status.Allowed, review.Status.Reason)
	}
}
