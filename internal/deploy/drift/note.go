package drift

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/version"
)

// A note has the stamps of the unmodified objects of a release. After a start, the deployer
// compares only objects with another stamp.
const (
	// maxNoted is the maximum number of objects in a note, 11 bytes each.
	maxNoted = 2000
	// entry is the length of an entry of a note in bytes, before its encoding.
	entry = 8
	// noteFormat changes with the meaning of an entry.
	noteFormat = "1"
)

// stamp is a digest of a compared object: its UID, all its content except the status, and Muster's
// fields. It excludes the resource version: the version changes with the status, and a member
// restored from a backup issues it again. A stamp is never 0.
func (s summary) stamp() uint64 {
	text := []byte(s.uid)
	for _, digest := range []uint64{s.fields, s.content} {
		text = binary.BigEndian.AppendUint64(text, digest)
	}
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint64(sum[:]) | 1
}

// heading returns the first entry of a note. The note counts only for the same revision, deployment
// options, objects and diff options, and for the same version of the program.
func heading(s release.Summary, keys []Key, diff string) []byte {
	text, err := json.Marshal([]any{
		noteFormat, version.Version, s.String(), s.DeployedAt.UTC().Format(time.RFC3339Nano),
		s.DeploymentID, s.SyncGeneration, s.ServiceAccount, keys, diff,
	})
	if err != nil {
		return nil // impossible: they are texts and numbers
	}
	sum := sha256.Sum256(text)
	return sum[:entry]
}

// readNote returns the stamps in the note of a release, by object. A note with another heading or
// length has none.
func readNote(s release.Summary, keys []Key, diff string) map[Key]uint64 {
	noted := map[Key]uint64{}
	text, err := base64.RawStdEncoding.DecodeString(s.Compared)
	keyed := keys[:min(len(keys), maxNoted)]
	if err != nil || s.DeploymentID == "" || len(text) != entry*(1+len(keyed)) || !bytes.Equal(text[:entry], heading(s, keys, diff)) {
		return noted
	}
	for i, key := range keyed {
		if stamp := binary.BigEndian.Uint64(text[entry*(1+i):]); stamp != 0 {
			noted[key] = stamp
		}
	}
	return noted
}

// isNoted reports whether an object is unchanged since a comparison found it unmodified.
func (s *Set) isNoted(key Key, is summary) bool {
	stamp, noted := s.noted[key]
	return noted && stamp == is.stamp()
}

// Note returns the note of the comparisons so far, and reports whether it has more stamps than the
// release's note. A modified object does not change the note, because its stamp differs anyway.
func (s *Set) Note() (text string, more bool) {
	if s.release.DeploymentID == "" {
		return "", false // the release does not name its deployment
	}
	note := heading(s.release, s.keys, s.diff)
	for _, key := range s.keys[:min(len(s.keys), maxNoted)] {
		stamp := s.noted[key]
		if found, compared := s.results[key]; compared && found.modified == nil && found.uid != "" && found.stamp() != stamp {
			stamp, more = found.stamp(), true
		}
		note = binary.BigEndian.AppendUint64(note, stamp)
	}
	return base64.RawStdEncoding.EncodeToString(note), more
}

// SetNote stores the current note of the release.
func (s *Set) SetNote(text string) {
	s.release.Compared = text
	s.noted = readNote(s.release, s.keys, s.diff)
}

// leaveOut discards the comparisons with other diff options, because the hub changes them under the
// same deployment ID.
func (s *Set) leaveOut(diff *fleet.DiffOptions) error {
	text, err := json.Marshal(diff)
	if err != nil {
		return fmt.Errorf("encoding the diff options: %w", err)
	}
	if s.diff == string(text) {
		return nil
	}
	s.diff, s.results = string(text), map[Key]result{}
	s.noted = readNote(s.release, s.keys, s.diff)
	return nil
}
