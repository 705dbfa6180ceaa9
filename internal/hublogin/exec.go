package hublogin

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// maxRun bounds the time of a program; waitDelay is the time until its output is given up.
	maxRun    = 30 * time.Second
	waitDelay = 2 * time.Second
	// maxShown bounds the part of a program's output in a message.
	maxShown = 512
	// infoVariable is the variable with the input of a program.
	infoVariable = "KUBERNETES_EXEC_INFO"
)

var execVersions = []string{"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"}

func (l *Login) checkExec() error {
	e := l.user.Exec
	switch {
	case e.Command == "":
		return fmt.Errorf("user %q of its kubeconfig has an entry exec without command", l.name)
	case e.APIVersion != execVersions[0] && e.APIVersion != execVersions[1]:
		return fmt.Errorf("user %q of its kubeconfig has an entry exec with apiVersion %q: the agent knows %s", l.name, e.APIVersion,
			strings.Join(execVersions, " and "))
	case e.InteractiveMode == clientcmdapi.AlwaysExecInteractiveMode:
		return fmt.Errorf("user %q of its kubeconfig has an entry exec with interactiveMode Always, and the agent has no terminal", l.name)
	case strings.ContainsRune(e.Command, filepath.Separator) && !filepath.IsAbs(e.Command):
		return fmt.Errorf("user %q of its kubeconfig has an entry exec with the command %q: use an absolute path, or a name in PATH",
			l.name, e.Command)
	}
	return nil
}

// run runs the program of the kubeconfig, and returns the identity in its answer.
func (l *Login) run(ctx context.Context, server string, now time.Time) (Identity, error) {
	e := l.user.Exec
	path, err := exec.LookPath(e.Command)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return Identity{}, fmt.Errorf("%s runs the program %q, which is not in the agent's container: add it to the image, or mount it with "+
			"initContainers, extraVolumes and extraVolumeMounts", l, e.Command)
	}
	if err != nil {
		return Identity{}, fmt.Errorf("%s runs the program %q, which the agent may not run: check the mode of the file", l, e.Command)
	}
	info, err := l.info(server)
	if err != nil {
		return Identity{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxRun)
	defer cancel()
	command := exec.CommandContext(ctx, path, e.Args...) //nolint:gosec // an administrator of the member names it
	command.Env = append(os.Environ(), infoVariable+"="+info)
	for _, variable := range e.Env {
		command.Env = append(command.Env, variable.Name+"="+variable.Value)
	}
	answer, complaint := &bounded{}, &bounded{}
	command.Stdout, command.Stderr, command.WaitDelay = answer, complaint, waitDelay
	err = command.Run()
	switch {
	case ctx.Err() != nil:
		return Identity{}, fmt.Errorf("the program %q of %s has not answered within %s: %s", e.Command, l, maxRun,
			clipped(complaint.kept.String()))
	case answer.over:
		return Identity{}, fmt.Errorf("the program %q of %s answers with more than %d bytes", e.Command, l, maxFile)
	case err != nil:
		return Identity{}, fmt.Errorf("the program %q of %s failed (%w): %s", e.Command, l, err, clipped(complaint.kept.String()))
	}
	return l.answered(answer.kept.Bytes(), now)
}

// answered reads the answer of a program.
func (l *Login) answered(answer []byte, now time.Time) (Identity, error) {
	e := l.user.Exec
	var read clientauthv1.ExecCredential
	if err := json.Unmarshal(answer, &read); err != nil { // the answer holds the credential
		return Identity{}, fmt.Errorf("the program %q of %s does not answer with an ExecCredential in JSON", e.Command, l)
	}
	switch {
	case read.Kind != "ExecCredential" || read.APIVersion != e.APIVersion:
		return Identity{}, fmt.Errorf("the program %q of %s answers with another kind or version than an ExecCredential of %s", e.Command, l,
			e.APIVersion)
	case read.Status == nil:
		return Identity{}, fmt.Errorf("the program %q of %s answers without a credential", e.Command, l)
	case read.Status.ExpirationTimestamp != nil && now.After(read.Status.ExpirationTimestamp.Time):
		return Identity{}, fmt.Errorf("the program %q of %s answers with a credential that expired at %s: check the clocks", e.Command, l,
			read.Status.ExpirationTimestamp.UTC().Format(time.RFC3339))
	}
	return l.identity(read.Status.Token, []byte(read.Status.ClientCertificateData), []byte(read.Status.ClientKeyData))
}

// info returns the input of the program.
func (l *Login) info(server string) (string, error) {
	spec := map[string]any{"interactive": false}
	if l.user.Exec.ProvideClusterInfo {
		cluster := map[string]any{"server": server}
		if len(l.CA) > 0 {
			cluster["certificate-authority-data"] = base64.StdEncoding.EncodeToString(l.CA)
		}
		spec["cluster"] = cluster
	}
	info, err := json.Marshal(map[string]any{"apiVersion": l.user.Exec.APIVersion, "kind": "ExecCredential", "spec": spec})
	if err != nil {
		return "", fmt.Errorf("encoding the input of the program %q: %w", l.user.Exec.Command, err)
	}
	return string(info), nil
}

// bounded keeps the first bytes of an output, and discards the rest.
type bounded struct {
	kept bytes.Buffer
	over bool
}

// Write never fails, so that the program ends by itself.
func (b *bounded) Write(p []byte) (int, error) {
	room := min(maxFile-b.kept.Len(), len(p))
	b.over = b.over || room < len(p)
	b.kept.Write(p[:room])
	return len(p), nil
}
