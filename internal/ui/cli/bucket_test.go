package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/minio/minio-go/v7"

	"github.com/muster-fleet/muster/internal/testbucket"
)

// TestABackupGoesToABucketAndComesBackFromIt uses one account that only writes, and one that only
// reads.
func TestABackupGoesToABucketAndComesBackFromIt(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	cluster, s := toBackUp(t), testbucket.Start(t)
	admin := of(t, cluster, cluster.Account(t, "cli-admin", "cluster-admin"))
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	identity := filepath.Join(t.TempDir(), "key.txt")
	if err := os.WriteFile(identity, []byte(key.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	writer := s.Environment("writer", "hub/", "s3:ListBucket", "s3:PutObject", "s3:AbortMultipartUpload")
	reader := s.Environment("reader", "hub/", "s3:GetObject")
	as := func(variables map[string]string) {
		t.Helper()
		for name, value := range variables {
			t.Setenv(name, value)
		}
	}
	t.Setenv("HOME", t.TempDir())
	command := "backup --recipient " + key.Recipient().String() + " -o s3://backups/hub/monday.age"
	admin.refused(command, "there are no credentials of the S3 server")
	as(writer)
	admin.refused(command+" --s3-endpoint "+s.Endpoint, "check the address, the network and the certificate authority")
	t.Setenv("AWS_ENDPOINT_URL", s.Endpoint)
	t.Setenv("AWS_CA_BUNDLE", s.CAFile)
	admin.refused(strings.Replace(command, "backups", "nothing", 1), "there is no such bucket")
	admin.refused(strings.Replace(command, "s3://backups/hub/monday.age", "s3://backups", 1), "names no object")
	admin.says(command, "130 clustergroups.fleet.cattle.io", "s3://backups/hub/monday.age has ", "written in")
	admin.refused(command, "exists already, and is not replaced")
	admin.refused("restore s3://backups/hub/monday.age --identity "+identity, "the credentials have no right to do this")

	some := of(t, cluster, cluster.Account(t, "cli-tenant", "sees-clusters"))
	some.refused(strings.Replace(command, "monday", "tuesday", 1), "forbidden")
	if keys := s.Keys(); len(keys) != 1 {
		t.Errorf("after a failed backup, the bucket has %q", keys)
	}
	var text bytes.Buffer
	object, err := s.Root.GetObject(context.Background(), testbucket.Name, "hub/monday.age", minio.GetObjectOptions{})
	if err == nil {
		_, err = text.ReadFrom(object)
	}
	if plain := bytes.Contains(text.Bytes(), []byte(secretValue)); err != nil || text.Len() == 0 || plain {
		t.Errorf("the object has %d bytes, and the Secret in plain text: %t (%v)", text.Len(), plain, err)
	}

	as(reader)
	t.Setenv("TMPDIR", t.TempDir())
	restore := "restore s3://backups/hub/monday.age --identity " + identity
	admin.refused(restore, "the hub has ", "members of its own")
	admin.refused("restore s3://backups/hub/none.age --identity "+identity, "s3://backups/hub/none.age")
	admin.says(restore+" --merge", "\n0 objects of the backup")
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "*")); err != nil || len(left) != 0 {
		t.Errorf("a restore leaves %v (%v)", fmt.Sprint(left), err)
	}
}
