package hostnode

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/muster-fleet/muster/localkube/internal/process"
)

// errUnsupportedProbe is the error for an exec probe with a program from outside the image, such as
// a shell.
var errUnsupportedProbe = errors.New("probe not supported by localkube, taken as passed")

// check runs a probe once; nil means that it passed.
func (c *container) check(ctx context.Context, command process.Spec, probe *corev1.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(probe.TimeoutSeconds, 1))*time.Second)
	defer cancel()
	switch {
	case probe.HTTPGet != nil:
		return c.checkHTTP(ctx, probe.HTTPGet)
	case probe.TCPSocket != nil:
		return c.checkTCP(ctx, probe.TCPSocket)
	case probe.GRPC != nil:
		return c.checkGRPC(ctx, probe.GRPC)
	case probe.Exec != nil:
		return c.checkExec(ctx, command, probe.Exec)
	}
	return errors.New("the probe has no handler")
}

func (c *container) checkHTTP(ctx context.Context, get *corev1.HTTPGetAction) error {
	target, err := c.target(get.Host, get.Port)
	if err != nil {
		return err
	}
	scheme := "http"
	if get.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+target+"/", nil)
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	if request.URL, err = request.URL.Parse(get.Path); err != nil {
		return fmt.Errorf("reading path %s: %w", get.Path, err)
	}
	request.Header.Set("User-Agent", "kube-probe/localkube")
	for _, header := range get.HTTPHeaders {
		request.Header.Add(header.Name, header.Value)
		if http.CanonicalHeaderKey(header.Name) == "Host" {
			request.Host = header.Value
		}
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		// As with a kubelet, a probe checks for an answer, not for an identity.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("asking %s: %w", request.URL, err)
	}
	if err := response.Body.Close(); err != nil {
		return fmt.Errorf("asking %s: %w", request.URL, err)
	}
	if response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s answered %s", request.URL, response.Status)
	}
	return nil
}

func (c *container) checkTCP(ctx context.Context, socket *corev1.TCPSocketAction) error {
	target, err := c.target(socket.Host, socket.Port)
	if err != nil {
		return err
	}
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", target)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", target, err)
	}
	return connection.Close()
}

func (c *container) checkGRPC(ctx context.Context, action *corev1.GRPCAction) (err error) {
	target := net.JoinHostPort(c.pod.address(), strconv.Itoa(int(action.Port)))
	connection, err := grpc.NewClient("passthrough:///"+target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", target, err)
	}
	defer func() { err = errors.Join(err, connection.Close()) }()
	request := &healthpb.HealthCheckRequest{}
	if action.Service != nil {
		request.Service = *action.Service
	}
	answer, err := healthpb.NewHealthClient(connection).Check(ctx, request)
	if err != nil {
		return fmt.Errorf("asking %s: %w", target, err)
	}
	if answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		return fmt.Errorf("%s is %s", target, answer.GetStatus())
	}
	return nil
}

// checkExec can run only the programs of the image.
func (c *container) checkExec(ctx context.Context, command process.Spec, action *corev1.ExecAction) error {
	if len(action.Command) == 0 {
		return errors.New("the probe has no command")
	}
	name, path, err := program(c.pod.node.config.Images, c.spec.Image)
	if err != nil {
		return err
	}
	executable, args, err := commandLine(name, path, action.Command, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnsupportedProbe, err)
	}
	run := exec.CommandContext(ctx, executable, args...)
	run.Env, run.Dir = command.Env, command.Dir
	run.WaitDelay = time.Second
	if output, err := run.CombinedOutput(); err != nil {
		return fmt.Errorf("running %s: %w: %.200s", filepath.Base(executable), err, output)
	}
	return nil
}

// target returns the address for a probe: by default the pod's own.
func (c *container) target(host string, port intstr.IntOrString) (string, error) {
	if host == "" {
		host = c.pod.address()
	}
	if port.Type == intstr.Int {
		return net.JoinHostPort(host, strconv.Itoa(port.IntValue())), nil
	}
	for _, p := range c.spec.Ports {
		if p.Name == port.StrVal {
			return net.JoinHostPort(host, strconv.Itoa(int(p.ContainerPort))), nil
		}
	}
	if number, err := strconv.Atoi(port.StrVal); err == nil {
		return net.JoinHostPort(host, strconv.Itoa(number)), nil
	}
	return "", fmt.Errorf("container %s has no port named %s", c.spec.Name, port.StrVal)
}
