package hostnode

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// accountPath is Kubernetes' mount path of the ServiceAccount's token. Client libraries find the
// kubeconfig in KUBECONFIG instead.
const accountPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// mountTable maps the paths of a container's emptyDir volumes to directories of this machine,
// longest path first. A process cannot have mounts without root. The paths are therefore replaced
// in the Pod's command, args and environment.
type mountTable []mount

type mount struct{ path, dir string }

// unsupportedVolume names the first volume not available to a host process.
func unsupportedVolume(pod *corev1.Pod) string {
	volumes := map[string]corev1.Volume{}
	for _, volume := range pod.Spec.Volumes {
		volumes[volume.Name] = volume
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, m := range c.VolumeMounts {
			volume := volumes[m.Name]
			if volume.EmptyDir != nil || isAccount(volume, m) {
				continue
			}
			return fmt.Sprintf("volume %s of container %s is not supported by localkube: a host process cannot have %s mounted; use emptyDir, or "+
				"pass the values as environment variables (secretKeyRef, configMapKeyRef)",
				m.Name, c.Name, volumeKind(volume))
		}
	}
	return ""
}

func volumeKind(volume corev1.Volume) string {
	switch {
	case volume.Secret != nil:
		return "a secret"
	case volume.ConfigMap != nil:
		return "a configMap"
	case volume.Projected != nil:
		return "a projected volume"
	case volume.DownwardAPI != nil:
		return "a downwardAPI volume"
	case volume.HostPath != nil:
		return "a hostPath"
	case volume.PersistentVolumeClaim != nil:
		return "a persistentVolumeClaim"
	}
	return "this kind of volume"
}

func isAccount(volume corev1.Volume, m corev1.VolumeMount) bool {
	return volume.Projected != nil && filepath.Clean(m.MountPath) == accountPath
}

// mountsAccount reports whether a container mounts the account's token. Admission adds the mount
// unless automountServiceAccountToken is false.
func mountsAccount(c *corev1.Container) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
		return filepath.Clean(m.MountPath) == accountPath
	})
}

// mounts makes the directories of the container's emptyDir volumes.
func (c *container) mounts(pod *corev1.Pod) (mountTable, error) {
	var table mountTable
	for _, m := range c.spec.VolumeMounts {
		for _, volume := range pod.Spec.Volumes {
			if volume.Name != m.Name || volume.EmptyDir == nil {
				continue
			}
			dir := filepath.Join(c.pod.dir, "volumes", volume.Name, filepath.Clean("/"+m.SubPath))
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return nil, fmt.Errorf("creating volume %s: %w", volume.Name, err)
			}
			table = append(table, mount{path: filepath.Clean(m.MountPath), dir: dir})
		}
	}
	slices.SortFunc(table, func(a, b mount) int { return len(b.path) - len(a.path) })
	return table, nil
}

// rewrite replaces mount paths in a text, as in --data=/data/x or /a:/b. A
// path counts only as a whole: after the start or one of "=:, and before the
// end, a slash or another separator.
func (t mountTable) rewrite(text string) string {
	const separators = "=:,;\"' "
	for i := 0; i < len(text); i++ {
		if text[i] != '/' || i > 0 && !strings.ContainsRune(separators, rune(text[i-1])) {
			continue
		}
		for _, m := range t {
			rest, found := strings.CutPrefix(text[i:], m.path)
			if found && (rest == "" || strings.ContainsRune(separators+"/", rune(rest[0]))) {
				text = text[:i] + m.dir + rest
				i += len(m.dir) - 1
				break
			}
		}
	}
	return text
}

func (t mountTable) rewriteAll(texts []string) []string {
	var result []string
	for _, text := range texts {
		result = append(result, t.rewrite(text))
	}
	return result
}
