package backup

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func newKey(t *testing.T) *age.X25519Identity {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func object(kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// written returns a file with two objects.
func written(t *testing.T, header Header, by age.Recipient) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := newWriter(&out, header, by)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a-secret-name", "another"} {
		if _, err := w.object(object("Secret", "clusters", name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestOnlyTheKeyOpensAFile(t *testing.T) {
	key := newKey(t)
	file := written(t, Header{Format: format, ID: "1"}, key.Recipient())
	if bytes.Contains(file, []byte("a-secret-name")) || bytes.Contains(file, []byte(format)) {
		t.Error("the file can be read without the key")
	}
	var names []string
	header, err := Read(bytes.NewReader(file), []age.Identity{key}, func(_ Header, o *unstructured.Unstructured) error {
		names = append(names, o.GetName())
		return nil
	})
	if err != nil || header.ID != "1" || strings.Join(names, " ") != "a-secret-name another" {
		t.Errorf("read %v of %+v: %v", names, header, err)
	}
	_, err = Read(bytes.NewReader(file), []age.Identity{newKey(t)}, func(Header, *unstructured.Unstructured) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "it is encrypted for another key or with another passphrase") {
		t.Errorf("another key: %v", err)
	}
}

func TestADamagedFileIsRefused(t *testing.T) {
	key := newKey(t)
	whole := written(t, Header{Format: format}, key.Recipient())
	changed := bytes.Clone(whole)
	changed[len(changed)-20] ^= 1
	var unfinished, plain bytes.Buffer
	w, err := newWriter(&unfinished, Header{Format: format}, key.Recipient())
	if err == nil {
		_, err = w.object(object("Secret", "a", "b"))
	}
	if err = errors.Join(err, w.packed.Close(), w.encrypted.Close()); err != nil {
		t.Fatal(err)
	}
	by, err := age.Encrypt(&plain, key.Recipient())
	if err == nil {
		_, err = by.Write([]byte("kind: Secret"))
	}
	if err = errors.Join(err, by.Close()); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		file []byte
		want string
	}{
		"cut off":           {whole[:len(whole)-1], "reading the backup"},
		"changed":           {changed, "reading the backup"},
		"without an end":    {unfinished.Bytes(), "it is not complete"},
		"another content":   {plain.Bytes(), "it is not a backup of Muster"},
		"no file of age":    {[]byte("kind: Secret"), "opening the backup"},
		"an unknown format": {written(t, Header{Format: "muster-backup/9"}, key.Recipient()), "use the version of muster that wrote it"},
	} {
		_, err := Read(bytes.NewReader(row.file), []age.Identity{key}, func(Header, *unstructured.Unstructured) error { return nil })
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}

func TestKeysOfTheCommandLine(t *testing.T) {
	key, directory := newKey(t), t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	public, private := file("public", "# comment\n"+key.Recipient().String()+"\n"), file("private", key.String()+"\n")
	passphrase, none := file("passphrase", "correct horse\r\nsecond line"), file("none", "\n")
	for name, row := range map[string]struct {
		keys Keys
		want string
	}{
		"none":                     {Keys{}, "always encrypted"},
		"a private key as public":  {Keys{Recipients: []string{key.String()}}, "--recipient is not a public key"},
		"both":                     {Keys{RecipientsFile: public, PassphraseFile: passphrase}, "exclude each other"},
		"an empty passphrase":      {Keys{PassphraseFile: none}, "is empty"},
		"a file that is not there": {Keys{RecipientsFile: "missing"}, "reading --recipients-file"},
		"a key":                    {Keys{Recipients: []string{key.Recipient().String()}}, ""},
		"a file of keys":           {Keys{RecipientsFile: public}, ""},
		"a passphrase":             {Keys{PassphraseFile: passphrase}, ""},
	} {
		_, err := row.keys.ForWriting()
		if (err == nil) != (row.want == "") ||
			err != nil && (!strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), key.String())) {
			t.Errorf("writing with %s: %v, want %q", name, err, row.want)
		}
	}
	for name, row := range map[string]struct {
		keys Keys
		want string
	}{
		"none":         {Keys{}, "give --identity"},
		"a public key": {Keys{IdentityFile: public}, "holds no private key"},
		"a key":        {Keys{IdentityFile: private}, ""},
		"a passphrase": {Keys{PassphraseFile: passphrase}, ""},
	} {
		_, err := row.keys.ForReading()
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("reading with %s: %v, want %q", name, err, row.want)
		}
	}
}

func TestOnlyOldBackupsOfADirectoryAreDeleted(t *testing.T) {
	d := Directory{Path: t.TempDir(), Keep: 2}
	names := []string{
		"muster-backup-20260101T000000Z.age", "muster-backup-20260102T000000Z.age", "muster-backup-20260103T000000Z.age",
		"muster-backup-20260103T010000Z.age.unfinished", "another.age", "muster-backup-notes.txt",
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(d.Path, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.prune(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	if got := strings.Join(left, " "); got != "another.age muster-backup-20260102T000000Z.age muster-backup-20260103T000000Z.age "+
		"muster-backup-notes.txt" {
		t.Errorf("the directory has %s", got)
	}
}
