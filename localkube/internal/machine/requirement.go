package machine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// requirement is a program and its package.
type requirement struct{ program, debian string }

var (
	programs = []requirement{
		{"containerd", "containerd"}, {"ctr", "containerd"}, {"containerd-shim-runc-v2", "containerd"},
		{"runc", "runc"}, {"iptables", "iptables"}, {"iptables-restore", "iptables"},
	}
	plugins = []requirement{
		{"bridge", cniPackage}, {"host-local", cniPackage}, {"loopback", cniPackage}, {"portmap", cniPackage},
	}
	// pluginDirectories are the distributions' directories of the plugins.
	pluginDirectories = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}
	// systemDirectories may be missing in the path of a user who became root.
	systemDirectories = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
)

const cniPackage = "containernetworking-plugins"

// Programs are the places of a node's parts on this machine.
type Programs struct {
	Containerd, Ctr string
	// Plugins is the directory of the CNI plugins.
	Plugins string
	// Path is the PATH of the programs, to find each other.
	Path string
}

// Find returns an error with the missing programs and how to install them, if any are missing.
func Find() (Programs, error) {
	return find(os.Geteuid(), os.Getenv("PATH"), pluginDirectories)
}

func find(user int, path string, directories []string) (Programs, error) {
	search := strings.Join(append(filepath.SplitList(path), systemDirectories...), string(filepath.ListSeparator))
	found := Programs{Path: search}
	var problems []error
	if user != 0 {
		problems = append(problems, errors.New("only root can make the namespaces, mounts and cgroups of a node with containers: use sudo"))
	}
	if missing := missingPrograms(&found, directories); len(missing) > 0 {
		problems = append(problems, howToInstall(missing))
	}
	return found, errors.Join(problems...)
}

// howToInstall names the missing programs by package.
func howToInstall(missing []requirement) error {
	var packages []string
	programs := map[string][]string{}
	for _, m := range missing {
		if programs[m.debian] == nil {
			packages = append(packages, m.debian)
		}
		programs[m.debian] = append(programs[m.debian], m.program)
	}
	var parts []string
	for _, name := range packages {
		parts = append(parts, fmt.Sprintf("%s (package %s)", strings.Join(programs[name], ", "), name))
	}
	return fmt.Errorf("this machine has no %s; on Debian and Ubuntu: apt-get install --no-install-recommends %s",
		strings.Join(parts, "; "), strings.Join(packages, " "))
}

func missingPrograms(found *Programs, directories []string) []requirement {
	var missing []requirement
	for _, required := range programs {
		path := lookup(required.program, filepath.SplitList(found.Path))
		switch {
		case path == "":
			missing = append(missing, required)
		case required.program == "containerd":
			found.Containerd = path
		case required.program == "ctr":
			found.Ctr = path
		}
	}
	if bridge := lookup(plugins[0].program, directories); bridge != "" {
		found.Plugins = filepath.Dir(bridge)
		directories = []string{found.Plugins}
	}
	for _, required := range plugins {
		if lookup(required.program, directories) == "" {
			missing = append(missing, required)
		}
	}
	return missing
}

func lookup(program string, directories []string) string {
	for _, directory := range directories {
		if path, err := exec.LookPath(filepath.Join(directory, program)); err == nil && filepath.IsAbs(path) {
			return path
		}
	}
	return ""
}
