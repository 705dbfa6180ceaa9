package clone

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/muster-fleet/muster/internal/repository/scan"
)

const (
	// maxObject bounds the bytes of one object of a pack. go-git needs up to three times as many in
	// memory, while it makes the index. The chart gives the program 512 MiB.
	maxObject = 64 << 20
	// largeObject is the size of a large object. Only one pack at a time may have those.
	largeObject = scan.MaxFile
)

// largeTurn holds the turn of the pack with large objects.
var largeTurn = make(chan struct{}, 1)

// errObject is the error for a pack with an object of too many bytes.
var errObject = fmt.Errorf("a file of the commit has more than %d MiB: remove it from the repository, or store it elsewhere", maxObject>>20)

// errBrokenPack is the error for an invalid pack.
var errBrokenPack = errors.New("the server sent a broken pack")

// checkPack reads a pack, and returns an error at the first object refused by allow for its size.
// Nothing of an object stays in memory. An object with more data than in its header is an error,
// too. go-git checks the digests.
//
// Source: gitformat-pack(5).
func checkPack(pack io.Reader, allow func(size int64) error) error {
	r := bufio.NewReader(pack)
	var header [12]byte
	switch _, err := io.ReadFull(r, header[:]); {
	case errors.Is(err, io.EOF):
		return nil // the server has nothing new
	case err != nil, string(header[:4]) != "PACK":
		return errBrokenPack
	}
	var data inflater
	for range binary.BigEndian.Uint32(header[8:]) {
		if err := checkObject(r, &data, allow); err != nil {
			return err
		}
	}
	_, err := io.Copy(io.Discard, r)
	return err
}

// inflater unpacks one object after another. A pack may have a hundred thousand.
type inflater struct{ io.ReadCloser }

func (i *inflater) reset(r io.Reader) (err error) {
	if i.ReadCloser == nil {
		i.ReadCloser, err = zlib.NewReader(r)
		return err
	}
	return i.ReadCloser.(zlib.Resetter).Reset(r, nil)
}

// checkObject reads one object of a pack.
func checkObject(r *bufio.Reader, data *inflater, allow func(size int64) error) error {
	first, err := r.ReadByte()
	if err != nil {
		return errBrokenPack
	}
	kind, size := plumbing.ObjectType(first>>4&7), int64(first&15)
	if first&0x80 != 0 {
		rest, err := readSize(r)
		if err != nil {
			return err
		}
		size |= rest << 4
	}
	if err := allow(size); err != nil {
		return err
	}
	switch kind {
	case plumbing.OFSDeltaObject:
		_, err = readSize(r) // the distance to the base, in the same number of bytes
	case plumbing.REFDeltaObject:
		_, err = r.Discard(len(plumbing.Hash{}))
	default:
	}
	if err != nil {
		return errBrokenPack
	}
	if data.reset(r) != nil {
		return errBrokenPack
	}
	start := &bytes.Buffer{}
	if kind.IsDelta() {
		const twoSizes = 20
		if _, err := io.CopyN(start, data, min(size, twoSizes)); err != nil {
			return errBrokenPack
		}
		size -= int64(start.Len())
		for range 2 { // of the base, and of the result
			result, err := readSize(start)
			if err == nil {
				err = allow(result)
			}
			if err != nil {
				return err
			}
		}
	}
	if n, err := io.Copy(io.Discard, io.LimitReader(data, size+1)); err != nil || n != size {
		return errBrokenPack
	}
	return nil
}

// readSize reads a number of seven bits in each byte, the lowest first.
func readSize(r io.ByteReader) (size int64, err error) {
	for shift := 0; shift < 56; shift += 7 {
		next, err := r.ReadByte()
		if err != nil {
			return 0, errBrokenPack
		}
		if size |= int64(next&0x7f) << shift; next&0x80 == 0 {
			return size, nil
		}
	}
	return 0, errBrokenPack
}

// checked writes a pack to a storage after checkPack has read the same bytes. It holds back the
// latest bytes, because checkPack may still be working on them.
type checked struct {
	io.WriteCloser
	check *io.PipeWriter
	ended chan error
	held  []byte
	// large is true while the pack has the turn of large objects.
	large bool
}

func newChecked(ctx context.Context, writer io.WriteCloser) *checked {
	read, write := io.Pipe()
	c := &checked{WriteCloser: writer, check: write, ended: make(chan error, 1)}
	go func() {
		err := checkPack(read, func(size int64) error { return c.allow(ctx, size) })
		_ = read.CloseWithError(err) // always nil
		c.ended <- err
	}()
	return c
}

// allow waits for the turn of large objects.
func (c *checked) allow(ctx context.Context, size int64) error {
	if size > maxObject {
		return errObject
	}
	if size <= largeObject || c.large {
		return nil
	}
	select {
	case largeTurn <- struct{}{}:
		c.large = true
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for other repositories with large files: %w", ctx.Err())
	}
}

func (c *checked) Write(p []byte) (int, error) {
	if n, err := c.check.Write(p); err != nil {
		return n, err
	}
	if len(c.held) > 0 {
		if _, err := c.WriteCloser.Write(c.held); err != nil {
			return 0, err
		}
	}
	c.held = append(c.held[:0], p...)
	return len(p), nil
}

func (c *checked) Close() error {
	_ = c.check.Close() // always nil
	err := <-c.ended
	if err == nil && len(c.held) > 0 {
		_, err = c.WriteCloser.Write(c.held)
	}
	err = errors.Join(err, c.WriteCloser.Close())
	if c.large {
		<-largeTurn
	}
	return err
}
