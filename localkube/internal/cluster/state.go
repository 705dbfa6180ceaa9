package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/muster-fleet/muster/localkube/internal/machine"
	"github.com/muster-fleet/muster/localkube/internal/process"
)

// stateFormat changes when a localkube can no longer use an older state.
const stateFormat = 1

// KubernetesVersion is the Kubernetes release in this binary.
const KubernetesVersion = "v1.36.3"

var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)

// Dir is the state directory of one cluster. All data of a cluster is below it.
type Dir struct {
	Name string
	Path string
}

// state is the part that a cluster keeps between two starts beside its data.
type state struct {
	Format     int    `json:"format"`
	Kubernetes string `json:"kubernetes"`
	// ID marks the processes of the cluster.
	ID   string `json:"id"`
	Port int    `json:"port"`
	// Address is the address of the cluster's machine; a cluster without one is on loopback.
	Address netip.Addr `json:"address,omitzero"`
	// PodNetwork is the /24 below 127.0.0.0/8 for the addresses of pods.
	PodNetwork [3]byte `json:"podNetwork"`
}

func (s state) address() string {
	if s.Address.IsValid() {
		return s.Address.String()
	}
	return loopback
}

// url returns the URL of the API server; it stays the same over restarts.
func (s state) url() string {
	return "https://" + net.JoinHostPort(s.address(), strconv.Itoa(s.Port))
}

// freeAddress verifies that the API server has its address to itself.
func (s state) freeAddress() error {
	if s.Address.IsValid() {
		return machine.Remove(s.ID)
	}
	return checkPortFree(s.Port)
}

// DefaultRoot returns the default directory of the clusters.
func DefaultRoot() (string, error) {
	if root := os.Getenv("LOCALKUBE_DIR"); root != "" {
		return root, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding a directory for the clusters: %w; set LOCALKUBE_DIR or --dir", err)
	}
	return filepath.Join(home, ".localkube"), nil
}

// NewDir names the state directory of a cluster; it need not exist.
func NewDir(root, name string) (Dir, error) {
	if !validName.MatchString(name) {
		return Dir{}, fmt.Errorf("cluster name %q: use at most 40 lower-case letters, digits and dashes", name)
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return Dir{}, fmt.Errorf("finding the directory of cluster %s: %w", name, err)
	}
	return Dir{Name: name, Path: filepath.Join(root, name)}, nil
}

func (d Dir) file(elements ...string) string {
	return filepath.Join(append([]string{d.Path}, elements...)...)
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (d Dir) Kubeconfig() string { return d.file("kubeconfig") }

// check returns an error unless the directory may be used. It must be absent, empty or a state
// directory of this version.
func (d Dir) check() error {
	entries, err := os.ReadDir(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the state of cluster %s: %w", d.Name, err)
	}
	if _, err := os.Stat(d.file("state.json")); err == nil {
		_, err := d.load()
		return err
	}
	for _, entry := range entries {
		if entry.Name() != lockName {
			return fmt.Errorf("%s exists and is not a localkube state directory (it has %s but no state.json); choose another name or --dir",
				d.Path, entry.Name())
		}
	}
	return nil
}

func (d Dir) load() (state, error) {
	data, err := os.ReadFile(d.file("state.json"))
	if err != nil {
		return state{}, fmt.Errorf("reading the state of cluster %s: %w", d.Name, err)
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil || s.ID == "" {
		return state{}, fmt.Errorf("%s is not a state file of localkube; choose another name or --dir, or remove %s",
			d.file("state.json"), d.Path)
	}
	if s.Format != stateFormat || s.Kubernetes != KubernetesVersion {
		return state{}, fmt.Errorf("cluster %s in %s was made by another localkube (Kubernetes %s, state format %d; this one is Kubernetes %s, "+
			"format %d); start afresh: localkube delete %s",
			d.Name, d.Path, s.Kubernetes, s.Format, KubernetesVersion, stateFormat, d.Name)
	}
	return s, nil
}

// leftBehind reads only the traces of a killed cluster outside of its directory, also from the
// state of another version.
func (d Dir) leftBehind() (mark string, address netip.Addr, err error) {
	data, err := os.ReadFile(d.file("state.json"))
	if err != nil {
		return "", address, fmt.Errorf("reading the state of cluster %s: %w", d.Name, err)
	}
	var s struct {
		ID      string     `json:"id"`
		Address netip.Addr `json:"address"`
	}
	if err := json.Unmarshal(data, &s); err != nil || s.ID == "" {
		return "", address, fmt.Errorf("%s is not a state file of localkube", d.file("state.json"))
	}
	return s.ID, s.Address, nil
}

// loadOrCreate returns the kept state, or a new one with the given port (0 for any free one). The
// caller holds the lock.
func (d Dir) loadOrCreate(port int, node Node) (state, error) {
	s, err := d.load()
	if errors.Is(err, fs.ErrNotExist) {
		return d.create(port, node)
	}
	if err != nil {
		return state{}, err
	}
	if port != 0 && port != s.Port {
		return state{}, fmt.Errorf("cluster %s was made with port %d, not %d; leave --port out, or start afresh: localkube delete %s",
			d.Name, s.Port, port, d.Name)
	}
	if s.Address.IsValid() != (node == KubeletNode) {
		return state{}, fmt.Errorf("cluster %s was made with another --node, which decides about its address; start it as before, or start "+
			"afresh: localkube delete %s",
			d.Name, d.Name)
	}
	return s, nil
}

func (d Dir) create(port int, node Node) (state, error) {
	id := make([]byte, 16)
	// crypto/rand.Read never fails.
	_, _ = rand.Read(id)
	s := state{Format: stateFormat, Kubernetes: KubernetesVersion, ID: hex.EncodeToString(id), Port: port}
	if node == KubeletNode {
		if s.Port == 0 {
			s.Port = usualPort
		}
		s.Address = d.unusedAddress()
		return s, d.save(s)
	}
	var err error
	if s.Port, err = freePort(port); err != nil {
		return state{}, err
	}
	d.reserve(s.Port)
	s.PodNetwork = d.unusedPodNetwork()
	return s, d.save(s)
}

// unusedAddress picks a random address in the network of the machines. It avoids the addresses of
// clusters in the same root.
func (d Dir) unusedAddress() netip.Addr {
	used := map[netip.Addr]bool{machine.Gateway: true}
	for _, sibling := range siblings(filepath.Dir(d.Path)) {
		if s, err := sibling.load(); err == nil {
			used[s.Address] = true
		}
	}
	for {
		address := machine.Network.Addr().As4()
		_, _ = rand.Read(address[2:]) // never fails
		// No machine has the first or the last address of a network.
		if address[3] != 0 && address[3] != 255 && !used[netip.AddrFrom4(address)] {
			return netip.AddrFrom4(address)
		}
	}
}

// unusedPodNetwork picks one of 64,000 networks at random. It avoids the networks of clusters in
// the same root.
func (d Dir) unusedPodNetwork() [3]byte {
	used := map[[3]byte]bool{}
	for _, sibling := range siblings(filepath.Dir(d.Path)) {
		if s, err := sibling.load(); err == nil {
			used[s.PodNetwork] = true
		}
	}
	for {
		var b [2]byte
		_, _ = rand.Read(b[:]) // never fails
		// Other programs put their own addresses into 127.0 and 127.255.
		network := [3]byte{127, 1 + b[0]%254, b[1]}
		if !used[network] {
			return network
		}
	}
}

func (d Dir) save(s state) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the state of cluster %s: %w", d.Name, err)
	}
	return writeFile(d.file("state.json"), append(data, '\n'))
}

// writeFile replaces a file as a whole, readable by this user only.
func writeFile(path string, data []byte) error {
	temporary := path + ".new"
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// siblings are the state directories in a root.
func siblings(root string) []Dir {
	paths, err := filepath.Glob(filepath.Join(root, "*", "state.json"))
	if err != nil {
		return nil // Only a malformed pattern; a root with one has no clusters.
	}
	var dirs []Dir
	for _, path := range paths {
		dir := filepath.Dir(path)
		dirs = append(dirs, Dir{Name: filepath.Base(dir), Path: dir})
	}
	return dirs
}

// owner identifies the running `up` of this cluster.
func (d Dir) owner() (process.Identity, error) {
	data, err := os.ReadFile(d.file("owner.json"))
	if err != nil {
		return process.Identity{}, fmt.Errorf("reading the owner of cluster %s: %w", d.Name, err)
	}
	var id process.Identity
	if err := json.Unmarshal(data, &id); err != nil {
		return process.Identity{}, fmt.Errorf("reading the owner of cluster %s: %w", d.Name, err)
	}
	return id, nil
}

func (d Dir) recordOwner() error {
	id, err := process.Self()
	if err != nil {
		return err
	}
	data, err := json.Marshal(id)
	if err != nil {
		return fmt.Errorf("encoding the owner of cluster %s: %w", d.Name, err)
	}
	return writeFile(d.file("owner.json"), data)
}
