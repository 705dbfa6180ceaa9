package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// united unites Policies written as YAML by name, as an API server returns them.
func united(t *testing.T, policies map[string]string) Rules {
	t.Helper()
	var all []fleet.Policy
	for name, text := range policies {
		p := fleet.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		parse(t, text, &p)
		all = append(all, p)
	}
	return Unite(all)
}

func parse(t *testing.T, text string, into any) {
	t.Helper()
	plain, err := yaml.YAMLToJSONStrict([]byte(text))
	if err == nil {
		err = json.Unmarshal(plain, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// says fails the test unless an error has all parts; without parts there must be none.
func says(t *testing.T, err error, parts ...string) {
	t.Helper()
	if len(parts) == 0 && err != nil {
		t.Errorf("refused: %v", err)
	}
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("it says %v, not %q", err, part)
		}
	}
}

type policies = map[string]string

func TestWhatPoliciesAllowABundle(t *testing.T) {
	team := policies{"team": "spec: {requireServiceAccount: true, allowedServiceAccounts: [web, job]}"}
	for name, c := range map[string]struct {
		policies policies
		bundle   string
		says     []string
	}{
		"no Policy allows everything":     {nil, "serviceAccount: any\ndownstreamResources: [{kind: Secret, name: a}]", nil},
		"a named account that is allowed": {team, "serviceAccount: web", nil},
		"rules at the top count as in spec": {
			policies{"team": "requireServiceAccount: true"}, "paused: true", []string{"Policy team", ": set spec.serviceAccount"},
		},
		"an account that is not in the list": {
			team, "serviceAccount: admin", []string{`spec.serviceAccount is "admin"`, "Policy team", "job, web"},
		},
		"no account where one is required": {
			team, "paused: true", []string{"spec.serviceAccount is not set", "Policy team", "requires", "job, web"},
		},
		"no account of one target": {
			team, "targets: [{clusterName: a, serviceAccount: web}, {clusterName: b}]", []string{"spec.serviceAccount is not set", "requires"},
		},
		"accounts of all targets": {team, "targets: [{clusterName: a, serviceAccount: web}, {clusterName: b, serviceAccount: job}]", nil},
		"a target overrides the account": {
			team, "serviceAccount: web\ntargets: [{clusterName: a}, {clusterName: b, serviceAccount: admin}]",
			[]string{`spec.targets[1].serviceAccount is "admin"`},
		},
		"every target overrides a refused account": {team, "serviceAccount: admin\ntargets: [{clusterName: a, serviceAccount: web}]", nil},
		"a target that deploys nothing does not count": {
			team, "serviceAccount: web\ntargets: [{clusterName: a, doNotDeploy: true, serviceAccount: admin}]", nil,
		},
		"lists are added": {
			policies{"a": "spec: {allowedServiceAccounts: [web]}", "b": "spec: {allowedServiceAccounts: [job]}"}, "serviceAccount: job", nil,
		},
		"both Policies of a list are named": {
			policies{"b": "spec: {allowedServiceAccounts: [job]}", "a": "spec: {allowedServiceAccounts: [web]}"}, "serviceAccount: other",
			[]string{"the Policies a, b"},
		},
		"an empty list allows none": {
			policies{"a": "spec: {allowedServiceAccounts: []}"}, "serviceAccount: web", []string{"Policy a", "remove spec.serviceAccount"},
		},
		"a list that is null is no list": {policies{"a": "spec: {allowedServiceAccounts: null}"}, "serviceAccount: web", nil},
		"a list requires no account":     {policies{"a": "spec: {allowedServiceAccounts: [web]}"}, "paused: true", nil},
		"a requirement of any Policy counts": {
			policies{"a": "spec: {requireServiceAccount: false}", "b": "spec: {requireServiceAccount: true}"}, "paused: true", []string{"Policy b"},
		},
		"a default meets the requirement, and is always allowed": {
			policies{"a": "spec: {requireServiceAccount: true, allowedServiceAccounts: [web], defaultServiceAccount: base}"}, "paused: true", nil,
		},
		"the default by its name": {
			policies{"a": "spec: {allowedServiceAccounts: [web], defaultServiceAccount: base}"}, "serviceAccount: base", nil,
		},
		"a target namespace of the list": {policies{"a": "spec: {allowedTargetNamespaces: [shop]}"}, "namespace: shop", nil},
		"another target namespace": {
			policies{"a": "spec: {allowedTargetNamespaces: [shop]}"}, "namespace: kube-system",
			[]string{`spec.namespace is "kube-system"`, "Policy a", "one of shop"},
		},
		"defaultNamespace confines nothing": {
			policies{"a": "spec: {allowedTargetNamespaces: [shop]}"}, "defaultNamespace: shop", []string{"spec.namespace is not set"},
		},
		"a selector needs a target namespace": {
			policies{"a": "spec: {allowedTargetNamespaceSelector: {matchLabels: {team: a}}}"}, "defaultNamespace: shop",
			[]string{"spec.namespace is not set", "allowedTargetNamespaceSelector"},
		},
		"a selector leaves the namespace to the agent": {
			policies{"a": "spec: {allowedTargetNamespaceSelector: {matchLabels: {team: a}}}"}, "namespace: shop", nil,
		},
		"an invalid selector refuses": {
			policies{"a": "spec: {allowedTargetNamespaceSelector: {matchExpressions: [{key: a, operator: Near}]}}"}, "namespace: shop",
			[]string{"allowedTargetNamespaceSelector of Policy a", "correct the Policy"},
		},
		"a downstream resource of the list": {
			policies{"a": "spec: {allowedDownstreamResources: [{kind: Secret, name: pull}, {kind: ConfigMap}]}"},
			"downstreamResources: [{kind: Secret, name: pull}, {kind: ConfigMap, name: any}]", nil,
		},
		"another downstream resource": {
			policies{"a": "spec: {allowedDownstreamResources: [{kind: Secret, name: pull}]}"},
			"targets: [{clusterName: a, downstreamResources: [{kind: Secret, name: db}]}]",
			[]string{`spec.targets[0].downstreamResources names Secret "db"`, "Policy a"},
		},
		"a kind that is not listed": {
			policies{"a": "spec: {allowedDownstreamResources: [{kind: ConfigMap}]}"}, "downstreamResources: [{kind: Secret, name: db}]",
			[]string{`Secret "db"`},
		},
		"an empty list of downstream resources": {
			policies{"a": "spec: {allowedDownstreamResources: []}"}, "downstreamResources: [{kind: Secret, name: db}]", []string{`Secret "db"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var spec fleet.BundleSpec
			parse(t, c.bundle, &spec)
			says(t, united(t, c.policies).CheckBundle(&spec), c.says...)
		})
	}
}

func TestWhatPoliciesAddToTheOptions(t *testing.T) {
	for name, c := range map[string]struct {
		policies      policies
		options, want string
	}{
		"nothing":                  {nil, "serviceAccount: own", "serviceAccount: own"},
		"a reason of the author's": {nil, "namespaceCreationForbiddenBy: me", "{}"},
		"the first default by name": {
			policies{"b": "spec: {defaultServiceAccount: b}", "a": "defaultServiceAccount: a"}, "{}", "serviceAccount: a",
		},
		"no default beside another":  {policies{"a": "spec: {defaultServiceAccount: a}"}, "serviceAccount: own", "serviceAccount: own"},
		"a Policy without the field": {policies{"a": "spec: {allowedServiceAccounts: [own]}"}, "createNamespace: true", "createNamespace: true"},
		"an account is required": {
			policies{"a": "spec: {requireServiceAccount: true}"}, "{serviceAccount: own, createNamespace: true}",
			"{serviceAccount: own, createNamespace: false, namespaceCreationForbiddenBy: a}",
		},
		"an account is required, and another Policy allows the creation": {
			policies{"a": "spec: {requireServiceAccount: true}", "b": "spec: {allowNamespaceCreation: true}"}, "serviceAccount: own",
			"serviceAccount: own",
		},
		"two Policies forbid it": {
			policies{"a": "spec: {requireServiceAccount: true}", "b": "spec: {allowNamespaceCreation: false}"}, "serviceAccount: own",
			"{serviceAccount: own, createNamespace: false, namespaceCreationForbiddenBy: 'a, b'}",
		},
		"a selector": {
			policies{"a": "spec: {allowedTargetNamespaceSelector: {matchLabels: {team: a}}}"}, "{}",
			"allowedTargetNamespaceSelector: {matchLabels: {team: a}}",
		},
		"all selectors must match, the Bundle's own, too": {
			policies{"a": "spec: {allowedTargetNamespaceSelector: {matchLabels: {team: a}}}",
				"b": "spec: {allowedTargetNamespaceSelector: {matchExpressions: [{key: env, operator: Exists}]}}"},
			"allowedTargetNamespaceSelector: {matchLabels: {team: b}}",
			`allowedTargetNamespaceSelector: {matchExpressions: [{key: team, operator: In, values: [b]}, {key: team, operator: In, values: [a]},
				{key: env, operator: Exists}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var options, want fleet.BundleDeploymentOptions
			parse(t, c.options, &options)
			parse(t, c.want, &want)
			rules := united(t, c.policies)
			rules.Completion().Apply(&options)
			if diff := cmp.Diff(want, options); diff != "" {
				t.Error(diff)
			}
			if !rules.Completion().Equal(united(t, c.policies).Completion()) {
				t.Error("the same Policies add something else")
			}
			if c.want != c.options && c.policies != nil && rules.Completion().Equal(Completion{}) {
				t.Error("a change of the Policies is not noticed")
			}
		})
	}
}

func TestWhatPoliciesAllowAGitRepo(t *testing.T) {
	rules := policies{"a": `spec: {requireServiceAccount: true, allowedServiceAccounts: [web], allowedTargetNamespaces: [shop],
		gitRepo: {defaultServiceAccount: git, defaultClientSecretName: key, allowedClientSecretNames: [own],
			allowedRepoPatterns: ["https://git.example.com/team/.*", "("]}}`, "b": "spec: {defaultServiceAccount: other}"}
	fits := GitRepo{Repo: "https://git.example.com/team/a", TargetNamespace: "shop"}
	for name, c := range map[string]struct {
		change func(*GitRepo)
		says   []string
	}{
		"defaults":        {func(*GitRepo) {}, nil},
		"own values":      {func(g *GitRepo) { g.ServiceAccount, g.ClientSecretName = "web", "own" }, nil},
		"another account": {func(g *GitRepo) { g.ServiceAccount = "admin" }, []string{`spec.serviceAccount is "admin"`}},
		"another Secret": {
			func(g *GitRepo) { g.ClientSecretName = "theirs" }, []string{`spec.clientSecretName is "theirs"`, "one of own"},
		},
		"another namespace":  {func(g *GitRepo) { g.TargetNamespace = "" }, []string{"spec.targetNamespace is not set"}},
		"another repository": {func(g *GitRepo) { g.Repo = "https://evil.example.com/" }, []string{"spec.repo", "Policy a"}},
		"patterns are anchored": {
			func(g *GitRepo) { g.Repo = "https://evil.example.com/?https://git.example.com/team/a" }, []string{"spec.repo"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := fits
			c.change(&asked)
			got, err := united(t, rules).CheckGitRepo(asked)
			says(t, err, c.says...)
			if name == "defaults" && (got.ServiceAccount != "git" || got.ClientSecretName != "key") {
				t.Errorf("it has %+v", got)
			}
		})
	}
}

func TestWhatPoliciesAllowAHelmOp(t *testing.T) {
	rules := policies{"a": `spec: {allowedDownstreamResources: [], helmOp: {defaultServiceAccount: helm, defaultHelmSecretName: login,
		allowedHelmSecretNames: [own], allowedHelmRepoPatterns: ["https://charts.example.com/.*", "oci://r.example.com/.*"],
		allowedChartPatterns: ["web", "oci://.*"]}}`}
	for name, c := range map[string]struct {
		asked HelmOp
		says  []string
	}{
		"a chart of a repository":   {helmOp("https://charts.example.com/a", "web"), nil},
		"a chart with an address":   {helmOp("", "oci://r.example.com/web"), nil},
		"another chart":             {helmOp("https://charts.example.com/a", "db"), []string{`spec.helm.chart is "db"`, "Policy a"}},
		"another repository":        {helmOp("https://evil.example.com", "web"), []string{"spec.helm.repo"}},
		"a chart elsewhere":         {helmOp("", "oci://evil.example.com/web"), []string{"spec.helm.chart"}},
		"another Secret":            {HelmOp{HelmSecretName: "theirs"}, []string{"spec.helmSecretName"}},
		"a downstream resource":     {downstream(helmOp("https://charts.example.com/a", "web")), []string{"spec.downstreamResources"}},
		"an account that it names":  {HelmOp{Options: fleet.BundleDeploymentOptions{ServiceAccount: "own"}}, []string{"spec.helm.chart"}},
		"a pattern in the middle":   {helmOp("https://charts.example.com/a", "my-web-2"), []string{"spec.helm.chart"}},
		"a chart without a pattern": {helmOp("https://charts.example.com/a", ""), []string{"spec.helm.chart"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := united(t, rules).CheckHelmOp(c.asked)
			says(t, err, c.says...)
			if err == nil && (got.Options.ServiceAccount != "helm" || got.HelmSecretName != "login") {
				t.Errorf("it has %+v", got)
			}
		})
	}
}

func helmOp(repo, chart string) HelmOp {
	return HelmOp{Options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Repo: repo, Chart: chart}}}
}

func downstream(h HelmOp) HelmOp {
	h.Options.DownstreamResources = []fleet.DownstreamResource{{Kind: "Secret", Name: "a"}}
	return h
}

func TestWhatAPolicySaysOfItself(t *testing.T) {
	for name, c := range map[string]struct{ policy, ready string }{
		"all is well": {"spec: {requireServiceAccount: true}", ""},
		"a pattern":   {`spec: {gitRepo: {allowedRepoPatterns: ["("]}}`, "gitRepo.allowedRepoPatterns[0]: "},
		"charts":      {`helmOp: {allowedChartPatterns: ["a", "["]}`, "helmOp.allowedChartPatterns[1]: "},
		"a selector": {
			"spec: {allowedTargetNamespaceSelector: {matchExpressions: [{key: a, operator: Near}]}}", "allowedTargetNamespaceSelector: ",
		},
		"a list without bite": {"spec: {allowedServiceAccounts: [a]}", "set requireServiceAccount or defaultServiceAccount"},
	} {
		t.Run(name, func(t *testing.T) {
			var p fleet.Policy
			parse(t, c.policy, &p)
			if is := ready(&p); !strings.Contains(is.Message, c.ready) || (c.ready == "") != (is.Message == "") {
				t.Errorf("Ready is %+v", is)
			}
		})
	}
}

func TestACommitHasOnlyCopiedWhatAPolicyNames(t *testing.T) {
	named := "allowedDownstreamResources: [{kind: Secret, name: pull}, {kind: ConfigMap}]"
	for name, row := range map[string]struct{ policy, bundle, refused string }{
		"nothing":         {"", "{}", ""},
		"a Secret":        {"", "downstreamResources: [{kind: Secret, name: pull}]", "Secret \"pull\""},
		"a named Secret":  {named, "downstreamResources: [{kind: Secret, name: pull}]", ""},
		"a login":         {"", "helm: {secretName: pull}", "Secret \"pull\""},
		"a named login":   {named, "helm: {secretName: pull}", ""},
		"in a target":     {named, "targets: [{downstreamResources: [{kind: Secret, name: other}]}]", "Secret \"other\""},
		"of a whole kind": {named, "downstreamResources: [{kind: ConfigMap, name: any}]", "ConfigMap \"any\""},
	} {
		var p fleet.Policy
		parse(t, row.policy, &p)
		var spec fleet.BundleSpec
		parse(t, row.bundle, &spec)
		err := Unite([]fleet.Policy{p}).CheckCommit(&spec)
		if (err == nil) != (row.refused == "") || err != nil && !strings.Contains(err.Error(), row.refused+", and a commit gives no right") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
