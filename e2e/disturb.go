package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	agentPod = "kubectl -n cattle-fleet-system get pods -l app=fleet-agent -o 'jsonpath={.items[0].metadata.name}'"
	hubPod   = "kubectl -n cattle-fleet-system get pods -l app=fleet-controller -o 'jsonpath={.items[0].metadata.name}'"
	// states prints the Ready condition of the two Clusters and the Healthy condition of the
	// MemberCluster.
	states = `kubectl -n clusters get clusters.fleet.cattle.io -o 'jsonpath={range .items[*]}{.metadata.name} ` +
		`{.status.conditions[?(@.type=="Ready")].reason}{"\n"}{end}'
kubectl get membercluster -o 'jsonpath={range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Healthy")].status}{"\n"}{end}'`
)

// agentContainerKilled: the agent reads its credential from its Secret and does not register again.
func agentContainerKilled(ctx context.Context, e *env) (string, error) {
	before, err := e.sh(ctx, e.hub, "kubectl -n clusters get clusterregistrations,clusters.fleet.cattle.io -o name")
	if err != nil {
		return "", err
	}
	figure, err := e.killContainer(ctx, e.one, agentPod, "fleet-agent", "muster-agent")
	if err != nil {
		return "", err
	}
	after, err := e.sh(ctx, e.hub, "kubectl -n clusters get clusterregistrations,clusters.fleet.cattle.io -o name")
	if err == nil && after != before {
		err = fmt.Errorf("it registered again: there was\n%s\nand is\n%s", before, after)
	}
	return figure, errors.Join(err, e.fleetIsWell(ctx))
}

// killContainer kills a Pod's program and waits until the kubelet has started it again and it is
// ready.
func (e *env) killContainer(ctx context.Context, c *cluster, findPod, app, program string) (string, error) {
	pod, err := e.sh(ctx, c, findPod)
	if err != nil {
		return "", err
	}
	if err := killProcess(program, "POD_NAME="+pod); err != nil {
		return "", err
	}
	began := time.Now()
	err = e.expect(ctx, c, "kubectl -n cattle-fleet-system get pods -l app="+app+
		" -o 'jsonpath={.items[0].status.containerStatuses[0].restartCount} {.items[0].status.containerStatuses[0].ready}'", "1 true")
	return "ready again after " + seconds(began), err
}

// killProcess kills the process of a program with a variable in its environment.
func killProcess(program, variable string) error {
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return err
	}
	for _, path := range paths {
		environment, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append([]byte{0}, environment...), []byte("\x00"+variable+"\x00")) {
			continue // It ended, or is another process.
		}
		if name, err := os.ReadFile(filepath.Join(filepath.Dir(path), "comm")); err != nil || strings.TrimSpace(string(name)) != program {
			continue // Such as a child process with the same environment.
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return err
		}
		return syscall.Kill(pid, syscall.SIGKILL)
	}
	return fmt.Errorf("no %s has %s in its environment", program, variable)
}

func agentUpgradedAndRolledBack(ctx context.Context, e *env) (string, error) {
	_, err := e.sh(ctx, e.two, `
helm -n cattle-fleet-system upgrade --wait --timeout 60s --reuse-values --set debug=true fleet-agent fleet/fleet-agent
helm -n cattle-fleet-system rollback --wait --timeout 60s fleet-agent 1`)
	return "", errors.Join(err, e.fleetIsWell(ctx))
}

func nodeDrained(ctx context.Context, e *env) (string, error) {
	if _, err := e.sh(ctx, e.two, "kubectl drain two-node-0 --ignore-daemonsets --delete-emptydir-data --timeout=60s"); err != nil {
		return "", err
	}
	if err := e.expect(ctx, e.two, "kubectl -n cattle-fleet-system get pods -l app=fleet-agent", "Pending"); err != nil {
		return "", err
	}
	began := time.Now()
	if _, err := e.sh(ctx, e.two, `kubectl uncordon two-node-0
kubectl -n cattle-fleet-system rollout status deployment/fleet-agent --timeout=60s`); err != nil {
		return "", err
	}
	return "joined again after " + seconds(began), e.fleetIsWell(ctx)
}

// kubeletStopped stops only the kubelet. Containers keep running, and the agent keeps sending
// heartbeats and reporting the state of its cluster.
func kubeletStopped(ctx context.Context, e *env) (string, error) {
	kubelet, err := e.component(e.two, "kubelet")
	if err != nil {
		return "", err
	}
	if err := syscall.Kill(kubelet, syscall.SIGSTOP); err != nil {
		return "", fmt.Errorf("stopping kubelet: %w", err)
	}
	const nodes = "kubectl -n clusters get clusters.fleet.cattle.io my-cluster -o 'jsonpath={.status.display.readyNodes} " +
		"{.status.conditions[?(@.type==\"Ready\")].reason}'"
	began := time.Now()
	err = e.expect(ctx, e.hub, nodes, "0/1", "Ready")
	figure := "shown after " + seconds(began)
	if err := errors.Join(err, syscall.Kill(kubelet, syscall.SIGCONT)); err != nil {
		return "", err
	}
	return figure, errors.Join(e.expect(ctx, e.hub, nodes, "1/1"), e.fleetIsWell(ctx))
}

// component finds the process of a cluster's component.
func (e *env) component(c *cluster, name string) (int, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	for _, path := range paths {
		line, err := os.ReadFile(path)
		if err == nil && bytes.Contains(line, []byte("component\x00"+name+"\x00")) &&
			bytes.Contains(line, []byte(filepath.Dir(c.kubeconfig)+"/")) {
			return strconv.Atoi(filepath.Base(filepath.Dir(path)))
		}
	}
	return 0, fmt.Errorf("cluster %s has no process %s", c.name, name)
}

func networkCut(ctx context.Context, e *env) (string, error) {
	link, err := e.link(e.two)
	if err != nil {
		return "", err
	}
	if err := setLink(link, "down"); err != nil {
		return "", err
	}
	began := time.Now()
	err = e.expect(ctx, e.hub, states, "my-cluster AgentLost", "member-1 True")
	figure := "lost after " + seconds(began)
	if err := errors.Join(err, setLink(link, "up")); err != nil {
		return "", err
	}
	restored := time.Now()
	err = e.expect(ctx, e.hub, states, "my-cluster Ready")
	return figure + ", ready again " + seconds(restored) + " after", errors.Join(err, e.fleetIsWell(ctx))
}

// link returns the network link of a cluster's machine: lk and the beginning of its ID.
func (e *env) link(c *cluster) (string, error) {
	data, err := os.ReadFile(filepath.Join(filepath.Dir(c.kubeconfig), "state.json"))
	if err != nil {
		return "", fmt.Errorf("reading the state of cluster %s: %w", c.name, err)
	}
	var state struct{ ID string }
	if err := json.Unmarshal(data, &state); err != nil || len(state.ID) < 12 {
		return "", fmt.Errorf("reading the state of cluster %s: %w", c.name, err)
	}
	return "lk" + state.ID[:12], nil
}

func setLink(link, state string) error {
	if output, err := exec.Command("ip", "link", "set", "dev", link, state).CombinedOutput(); err != nil {
		return fmt.Errorf("switching link %s %s (with the program ip of package iproute2): %w: %s", link, state, err, output)
	}
	return nil
}

func hubSwitchedOff(ctx context.Context, e *env) (string, error) {
	if _, err := e.sh(ctx, nil, "localkube down hub --dir clusters"); err != nil {
		return "", err
	}
	<-e.hub.ended
	began := time.Now()
	if err := e.start(ctx, e.hub); err != nil {
		return "", err
	}
	figure := "cluster up after " + seconds(began)
	if err := e.leadsSince(ctx, began); err != nil {
		return "", err
	}
	return figure + ", the hub leads after " + seconds(began), e.fleetIsWell(ctx)
}

// memberSwitchedOff checks that a member comes back as the same member.
func memberSwitchedOff(ctx context.Context, e *env) (string, error) {
	if _, err := e.sh(ctx, nil, "localkube down two --dir clusters"); err != nil {
		return "", err
	}
	<-e.two.ended
	began := time.Now()
	if err := e.start(ctx, e.two); err != nil {
		return "", err
	}
	figure := "cluster up after " + seconds(began)
	if err := e.fleetIsWell(ctx); err != nil {
		return "", err
	}
	return figure + ", all members well after " + seconds(began), nil
}

// apiServerHangs stops an API server until the hub gives up leading, if the API server is the
// hub's.
func apiServerHangs(clusterOf func(*env) *cluster) func(context.Context, *env) (string, error) {
	return func(ctx context.Context, e *env) (string, error) {
		const hang = 15 * time.Second
		server, err := e.component(clusterOf(e), "kube-apiserver")
		if err != nil {
			return "", err
		}
		if err := syscall.Kill(server, syscall.SIGSTOP); err != nil {
			return "", fmt.Errorf("stopping kube-apiserver: %w", err)
		}
		select {
		case <-time.After(hang):
		case <-ctx.Done():
		}
		if err := syscall.Kill(server, syscall.SIGCONT); err != nil {
			return "", fmt.Errorf("continuing kube-apiserver: %w", err)
		}
		began := time.Now()
		if err := e.leadsSince(ctx, began); err != nil {
			return "", err
		}
		figure := "a hub leads " + seconds(began) + " after it answers again"
		return figure, e.fleetIsWell(ctx)
	}
}

// fleetIsWell waits until all members are ready and each has sent another heartbeat.
func (e *env) fleetIsWell(ctx context.Context) error {
	const beats = "kubectl get leases -A --field-selector metadata.name=heartbeat -o 'jsonpath={range " +
		".items[*]}{.metadata.namespace}={.spec.renewTime}{\"\\n\"}{end}'"
	before, err := e.sh(ctx, e.hub, beats)
	if err != nil {
		return err
	}
	if err := e.expect(ctx, e.hub, states, e.members...); err != nil {
		return err
	}
	return eventually(ctx, "every member beats", func() error {
		now, err := e.sh(ctx, e.hub, beats)
		if err != nil {
			return err
		}
		for _, beat := range strings.Fields(before) {
			if strings.Contains(now+"\n", beat+"\n") {
				return fmt.Errorf("the agent sent no heartbeat: %s", beat)
			}
		}
		lost, err := e.sh(ctx, e.hub, states)
		if err == nil && strings.Contains(lost, "AgentLost") {
			err = errors.New(lost)
		}
		return err
	})
}
