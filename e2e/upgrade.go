package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// previousTag is the tag of the images from the release before this one.
const previousTag = "previous"

// previousRelease returns the directory with its checkout.
func (e *env) previousRelease() string { return filepath.Join(e.work, "previous") }

// revision returns the commit to upgrade from.
func (e *env) revision(ctx context.Context) (string, error) {
	git := func(args ...string) string {
		out, err := e.command(ctx, nil, "git", append([]string{"-C", e.root}, args...)...).Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	if e.from != "" {
		if found := git("rev-parse", "--verify", "--quiet", e.from+"^{commit}"); found != "" {
			return found, nil
		}
		return "", fmt.Errorf("-from %s is no commit of this repository", e.from)
	}
	head := git("rev-parse", "--verify", "--quiet", "HEAD")
	if base := git("merge-base", "HEAD", "main"); base != "" && base != head {
		return base, nil
	}
	if before := git("rev-parse", "--verify", "--quiet", "HEAD~1^{commit}"); before != "" {
		return before, nil
	}
	return "", skipped("there is no commit before this one here, as in a shallow clone; fetch more, or give one with -from")
}

// buildPrevious builds charts and images of an earlier commit.
func (e *env) buildPrevious(ctx context.Context) (string, error) {
	revision, err := e.revision(ctx)
	if err != nil {
		return "", err
	}
	directory := e.previousRelease()
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return "", err
	}
	_, err = e.sh(ctx, nil, `
git -C "`+e.root+`" archive `+revision+` | tar -x -C "`+directory+`"
test -d "`+directory+`/hack/images" || { echo "commit `+revision+` builds no images" >&2; exit 1; }
cd "`+directory+`/hack/images"
go run . -source "`+directory+`" -out "`+directory+`/images" -version `+previousTag+
		` -ldflags "-s -w -X github.com/muster-fleet/muster/internal/version.Version=`+previousTag+`"`)
	return revision[:min(len(revision), 7)], err
}

// fleetIsUpgraded has a fleet of its own: a hub, and a member as a Cluster and as a MemberCluster,
// from the previous release.
func fleetIsUpgraded(ctx context.Context, e *env) (string, error) {
	began := time.Now()
	revision, err := e.buildPrevious(ctx)
	if err != nil {
		return "", err
	}
	figure := "from " + revision + ", built in " + seconds(began)
	hub, member := e.newCluster("oldhub"), e.newCluster("oldmember")
	old := *e
	old.hub, old.one, old.two, old.members = hub, member, member, []string{"my-cluster Ready", "member-1 True"}
	for _, c := range []*cluster{old.hub, old.one} {
		for _, image := range []string{"muster-hub", "muster-agent"} {
			c.images = append(c.images, image+":"+previousTag+"="+filepath.Join(e.previousRelease(), "images", image+".tar"))
		}
		if err := e.start(ctx, c); err != nil {
			return "", err
		}
	}
	if err := old.installPrevious(ctx); err != nil {
		return "", err
	}
	running, err := old.deliverBefore(ctx)
	if err != nil {
		return "", err
	}
	record := old.watchMembers(ctx)
	err = old.upgrade(ctx, running)
	if err == nil {
		_, err = old.sh(ctx, old.hub, "helm -n cattle-fleet-system rollback --wait --timeout 90s fleet 1")
	}
	if err == nil {
		err = old.fleetIsWell(ctx)
	}
	if err == nil {
		err = old.goesOnDelivering(ctx, "rollback", running)
	}
	seen, problem := record()
	if err := errors.Join(err, problem); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s; %d states seen, all well", figure, seen), errors.Join(e.remove(old.hub), e.remove(old.one))
}

func (e *env) installPrevious(ctx context.Context) error {
	for _, c := range []*cluster{e.hub, e.one} {
		if _, err := e.sh(ctx, c, restricted("cattle-fleet-system")+restricted("fleet-system")); err != nil {
			return err
		}
	}
	tags := " --set image.tag=" + previousTag + " --set agentImage.tag=" + previousTag + " "
	_, err := e.sh(ctx, nil, strings.ReplaceAll(hubAddress, "--context hub", "--context oldhub")+`
cd "`+e.previousRelease()+`"
on() { KUBECONFIG="`+filepath.Dir(filepath.Dir(e.hub.kubeconfig))+`/$1/kubeconfig" "${@:2}"; }
on oldhub helm -n cattle-fleet-system install --wait fleet-crd charts/fleet-crd
on oldhub helm -n cattle-fleet-system install --wait --set apiServerURL="$API_SERVER_URL" --set apiServerCA="$API_SERVER_CA_DATA"`+
		tags+`fleet charts/fleet
on oldhub kubectl create namespace clusters
on oldhub kubectl apply -f - <<END
kind: ClusterRegistrationToken
apiVersion: fleet.cattle.io/v1alpha1
metadata: {name: new-token, namespace: clusters}
spec: {ttl: 240h}
---
kind: Cluster
apiVersion: fleet.cattle.io/v1alpha1
metadata: {name: my-cluster, namespace: clusters, labels: {env: dev}}
spec: {clientID: really-random}
END
until on oldhub kubectl -n clusters get secret new-token >/dev/null 2>&1; do sleep 0.2; done
on oldhub kubectl -n clusters get secret new-token -o 'jsonpath={.data.values}' | base64 --decode > values.yaml
on oldmember helm -n cattle-fleet-system install --wait --values values.yaml --set clientID=really-random --set image.tag=`+
		previousTag+` fleet-agent charts/fleet-agent
export HUB_CLUSTER_CONTEXT=oldhub HUB_CLUSTER_ADDRESS=$API_SERVER_URL MEMBER_CLUSTER=member-1 MEMBER_CLUSTER_CONTEXT=oldmember `+
		`FLEET_VERSION=`+previousTag+`
./hack/membership/join.sh`)
	if err == nil {
		err = e.fleetIsWell(ctx)
	}
	if err == nil {
		err = e.expect(ctx, e.hub,
			"kubectl -n fleet-local get clusters.fleet.cattle.io local -o 'jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}'", "Ready")
	}
	return err
}

// deliverBefore delivers a Bundle and a placement with the previous release, and returns what they
// run.
func (e *env) deliverBefore(ctx context.Context) (string, error) {
	if _, err := bundleIsDelivered(ctx, e); err != nil {
		return "", err
	}
	if _, err := placementIsApplied(ctx, e); err != nil {
		return "", err
	}
	return e.running(ctx)
}

// running returns the UIDs of the delivered Deployments and their Pods.
func (e *env) running(ctx context.Context) (string, error) {
	return e.sh(ctx, e.one, `for namespace in web shop; do
  kubectl -n $namespace get deployments,pods -o 'jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid}{"\n"}{end}'
done`)
}

// goesOnDelivering expects after a step that the same Pods run. It then delivers a new Bundle, and
// a change of the placed Deployment.
func (e *env) goesOnDelivering(ctx context.Context, step, before string) error {
	now, err := e.running(ctx)
	if err == nil && now != before {
		err = fmt.Errorf("after the %s other objects run; before:\n%s\nnow:\n%s", step, before, now)
	}
	if err == nil {
		_, err = e.sh(ctx, e.hub, `
kubectl apply -f - <<END
kind: Bundle
apiVersion: fleet.cattle.io/v1alpha1
metadata: {name: after-`+step+`, namespace: clusters}
spec:
  defaultNamespace: web
  resources: [{name: config.yaml, content: "{apiVersion: v1, kind: ConfigMap, metadata: {name: after-`+step+`}}"}]
  targets: [{clusterSelector: {matchLabels: {env: dev}}}]
END
kubectl -n clusters wait bundles.fleet.cattle.io after-`+step+` --for=condition=Ready --timeout=90s
kubectl -n shop annotate --overwrite deployment till after=`+step)
	}
	if err == nil {
		_, err = e.sh(ctx, e.one, "kubectl -n web get configmap after-"+step)
	}
	if err != nil {
		return err
	}
	return e.expect(ctx, e.one,
		"kubectl -n shop get deployment till -o 'jsonpath={.metadata.annotations.after} {.status.readyReplicas}'", step+" 1")
}

// upgrade upgrades the hub and then the agents to this release. The hub itself upgrades the agent
// that it installed on its own cluster.
func (e *env) upgrade(ctx context.Context, running string) error {
	if _, err := e.sh(ctx, e.hub, `
helm -n cattle-fleet-system upgrade --wait fleet-crd fleet/fleet-crd
helm -n cattle-fleet-system upgrade --wait --timeout 90s --reset-then-reuse-values --set image.tag="`+e.tag+`" --set agentImage.tag="`+
		e.tag+`" fleet fleet/fleet`); err != nil {
		return err
	}
	if err := e.fleetIsWell(ctx); err != nil {
		return err
	}
	if err := e.goesOnDelivering(ctx, "hub", running); err != nil {
		return err
	}
	// While an agent replaces itself, Helm refuses a user's upgrade: "another operation is in
	// progress".
	if err := e.expect(ctx, e.hub,
		`kubectl -n clusters get clusters.fleet.cattle.io my-cluster -o 'jsonpath={.status.conditions[?(@.type=="AgentUpToDate")].reason}'`,
		"UpToDate"); err != nil {
		return err
	}
	// The hub leaves the agent of an earlier version to the user.
	if err := e.expect(ctx, e.hub, `kubectl get membercluster member-1 `+
		`-o 'jsonpath={.status.conditions[?(@.type=="AgentUpToDate")].reason}' | sed s/CannotBeManaged/UpToDate/`, "UpToDate"); err != nil {
		return err
	}
	if _, err := e.sh(ctx, e.one, `
helm -n cattle-fleet-system upgrade --wait --timeout 90s --reset-then-reuse-values --set image.tag="`+e.tag+`" fleet-agent fleet/fleet-agent
helm -n default upgrade --wait --timeout 90s --reset-then-reuse-values --set image.tag="`+e.tag+
		`" member-agent fleet/charts/member-agent`); err != nil {
		return err
	}
	if err := e.expect(ctx, e.hub, "kubectl -n cattle-fleet-system get deployment fleet-agent -o "+
		"'jsonpath={.spec.template.spec.containers[0].image} {.status.readyReplicas}'",
		"muster-agent:"+e.tag+" 1"); err != nil {
		return err
	}
	// From this version on, the hub upgrades the agent of the MemberCluster, too.
	if err := e.expect(ctx, e.hub,
		`kubectl get membercluster member-1 -o 'jsonpath={.status.conditions[?(@.type=="AgentUpToDate")].reason}'`,
		"UpToDate"); err != nil {
		return err
	}
	if err := e.fleetIsWell(ctx); err != nil {
		return err
	}
	if err := e.goesOnDelivering(ctx, "agents", running); err != nil {
		return err
	}
	several, err := e.sh(ctx, e.hub, `kubectl get crds -o 'jsonpath={range .items[*]}{.metadata.name} {.status.storedVersions}{"\n"}{end}' |
sed -n /,/p`)
	if err == nil && several != "" {
		err = fmt.Errorf("definitions have objects stored in several versions:\n%s", several)
	}
	return err
}

// updating are the states of a healthy Cluster, or of one with an agent that replaces itself.
var updating = []string{"Ready", "WaitApplied", "NotReady"}

// watchMembers follows the state of every member. The returned function ends that, counts the
// states and names bad ones. The API server ends each watch of a kind with a changed definition, so
// kubectl is started again.
func (e *env) watchMembers(ctx context.Context) func() (int, error) {
	ctx, stop := context.WithCancel(ctx)
	var commands []*exec.Cmd
	var outputs, complaints []*strings.Builder
	for _, watch := range []string{
		`clusters.fleet.cattle.io -o 'jsonpath=Cluster {.metadata.name} {.status.conditions[?(@.type=="Ready")].reason}{"\n"}'`,
		`memberclusters -o 'jsonpath=MemberCluster {.metadata.name} {.status.conditions[?(@.type=="Healthy")].reason} ` +
			`{.status.conditions[?(@.type=="Joined")].status}{"\n"}'`,
	} {
		command := e.command(ctx, e.hub, "bash", "-c", `trap 'kill $!; exit' TERM
while true; do kubectl get -A -w `+watch+` & wait $!; sleep 0.2 & wait $!; done`)
		command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
		out, complaint := &strings.Builder{}, &strings.Builder{}
		command.Stdout, command.Stderr = out, complaint
		commands, outputs, complaints = append(commands, command), append(outputs, out), append(complaints, complaint)
	}
	var problems []error
	for _, command := range commands {
		problems = append(problems, command.Start())
	}
	return func() (int, error) {
		stop()
		count := 0
		for i, command := range commands {
			_ = command.Wait() // it was killed
			lines := strings.Split(strings.TrimSpace(outputs[i].String()), "\n")
			for _, line := range lines {
				fields := strings.Fields(line)
				well := len(fields) == 3 && fields[0] == "Cluster" && slices.Contains(updating, fields[2]) ||
					len(fields) == 4 && fields[0] == "MemberCluster" && fields[2] == "MemberClusterHealthy" && fields[3] == "True"
				if !well {
					problems = append(problems, fmt.Errorf("a member was not well: %s", line))
				}
			}
			if count += len(lines); lines[0] == "" {
				problems = append(problems, errors.New("kubectl shows no member: "+complaints[i].String()))
			}
		}
		return count, errors.Join(problems...)
	}
}

// remove deletes a cluster.
func (e *env) remove(c *cluster) error {
	output, err := e.command(context.Background(), nil, e.bin("localkube"), "delete", c.name,
		"--dir", filepath.Dir(filepath.Dir(c.kubeconfig))).CombinedOutput()
	if err != nil {
		return fmt.Errorf("deleting cluster %s: %w: %s", c.name, err, output)
	}
	<-c.ended
	return nil
}
