package bucket

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // the ETag of S3, no protection
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// partSize is the size of a part, and limits the memory of an upload. A server takes 10,000 parts.
const partSize = 8 << 20

// Upload is an object that is being written. It becomes an object with Commit.
type Upload struct {
	ctx    context.Context
	client *Client
	object Object
	id     string
	parts  []minio.CompletePart
	sums   []byte
	buffer []byte
	size   int64
	// unchecked is true if the credentials may not list the bucket.
	unchecked bool
	// Note is a sentence about a limit of the server; empty for none.
	Note string
}

// Create begins an upload. It returns an error if the object exists.
func (c *Client) Create(ctx context.Context, o Object) (*Upload, error) {
	u := &Upload{ctx: ctx, client: c, object: o, buffer: make([]byte, 0, partSize)}
	found, err := c.find(ctx, o)
	var said minio.ErrorResponse
	switch {
	case errors.As(err, &said) && said.Code == "AccessDenied":
		u.unchecked = true
	case err != nil:
		return nil, c.explained("looking for", o, err)
	case found != nil:
		return nil, fmt.Errorf("writing %s: it %w", o, ErrExists)
	}
	return u, nil
}

// find returns the object; nil if there is none. It lists, because a right to read objects is more
// than a backup needs.
func (c *Client) find(ctx context.Context, o Object) (*minio.ObjectInfo, error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	found, any := <-c.core.Client.ListObjects(ctx, o.Bucket, minio.ListObjectsOptions{Prefix: o.Key, Recursive: true, MaxKeys: 1})
	switch {
	case any && found.Err != nil:
		return nil, found.Err
	case any && found.Key == o.Key: // an object sorts before all others with its name as prefix
		return &found, nil
	}
	return nil, ctx.Err()
}

// Write implements io.Writer. It sends each full part.
func (u *Upload) Write(text []byte) (int, error) {
	written := 0
	for len(text) > 0 {
		n := min(len(text), partSize-len(u.buffer))
		u.buffer, text = append(u.buffer, text[:n]...), text[n:]
		written += n
		if len(u.buffer) == partSize {
			if err := u.sendPart(); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

// sendPart sends the buffer as a part, and empties it.
func (u *Upload) sendPart() (err error) {
	core, doing := u.client.core, "writing"
	if u.id == "" {
		if u.id, err = core.NewMultipartUpload(u.ctx, u.object.Bucket, u.object.Key, options(false)); err != nil {
			return u.client.explained(doing, u.object, err)
		}
	}
	sum, sha := md5.Sum(u.buffer), sha256.Sum256(u.buffer) //nolint:gosec // the ETag of S3
	part, err := core.PutObjectPart(u.ctx, u.object.Bucket, u.object.Key, u.id, len(u.parts)+1, bytes.NewReader(u.buffer),
		int64(len(u.buffer)), minio.PutObjectPartOptions{
			Md5Base64: base64.StdEncoding.EncodeToString(sum[:]), Sha256Hex: hex.EncodeToString(sha[:]),
		})
	if err != nil {
		return u.client.explained(doing, u.object, err)
	}
	u.parts = append(u.parts, minio.CompletePart{PartNumber: part.PartNumber, ETag: part.ETag})
	u.sums = append(u.sums, sum[:]...)
	u.size += int64(len(u.buffer))
	u.buffer = u.buffer[:0]
	return nil
}

func options(unlessExists bool) minio.PutObjectOptions {
	o := minio.PutObjectOptions{ContentType: "application/octet-stream"}
	if unlessExists {
		o.SetMatchETagExcept("*")
	}
	return o
}

// Commit makes the upload an object, and returns its size.
func (u *Upload) Commit() (int64, error) {
	if u.id != "" && len(u.buffer) > 0 {
		if err := u.sendPart(); err != nil {
			return 0, err
		}
	}
	etag, err := u.complete(true)
	var said minio.ErrorResponse
	if errors.As(err, &said) && isCode(said, "NotImplemented", http.StatusNotImplemented) && !u.unchecked {
		u.Note = "The S3 server cannot refuse to replace an object by itself: the command has checked that there was none."
		etag, err = u.completeAfterCheck()
	}
	if err != nil && !u.arrived(etag) {
		return 0, u.client.explained("writing", u.object, err)
	}
	return u.size, nil
}

// complete sends the last request of an upload, and returns the expected ETag of the object.
func (u *Upload) complete(unlessExists bool) (etag string, err error) {
	core := u.client.core
	if u.id != "" {
		whole := md5.Sum(u.sums) //nolint:gosec // the ETag of S3
		_, err = core.CompleteMultipartUpload(u.ctx, u.object.Bucket, u.object.Key, u.id, u.parts, options(unlessExists))
		return fmt.Sprintf("%x-%d", whole, len(u.parts)), err
	}
	sum, sha := md5.Sum(u.buffer), sha256.Sum256(u.buffer) //nolint:gosec // the ETag of S3
	u.size = int64(len(u.buffer))
	_, err = core.PutObject(u.ctx, u.object.Bucket, u.object.Key, bytes.NewReader(u.buffer), u.size,
		base64.StdEncoding.EncodeToString(sum[:]), hex.EncodeToString(sha[:]), options(unlessExists))
	return hex.EncodeToString(sum[:]), err
}

func (u *Upload) completeAfterCheck() (etag string, err error) {
	found, err := u.client.find(u.ctx, u.object)
	switch {
	case err != nil:
		return "", err
	case found != nil:
		return "", minio.ErrorResponse{Code: "PreconditionFailed"}
	}
	return u.complete(false)
}

// arrived reports whether this upload's object exists in spite of an error. If an answer is lost,
// the repeated request meets the object of the first one. Another object has another ETag.
func (u *Upload) arrived(etag string) bool {
	found, err := u.client.find(u.ctx, u.object)
	return err == nil && found != nil && etag != "" && found.Size == u.size && strings.Trim(found.ETag, `"`) == etag
}

// abortTime is the time for the removal of the parts after a failure.
const abortTime = 20 * time.Second

// Abort removes the parts of a failed upload. No object has existed.
func (u *Upload) Abort() error {
	if u.id == "" {
		return nil
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(u.ctx), abortTime)
	defer done()
	err := u.client.core.AbortMultipartUpload(ctx, u.object.Bucket, u.object.Key, u.id)
	var said minio.ErrorResponse
	if errors.As(err, &said) && said.Code == "NoSuchUpload" {
		return nil
	}
	return u.client.explained("removing the parts of", u.object, err)
}
