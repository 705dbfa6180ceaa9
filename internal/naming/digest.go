package naming

import (
	"crypto/sha1" //nolint:gosec // as Rancher Fleet does; nothing is protected by it
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// shortDigest is the number of digits of a ShortDigest, 64 bits.
const shortDigest = 16

// Digest returns the SHA-256 digest of data in hexadecimal digits.
func Digest[T ~string | ~[]byte](data T) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}

// ShortDigest returns the first 16 digits of the Digest. It detects changes and shortens names. It
// is no proof of content written by others.
func ShortDigest[T ~string | ~[]byte](data T) string { return Digest(data)[:shortDigest] }

// DigestOfParts returns the digest of the digests of all parts, so different lists of parts differ.
func DigestOfParts[T ~string | ~[]byte](parts ...T) string {
	var all []byte
	for _, part := range parts {
		sum := sha256.Sum256([]byte(part))
		all = append(all, sum[:]...)
	}
	return Digest(all)
}

// FieldHash returns Rancher Fleet's digest of a field in the status of a Cluster: SHA-224 of its
// JSON.
func FieldHash(field any) string {
	text, err := json.Marshal(field)
	if err != nil {
		panic(err) // plain data: a mistake in this program
	}
	sum := sha256.Sum224(text)
	return hex.EncodeToString(sum[:])
}

// ObjectSetHash returns the label of the objects of a set, from the annotations about the set.
func ObjectSetHash(annotations string) string {
	sum := sha1.Sum([]byte(annotations)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}
