package clone

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
)

// maxObject bounds the bytes of one object of a pack. go-git unpacks each whole into memory, while
// it makes the index.
const maxObject = 128 << 20

// errObject is the error for a pack with an object of too many bytes.
var errObject = fmt.Errorf("a file of the commit has more than %d MiB: remove it from the repository, or store it elsewhere", maxObject>>20)

// errBrokenPack is the error for a pack that is none.
var errBrokenPack = errors.New("the server sent a broken pack")

// checkPack reads a pack, and returns an error at the first object of more bytes than the limit.
// Nothing of an object stays in memory. An object with more data than in its header is an
// error, too. go-git checks the digests.
//
// Source: gitformat-pack(5).
func checkPack(pack io.Reader, limit int64) error {
	r := bufio.NewReader(pack)
	var header [12]byte
	switch _, err := io.ReadFull(r, header[:]); {
	case errors.Is(err, io.EOF):
		return nil // the server has nothing new
	case err != nil, string(header[:4]) != "PACK":
		return errBrokenPack
	}
	for range binary.BigEndian.Uint32(header[8:]) {
		if err := checkObject(r, limit); err != nil {
			return err
		}
	}
	_, err := io.Copy(io.Discard, r)
	return err
}

// checkObject reads one object of a pack.
func checkObject(r *bufio.Reader, limit int64) error {
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
	if size > limit || size < 0 {
		return errObject
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
	data, err := zlib.NewReader(r)
	if err != nil {
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
			if result, err := readSize(start); err != nil {
				return err
			} else if result > limit || result < 0 {
				return errObject
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

// checked writes a pack to a storage after checkPack has read the same bytes.
type checked struct {
	io.WriteCloser
	check *io.PipeWriter
	ended chan error
}

func newChecked(writer io.WriteCloser) *checked {
	read, write := io.Pipe()
	c := &checked{writer, write, make(chan error, 1)}
	go func() {
		err := checkPack(read, maxObject)
		_ = read.CloseWithError(err) // always nil
		c.ended <- err
	}()
	return c
}

func (c *checked) Write(p []byte) (int, error) {
	if n, err := c.check.Write(p); err != nil {
		return n, err
	}
	return c.WriteCloser.Write(p)
}

func (c *checked) Close() error {
	_ = c.check.Close() // always nil
	return errors.Join(<-c.ended, c.WriteCloser.Close())
}
