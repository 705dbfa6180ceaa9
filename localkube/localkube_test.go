package main_test

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const deployment = `
apiVersion: v1
kind: Secret
metadata: {name: settings}
stringData: {colour: green}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers:
      - {name: first, image: testprogram, args: [whoami]}
      containers:
      - name: web
        image: registry.example.com/team/testprogram:v1
        args: [serve, $(COLOUR)]
        env:
        - {name: COLOUR, valueFrom: {secretKeyRef: {name: settings, key: colour}}}
        - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        readinessProbe: {httpGet: {path: /healthz, port: 8080}}
        livenessProbe: {httpGet: {path: /healthz, port: 8080}}
`

// Two replicas listen on the same port: each has an address of its own.
func TestDeploymentRunsAndSurvivesTheDeathOfUp(t *testing.T) {
	m := newMachine(t)
	u := m.start("web")
	u.mustKubectl(deployment, "apply", "-f", "-")
	u.mustKubectl("", "rollout", "status", "deployment/web", "--timeout=2m")
	logs := u.mustKubectl("", "logs", "-l", "app=web", "-c", "web")
	if got := strings.Count(logs, "serving [green] as web-"); got != 2 {
		t.Errorf("%d of 2 pods said that they serve:\n%s", got, logs)
	}
	if got := u.mustKubectl("", "logs", "deployment/web", "-c", "first"); !strings.Contains(got,
		"I am system:serviceaccount:default:default") {
		t.Errorf("the init container did not act as its service account: %s", got)
	}
	if output, err := m.run("up", "web"); err == nil || !strings.Contains(output, "cluster web is already running in process") {
		t.Errorf("a second up: %v, %s", err, output)
	}
	server := u.url()
	pods := u.mustKubectl("", "get", "pods", "-o", "name")

	u.kill()
	before := u.processes() // What the kernel did not end: children in other sessions.
	u = m.start("web")
	after := u.processes()
	for pid, line := range before {
		if after[pid] == line {
			t.Errorf("process %s outlived its cluster: %s", pid, line)
		}
	}
	if got := u.url(); got != server {
		t.Errorf("the server moved from %s to %s", server, got)
	}
	if got := u.mustKubectl("", "get", "pods", "-o", "name"); got != pods {
		t.Errorf("pods were\n%sand are now\n%s", pods, got)
	}
	u.awaitOutput("1 1", "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].status.containerStatuses[0].restartCount}")
	u.mustKubectl("", "rollout", "status", "deployment/web", "--timeout=2m")
	if got := u.mustKubectl("", "logs", "deployment/web", "-c", "web", "--previous"); !strings.Contains(got, "serving") {
		t.Errorf("the log of the run before is lost: %s", got)
	}

	u.mustKubectl("", "delete", "deployment", "web", "--cascade=foreground", "--timeout=2m")
	for pid, line := range u.processes() {
		if strings.Contains(line, "testprogram") {
			t.Errorf("process %s outlived its pod: %s", pid, line)
		}
	}
	m.mustRun("down", "web")
	<-u.ended
	if code := u.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("up ended with %d:\n%s", code, u.output.String())
	}
	if left := u.processes(); len(left) > 0 {
		t.Errorf("down left processes: %v", left)
	}
	if list := m.mustRun("list"); !strings.Contains(list, "stopped") || !strings.Contains(list, server) {
		t.Errorf("list does not show the stopped cluster at %s:\n%s", server, list)
	}
	m.mustRun("delete", "web")
	if _, err := os.Stat(filepath.Join(m.root, "web")); !os.IsNotExist(err) {
		t.Errorf("delete left the state: %v", err)
	}
}

func TestWhatCannotRunIsToldInThePod(t *testing.T) {
	m := newMachine(t)
	u := m.start("odd")
	u.mustKubectl(`
apiVersion: v1
kind: Pod
metadata: {name: unknown}
spec: {containers: [{name: c, image: "example.com/nobody/knows:v3"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: volume}
spec:
  volumes: [{name: v, configMap: {name: none}}]
  containers: [{name: c, image: testprogram, volumeMounts: [{name: v, mountPath: /v}]}]
---
apiVersion: v1
kind: Pod
metadata: {name: key}
spec:
  containers: [{name: c, image: testprogram, args: [sleep], env: [{name: X, valueFrom: {secretKeyRef: {name: none, key: x}}}]}]
---
apiVersion: v1
kind: Pod
metadata: {name: crash}
spec: {containers: [{name: c, image: testprogram, args: [exit]}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: who}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: testprogram, args: [whoami]}]}}}
`, "apply", "-f", "-")
	waiting := "jsonpath={.status.containerStatuses[0].state.waiting.reason}: {.status.containerStatuses[0].state.waiting.message}"
	for pod, want := range map[string]string{
		"unknown": "ErrImagePull: image example.com/nobody/knows:v3 is not known to localkube; start it with --image knows=BINARY",
		"volume":  "UnsupportedVolume: volume v of container c is not supported by localkube",
		"key":     `CreateContainerConfigError: variable X: reading secret none: secrets "none" not found`,
		"crash":   "CrashLoopBackOff: back-off 10s",
	} {
		u.awaitOutput(want, "get", "pod", pod, "-o", waiting)
	}
	u.awaitOutput("is not known to localkube", "get", "events", "--field-selector", "involvedObject.name=unknown,type=Warning")
	u.mustKubectl("", "create", "secret", "generic", "none", "--from-literal=x=y")
	u.mustKubectl("", "wait", "--for=condition=complete", "job/who", "--timeout=2m")
	u.awaitOutput("true", "get", "pod", "key", "-o", "jsonpath={.status.containerStatuses[0].ready}")
	if output, err := u.kubectl("", "exec", "crash", "--", "ls"); err == nil ||
		!strings.Contains(output, "exec is not supported by localkube") {
		t.Errorf("exec: %v, %s", err, output)
	}
	u.mustKubectl("", "delete", "pod", "--all", "--timeout=2m")
}

func TestControlPlaneAloneWithAuditLog(t *testing.T) {
	m := newMachine(t)
	kubeconfig := filepath.Join(t.TempDir(), "config")
	authentication := filepath.Join(t.TempDir(), "authentication.yaml")
	if err := os.WriteFile(authentication, []byte(`{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthenticationConfiguration"}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if authentication, err = filepath.Rel(here, authentication); err != nil {
		t.Fatal(err)
	}
	u := m.start("bare", "--node=false", "--audit", "--kubeconfig", kubeconfig, "--authentication-config", authentication)
	if got := u.mustKubectl("", "get", "nodes"); !strings.Contains(got, "No resources found") {
		t.Errorf("nodes: %s", got)
	}
	u.mustKubectl("", "create", "namespace", "counted")
	m.await("the request in the audit log", func() error {
		data, err := os.ReadFile(filepath.Join(m.root, "bare", "audit.log"))
		if err == nil && !strings.Contains(string(data), `"requestURI":"/api/v1/namespaces?fieldManager=kubectl-create`) {
			err = os.ErrNotExist
		}
		return err
	})
	if got := u.mustKubectl("", "--kubeconfig", kubeconfig, "--context", "bare", "get", "namespace", "counted", "-o",
		"name"); got != "namespace/counted\n" {
		t.Errorf("with the merged kubeconfig: %s", got)
	}
	server, err := url.Parse(u.url())
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(server.Host)
	if err != nil {
		t.Fatal(err)
	}
	if output, err := m.run("up", "other", "--port", port); err == nil ||
		!strings.Contains(output, "port "+port+" is in use by another program") {
		t.Errorf("up on a port in use: %v, %s", err, output)
	}
	m.mustRun("down", "bare")
}

func TestDeathOfAComponentIsExplained(t *testing.T) {
	m := newMachine(t)
	u := m.start("dead", "--node=false")
	for pid, line := range u.processes() {
		if strings.Contains(line, "component etcd ") {
			if err := kill(pid); err != nil {
				t.Fatal(err)
			}
		}
	}
	m.await("the end of up", func() error {
		select {
		case <-u.ended:
			return nil
		default:
			return os.ErrDeadlineExceeded
		}
	})
	if code := u.cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("up ended with %d, want 1", code)
	}
	if got := u.output.String(); !strings.Contains(got, "etcd of cluster dead ended: killed by signal 9") {
		t.Errorf("up did not say what died:\n%s", got)
	}
	if left := u.processes(); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}
