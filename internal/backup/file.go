// Package backup writes the objects of a hub into one encrypted file, and creates them again on
// another cluster.
//
// Its invariants: all objects of a file are from one moment of the API server. A Secret leaves the
// process only encrypted. A restore creates objects, and never changes or deletes the objects of
// others. It also gives a hub without members the key and a higher term of the lost hub.
package backup

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// format is the name of the file format. A change of the format changes the name.
const format = "muster-backup/1"

// Header is the first line of a file.
type Header struct {
	Format string `json:"format"`
	// ID is random, and names the backup on restored objects.
	ID string `json:"id"`
	// Version is the version of the writing program.
	Version string    `json:"version"`
	Taken   time.Time `json:"taken"`
	// Cluster is the UID of the namespace kube-system of the hub's cluster.
	Cluster string `json:"cluster"`
	// ResourceVersion is the resource version of the API server at the moment of the backup.
	ResourceVersion string `json:"resourceVersion"`
	// Secrets reports whether the file has the Secrets of the workspaces.
	Secrets bool `json:"secrets"`
	// Hub is the identity of the hub; nil if it had none, or the backup had no right to read it.
	Hub *Hub `json:"hub,omitempty"`
}

// end is the last line of a file. A file without it is incomplete.
type end struct {
	Objects int `json:"objects"`
}

// line is one line of a file: a header, an object, or the end.
type line struct {
	Header *Header         `json:"header,omitempty"`
	Object json.RawMessage `json:"object,omitempty"`
	End    *end            `json:"end,omitempty"`
}

// writer writes a file: lines of JSON, compressed, and encrypted with age.
type writer struct {
	encrypted io.WriteCloser
	packed    *gzip.Writer
	lines     *json.Encoder
	objects   int
}

func newWriter(out io.Writer, header Header, recipients ...age.Recipient) (*writer, error) {
	encrypted, err := age.Encrypt(out, recipients...)
	if err != nil {
		return nil, fmt.Errorf("encrypting the backup: %w", err)
	}
	packed := gzip.NewWriter(encrypted)
	w := &writer{encrypted: encrypted, packed: packed, lines: json.NewEncoder(packed)}
	return w, w.write(line{Header: &header})
}

func (w *writer) write(l line) error {
	if err := w.lines.Encode(l); err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	return nil
}

// object writes an object, and returns its size before compression.
func (w *writer) object(o *unstructured.Unstructured) (int, error) {
	text, err := o.MarshalJSON()
	if err != nil {
		return 0, fmt.Errorf("encoding %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	w.objects++
	return len(text), w.write(line{Object: text})
}

// close writes the end of the file.
func (w *writer) close() error {
	if err := w.write(line{End: &end{Objects: w.objects}}); err != nil {
		return err
	}
	if err := errors.Join(w.packed.Close(), w.encrypted.Close()); err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	return nil
}

// Read decrypts a file and calls each for one object after the other, in the order of the file. It
// returns an error for an incomplete file.
func Read(file io.Reader, identities []age.Identity, each func(Header, *unstructured.Unstructured) error) (Header, error) {
	opened, err := age.Decrypt(file, identities...)
	if err != nil {
		return Header{}, fmt.Errorf("opening the backup: %w", explained(err))
	}
	packed, err := gzip.NewReader(opened)
	if err != nil {
		return Header{}, fmt.Errorf("reading the backup: it is not a backup of Muster: %w", err)
	}
	lines := json.NewDecoder(packed)
	var first line
	if err := lines.Decode(&first); err != nil || first.Header == nil {
		return Header{}, errors.Join(errors.New("reading the backup: it is not a backup of Muster"), err)
	}
	header := *first.Header
	if header.Format != format {
		return header, fmt.Errorf("reading the backup: it has the format %q, and this program reads %q: use the version of muster that wrote it",
			header.Format, format)
	}
	for objects := 0; ; objects++ {
		var next line
		switch err := lines.Decode(&next); {
		case err != nil:
			return header, fmt.Errorf("reading the backup: it is not complete: %w", err)
		case next.End != nil && next.End.Objects != objects:
			return header, fmt.Errorf("reading the backup: it has %d objects, and its end says %d", objects, next.End.Objects)
		case next.End != nil:
			_, err := io.Copy(io.Discard, packed) // this also authenticates the last piece of the file
			return header, err
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(next.Object); err != nil {
			return header, fmt.Errorf("reading object %d of the backup: %w", objects+1, err)
		}
		if err := each(header, o); err != nil {
			return header, err
		}
	}
}

// explained adds the remedy to an error of age.
func explained(err error) error {
	var none *age.NoIdentityMatchError
	if errors.As(err, &none) {
		return errors.New("it is encrypted for another key or with another passphrase")
	}
	return err
}
