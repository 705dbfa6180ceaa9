package hub_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testbucket"
	"github.com/muster-fleet/muster/internal/testkube"
)

// TestTheJobForBackupsKeepsItsOwnNamesInABucket runs the program with the rights of the chart, and
// with the policy of docs/operations/backup.md, so it cannot read an object.
func TestTheJobForBackupsKeepsItsOwnNamesInABucket(t *testing.T) {
	f, s := newFixture(t), testbucket.Start(t)
	f.cluster.InstallTemplate(t, "fleet/templates/backup-rbac.yaml")
	const account = "system:serviceaccount:" + naming.SystemNamespace + ":fleet-backup"
	key, err := age.GenerateX25519Identity()
	f.check(err)
	kubeconfig := f.kubeconfigOf(account)
	environment := append(os.Environ(), "AWS_ENDPOINT_URL="+s.Endpoint)
	run := func(more ...string) (string, error) {
		command := exec.Command(testkube.Build(t, "muster-hub"), append([]string{"backup", "--kubeconfig", kubeconfig,
			"--bucket", "s3://" + testbucket.Name + "/hub", "--s3-ca-file", s.CAFile, "--recipient", key.Recipient().String()}, more...)...)
		command.Env = environment
		out, err := command.CombinedOutput()
		return string(out), err
	}
	set := func(variables map[string]string) {
		for name, value := range variables {
			environment = append(environment, name+"="+value)
		}
	}
	const old, older = "hub/muster-backup-20260102T000000Z.age", "hub/muster-backup-20260101T000000Z.age"
	others := []string{
		"hub/muster-backup-20250101T000000Z.age.txt", "hub/muster-backup-mine.age", "hub/muster-backup-x/muster-backup-20250101T000000Z.age",
		"hub/readme", "muster-backup-20250101T000000Z.age", "other/muster-backup-20250101T000000Z.age",
	}
	for _, name := range append(others, old, older) {
		s.Put(name, "text")
	}
	own := func() (names []string) {
		keys := s.Keys()
		for _, name := range others {
			if !slices.Contains(keys, name) {
				t.Errorf("%s is gone", name)
			}
		}
		return slices.DeleteFunc(keys, func(name string) bool { return slices.Contains(others, name) })
	}
	address := []string{"--s3-endpoint", s.Endpoint}

	set(s.Environment("keeper", "hub/", "s3:ListBucket", "s3:PutObject", "s3:AbortMultipartUpload", "s3:DeleteObject"))
	if out, err := run("--s3-endpoint", "https://127.0.0.1:1"); err == nil || !strings.Contains(out, "127.0.0.1:1") {
		t.Errorf("the environment gives the address: %v\n%s", err, out)
	}
	if out, err := run(append(address, "--keep", "2")...); err != nil || !strings.Contains(out, "s3://backups/hub/muster-backup-") {
		t.Fatalf("a backup: %v\n%s", err, out)
	}
	if got := own(); len(got) != 2 || !slices.Contains(got, old) {
		t.Errorf("of three backups, two should stay: %q", got)
	}

	set(s.Environment("writer", "hub/", "s3:ListBucket", "s3:PutObject", "s3:AbortMultipartUpload"))
	time.Sleep(time.Second) // another object has another time
	if out, err := run(append(address, "--keep", "0")...); err != nil {
		t.Fatalf("without the right to delete: %v\n%s", err, out)
	}
	time.Sleep(time.Second)
	if out, err := run(append(address, "--keep", "1")...); err == nil || !strings.Contains(out, "deleting older backups") ||
		strings.Contains(out, "secret-of-writer") {
		t.Errorf("deleting without the right: %v\n%s", err, out)
	}
	if got := own(); len(got) != 4 {
		t.Errorf("the job deleted without the right: %q", got)
	}
	if out, err := run(append(address, "--directory", t.TempDir())...); err == nil || !strings.Contains(out, "give one place") {
		t.Errorf("two places: %v\n%s", err, out)
	}
}
