package machine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWhatIsMissingIsNamedWithItsPackage(t *testing.T) {
	if lookup("runc", systemDirectories) != "" {
		t.Log("the programs are installed here, so only the plugins can be missing")
	}
	_, err := find(1000, "", []string{t.TempDir()})
	if err == nil {
		t.Fatal("nothing is missing")
	}
	for _, want := range []string{
		"only root can make the namespaces", "use sudo",
		"bridge, host-local, loopback, portmap (package containernetworking-plugins)",
		"apt-get install --no-install-recommends ",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if got := strings.Count(err.Error()[strings.Index(err.Error(), "apt-get"):], "containernetworking-plugins"); got != 1 {
		t.Errorf("the package is named %d times to apt-get: %s", got, err)
	}
}

func TestPluginsAreFoundInOneDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, plugin := range plugins {
		if err := os.WriteFile(filepath.Join(dir, plugin.program), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var found Programs
	missing := missingPrograms(&found, []string{t.TempDir(), dir})
	if found.Plugins != dir {
		t.Errorf("plugins in %q, want %q", found.Plugins, dir)
	}
	if len(missing) != len(programs) {
		t.Errorf("without a path %d programs are missing, want all %d", len(missing), len(programs))
	}
}

func TestHierarchiesOfBothVersionsAreFoundOnce(t *testing.T) {
	mounts := `25 30 0:22 / /sys rw,relatime - sysfs sysfs rw
31 25 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw
32 25 0:27 / /sys/fs/cgroup/cpu rw master:1 - cgroup cgroup rw,cpu
33 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
`
	if got, want := parseHierarchies(mounts), []string{"/sys/fs/cgroup", "/sys/fs/cgroup/cpu"}; !slices.Equal(got, want) {
		t.Errorf("hierarchies %v, want %v", got, want)
	}
}
