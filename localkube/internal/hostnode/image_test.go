package hostnode

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestProgramOfImage(t *testing.T) {
	images := map[string]string{
		"muster-agent":             "/bin/agent",
		"example.com/x/special:v2": "/bin/special-v2",
		"team/tool":                "/bin/tool",
	}
	for image, want := range map[string]string{
		"muster-agent":                           "/bin/agent",
		"muster-agent:dev":                       "/bin/agent",
		"ghcr.io/x/muster-agent:dev":             "/bin/agent",
		"localhost:5000/muster-agent":            "/bin/agent",
		"ghcr.io/x/muster-agent@sha256:0123":     "/bin/agent",
		"ghcr.io/x/muster-agent:dev@sha256:0123": "/bin/agent",
		"example.com/x/special:v2":               "/bin/special-v2",
		"example.com/x/special:v3":               "",
		"quay.io/team/tool:1":                    "/bin/tool",
		"quay.io/other/tool:1":                   "",
		"my-muster-agent":                        "",
	} {
		_, path, err := program(images, image)
		if path != want || (err == nil) != (want != "") {
			t.Errorf("program(%q) = %q, %v; want %q", image, path, err, want)
		}
	}
	_, _, err := program(images, "example.com/nobody/knows:v3")
	if want := "image example.com/nobody/knows:v3 is not known to localkube; start it with --image knows=BINARY"; errorText(err) != want {
		t.Errorf("error %q, want %q", errorText(err), want)
	}
}

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	agent := filepath.Join(dir, "agent")
	if err := os.WriteFile(agent, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		path          string
		command, args []string
		want          []string
		wantErr       string
	}{
		"args go to the program": {path: agent, args: []string{"-v"}, want: []string{agent, "-v"}},
		"the command names the program": {
			path: agent, command: []string{"agent", "run"}, args: []string{"-v"}, want: []string{agent, "run", "-v"},
		},
		"the command names it by a path":       {path: agent, command: []string{"/usr/bin/agent"}, want: []string{agent}},
		"the command names it by the image":    {path: agent, command: []string{"/muster-agent"}, want: []string{agent}},
		"the command names something else":     {path: agent, command: []string{"sh"}, wantErr: "has one program, agent, but the command is sh"},
		"a directory, the command picks":       {path: dir, command: []string{"/agent", "x"}, want: []string{agent, "x"}},
		"a directory without a command":        {path: dir, wantErr: "set the container's command"},
		"a directory without that program":     {path: dir, command: []string{"other"}, wantErr: "has no program other"},
		"a program that was removed meanwhile": {path: filepath.Join(dir, "gone"), wantErr: "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			executable, args, err := commandLine("muster-agent", test.path, test.command, test.args)
			if (test.wantErr == "") != (err == nil) || !strings.Contains(errorText(err), test.wantErr) {
				t.Fatalf("error %q, want %q", errorText(err), test.wantErr)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(test.want, append([]string{executable}, args...)); diff != "" {
				t.Errorf("command line (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMountPathsAreReplacedAsAWhole(t *testing.T) {
	table := mountTable{{path: "/data/cache", dir: "/h/cache"}, {path: "/data", dir: "/h/data"}}
	for text, want := range map[string]string{
		"/data":             "/h/data",
		"--dir=/data/x":     "--dir=/h/data/x",
		"/data/cache/a":     "/h/cache/a",
		"/data:/data/cache": "/h/data:/h/cache",
		"/database":         "/database",
		"/mnt/data":         "/mnt/data",
		"https://host/data": "https://host/data",
		"":                  "",
	} {
		if got := table.rewrite(text); got != want {
			t.Errorf("rewrite(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestUnsupportedVolume(t *testing.T) {
	mounted := func(path string, source corev1.VolumeSource) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{
			Volumes:    []corev1.Volume{{Name: "v", VolumeSource: source}},
			Containers: []corev1.Container{{Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: path}}}},
		}}
	}
	unmounted := mounted("/x", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}})
	unmounted.Spec.Containers[0].VolumeMounts = nil
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"an emptyDir":                 {mounted("/x", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}), ""},
		"the service account's token": {mounted(accountPath, corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}), ""},
		"another projected volume":    {mounted("/x", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}), "a projected volume"},
		"a secret":                    {mounted("/x", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}), "a secret"},
		"a secret nobody mounts":      {unmounted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := unsupportedVolume(test.pod)
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("unsupportedVolume() = %q, want %q in it", got, test.want)
			}
		})
	}
}
