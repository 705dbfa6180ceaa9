package main_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	realmachine "github.com/muster-fleet/muster/localkube/internal/machine"
)

const containers = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
      initContainers:
      - {name: first, image: testprogram:v1, args: [whoami]}
      containers:
      - name: web
        image: testprogram:v1
        args: [serve, in, a, container]
        env:
        - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
        resources: {limits: {memory: 64Mi}}
`

// The init container reaches the API server by its Service.
func TestRealNodeRunsContainersAndLeavesNothingWhenKilled(t *testing.T) {
	if _, err := realmachine.Find(); err != nil {
		t.Skipf("real nodes are not tested here: %v", err)
	}
	m := newMachine(t)
	image := writeImage(t, m.program, "docker.io/library/testprogram:v1")
	u := m.start("real", "--node=kubelet", "--image", "testprogram="+image)
	id := u.state().ID
	server := u.url()
	u.mustKubectl(containers, "apply", "-f", "-")
	u.mustKubectl("", "rollout", "status", "deployment/web", "--timeout=2m")
	if got := u.mustKubectl("", "logs", "deployment/web", "-c", "first"); !strings.Contains(got,
		"I am system:serviceaccount:default:default") {
		t.Errorf("the init container did not act as its service account: %s", got)
	}
	if got := u.mustKubectl("", "exec", "deployment/web", "-c", "web", "--", "/testprogram", "whoami"); !strings.Contains(got,
		"I am system:") {
		t.Errorf("exec: %s", got)
	}
	if output, err := m.run("up", "real"); err == nil || !strings.Contains(output, "already running") {
		t.Errorf("a second up: %v, %s", err, output)
	}
	if len(cgroups(id)) == 0 {
		t.Error("the cluster has no cgroup")
	}

	u.kill()
	m.await("the end of all processes", func() error {
		if left := u.processes(); len(left) > 0 {
			return errors.New(strings.Join(values(left), "\n"))
		}
		return nil
	})
	u = m.start("real", "--node=kubelet", "--image", "testprogram="+image)
	if got := u.url(); got != server {
		t.Errorf("the server moved from %s to %s", server, got)
	}
	u.awaitOutput("1 1", "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].status.containerStatuses[0].restartCount}")
	u.mustKubectl("", "rollout", "status", "deployment/web", "--timeout=2m")

	u.kill()
	m.mustRun("delete", "real")
	checkNothingLeft(t, m, id)

	u = m.start("real", "--node=kubelet", "--image", "testprogram="+image)
	id = u.state().ID
	m.mustRun("down", "real")
	<-u.ended
	if code := u.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("up ended with %d:\n%s", code, u.output.String())
	}
	if output, err := m.run("up", "real"); err == nil || !strings.Contains(output, "was made with another --node") {
		t.Errorf("up with another node: %v, %s", err, output)
	}
	m.mustRun("delete", "real")
	checkNothingLeft(t, m, id)
}

func TestRealNodeSaysWhatIsWrongWithAnImage(t *testing.T) {
	if _, err := realmachine.Find(); err != nil {
		t.Skipf("real nodes are not tested here: %v", err)
	}
	m := newMachine(t)
	output, err := m.run("up", "real", "--node=kubelet", "--image", "testprogram="+m.program)
	if err == nil || !strings.Contains(output, "is no OCI archive of one named image, as `make images` writes them") {
		t.Errorf("up with a program as an image: %v, %s", err, output)
	}
	if _, err := os.Stat(filepath.Join(m.root, "real")); !os.IsNotExist(err) {
		t.Errorf("it left state: %v", err)
	}
}

func checkNothingLeft(t *testing.T, m *machine, id string) {
	t.Helper()
	if left := cgroups(id); len(left) > 0 {
		t.Errorf("cgroups are left: %v", left)
	}
	if _, err := net.InterfaceByName(realmachine.LinkName(id)); err == nil {
		t.Errorf("link %s is left", realmachine.LinkName(id))
	}
	if _, err := os.Stat(filepath.Join(m.root, "real")); !os.IsNotExist(err) {
		t.Errorf("state is left: %v", err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || bytes.Contains(mounts, []byte(m.root)) {
		t.Errorf("mounts are left (%v):\n%s", err, mounts)
	}
}

func cgroups(id string) []string {
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		paths, _ := filepath.Glob(pattern + realmachine.CgroupRoot(id)) // The pattern is well formed.
		found = append(found, paths...)
	}
	return found
}

func values(of map[string]string) []string {
	var all []string
	for _, value := range of {
		all = append(all, value)
	}
	return all
}

// writeImage writes an OCI archive with nothing but the program in it.
func writeImage(t *testing.T, program, name string) string {
	t.Helper()
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var layer bytes.Buffer
	writeTar(t, &layer, map[string][]byte{"testprogram": content})
	files := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)}
	add := func(kind string, data []byte) map[string]any {
		digest := sha256.Sum256(data)
		sum := hex.EncodeToString(digest[:])
		files["blobs/sha256/"+sum] = data
		return map[string]any{"mediaType": "application/vnd.oci.image." + kind, "digest": "sha256:" + sum, "size": len(data)}
	}
	encode := func(value any) []byte {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	rootfs := add("layer.v1.tar", layer.Bytes())
	config := add("config.v1+json", encode(map[string]any{
		"os": "linux", "architecture": runtime.GOARCH, "config": map[string]any{"Entrypoint": []string{"/testprogram"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []any{rootfs["digest"]}},
	}))
	manifest := add("manifest.v1+json", encode(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": []any{rootfs},
	}))
	manifest["annotations"] = map[string]string{"io.containerd.image.name": name}
	files["index.json"] = encode(map[string]any{"schemaVersion": 2, "manifests": []any{manifest}})
	path := filepath.Join(t.TempDir(), "image.tar")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	writeTar(t, file, files)
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func writeTar(t *testing.T, to io.Writer, files map[string][]byte) {
	t.Helper()
	archive := tar.NewWriter(to)
	for name, content := range files {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
}
