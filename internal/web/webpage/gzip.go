package webpage

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// pageLevel is the compression level of pages. At level 4, a page takes half a millisecond and a
// seventh fewer bytes than at level 1.
const pageLevel = 4

// pageWriters are writers at pageLevel, which have large tables.
var pageWriters = sync.Pool{New: func() any { return newGzipWriter(pageLevel) }}

func newGzipWriter(level int) *gzip.Writer {
	w, err := gzip.NewWriterLevel(nil, level)
	if err != nil {
		panic(err) // the level is valid
	}
	return w
}

// compress returns the gzip of body, or nil if it is no smaller.
func compress(body []byte, w *gzip.Writer) []byte {
	var b bytes.Buffer
	w.Reset(&b)
	_, err := w.Write(body)
	if err := errors.Join(err, w.Close()); err != nil || b.Len() >= len(body) {
		return nil
	}
	return b.Bytes()
}

// MinCompressed is the size above which data is compressed. Less fits into one segment of a connection anyway.
const MinCompressed = 1024

// maxCompressing bounds the bodies that are compressed at a time, and so their memory: a writer has
// tables of about 0.8 MB. Further responses are sent uncompressed.
const maxCompressing = 16

// compressing has an element for each body that is being compressed.
var compressing = make(chan struct{}, maxCompressing)

// compressPage returns the gzip of a page or of data, or nil if it is not smaller or too many others
// are being compressed.
func compressPage(body []byte) []byte {
	select {
	case compressing <- struct{}{}:
		defer func() { <-compressing }()
	default:
		return nil
	}
	w := pageWriters.Get().(*gzip.Writer) //nolint:forcetypeassert // the pool has no other type
	defer pageWriters.Put(w)
	return compress(body, w)
}

// Stream is the body of a response that is written in parts. Each part is compressed separately, so
// that the stream holds almost no memory between parts, while a client reads slowly.
type Stream struct {
	w      http.ResponseWriter
	plain  bool   // it is not compressed
	begun  bool   // gzip's header was written
	sum    uint32 // the CRC-32 of the parts
	length uint32 // theirs, modulo 2^32
}

// NewStream returns a stream into w. It is compressed if the body is large and the client accepts
// that, and sets the headers of the response that depend on it.
func NewStream(w http.ResponseWriter, r *http.Request, isLarge bool) *Stream {
	varies(w)
	s := &Stream{w: w, plain: !isLarge || !acceptsGzip(r)}
	if !s.plain {
		w.Header().Set("Content-Encoding", "gzip")
	}
	return s
}

// Write sends a part immediately.
func (s *Stream) Write(part []byte) (int, error) {
	sent := part
	if !s.plain {
		var b bytes.Buffer
		s.begin(&b)
		s.sum, s.length = crc32.Update(s.sum, crc32.IEEETable, part), s.length+uint32(len(part))
		if err := deflate(&b, part); err != nil {
			return 0, err
		}
		sent = b.Bytes()
	}
	if _, err := s.w.Write(sent); err != nil {
		return 0, fmt.Errorf("write response: %w", err)
	}
	if err := http.NewResponseController(s.w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, fmt.Errorf("write response: %w", err)
	}
	return len(part), nil
}

// Close ends the body: with an empty last block, the checksum and the length.
func (s *Stream) Close() error {
	if s.plain {
		return nil
	}
	var b bytes.Buffer
	s.begin(&b)
	end := binary.LittleEndian.AppendUint32([]byte{3, 0}, s.sum)
	b.Write(binary.LittleEndian.AppendUint32(end, s.length))
	_, err := s.w.Write(b.Bytes())
	return err
}

// begin writes gzip's header, once.
func (s *Stream) begin(b *bytes.Buffer) {
	if !s.begun {
		b.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255})
		s.begun = true
	}
}

// partWriters are writers at pageLevel.
var partWriters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, pageLevel)
	if err != nil {
		panic(err) // the level is valid
	}
	return w
}}

// deflate appends the blocks of a part to b. They do not refer to earlier parts. It waits while too
// many others are being compressed, each of which takes about a millisecond.
func deflate(b *bytes.Buffer, part []byte) error {
	compressing <- struct{}{}
	defer func() { <-compressing }()
	w := partWriters.Get().(*flate.Writer) //nolint:forcetypeassert // the pool has no other type
	defer partWriters.Put(w)
	w.Reset(b)
	_, err := w.Write(part)
	return errors.Join(err, w.Flush())
}

// varies makes caches use a compressed response only for clients that accept it.
func varies(w http.ResponseWriter) {
	if header := w.Header(); !slices.Contains(header["Vary"], acceptEncoding) {
		header.Add("Vary", acceptEncoding)
	}
}

const acceptEncoding = "Accept-Encoding"

// acceptsGzip reports whether the client takes gzip.
func acceptsGzip(r *http.Request) bool {
	for listed := range strings.SplitSeq(strings.Join(r.Header.Values(acceptEncoding), ","), ",") {
		coding, parameters, _ := strings.Cut(listed, ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") && !refuses(parameters) {
			return true
		}
	}
	return false
}

// refuses reports whether the parameters of a coding have a quality of zero.
func refuses(parameters string) bool {
	for p := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			return strings.Trim(strings.TrimSpace(value), "0.") == ""
		}
	}
	return false
}
