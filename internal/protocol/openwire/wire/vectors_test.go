package wire

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// vectorFiles are the files of testdata/vectors.tar.gz by name.
var vectorFiles = sync.OnceValues(func() (map[string][]byte, error) {
	f, err := os.Open("testdata/vectors.tar.gz")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for t := tar.NewReader(z); ; {
		head, err := t.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[strings.TrimPrefix(head.Name, "./")], err = io.ReadAll(t); err != nil {
			return nil, err
		}
	}
})

// vectorNames lists the vector files whose names the filter likes.
func vectorNames(t testing.TB, like func(name string) bool) []string {
	t.Helper()
	files, err := vectorFiles()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range files {
		if strings.HasSuffix(name, ".json") && like(name) {
			names = append(names, name)
		}
	}
	return names
}

// loadVector reads one vector file into v. Lone surrogates, which encoding/json
// would lose, become their three bytes.
func loadVector(t testing.TB, name string, v any) {
	t.Helper()
	files, err := vectorFiles()
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(markSurrogates(files[name])))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// surrogateMark stands before the four hex digits of a lone surrogate.
const surrogateMark = "\ue0ff"

var surrogates = regexp.MustCompile(`(?i)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|\\ud[89a-f][0-9a-f]{2}`)

func markSurrogates(src []byte) []byte {
	return surrogates.ReplaceAllFunc(src, func(m []byte) []byte {
		if len(m) > 6 {
			return m
		}
		return []byte(surrogateMark + string(m[2:]))
	})
}

// unmark gives a string of a vector in the form the package gives it.
func unmark(s string) string {
	for {
		i := strings.Index(s, surrogateMark)
		if i < 0 {
			return s
		}
		at := i + len(surrogateMark)
		unit, err := strconv.ParseUint(s[at:at+4], 16, 16)
		if err != nil {
			panic(err)
		}
		s = s[:i] + string(appendUnit(nil, rune(unit))) + s[at+4:]
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// frameBody takes the size off a frame of a vector.
func frameBody(t testing.TB, s string) []byte {
	t.Helper()
	body, err := ReadFrame(bytes.NewReader(unhex(t, s)), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// A typeVectors is the file of one data type.
type typeVectors struct {
	Type  string
	Code  byte
	Cases []vectorCase
}

type vectorCase struct {
	Name              string
	StackTraceEnabled *bool
	Fields            map[string]any
	Body              map[string]any
	Properties        []any
	Frames            map[string]map[string][]string // version, encoding, frames
}

// settings are those of a case's frames in one version ("v12") and encoding
// ("tight+cache").
func (c vectorCase) settings(t testing.TB, version, encoding string) Settings {
	t.Helper()
	v, err := strconv.Atoi(version[1:])
	if err != nil {
		t.Fatal(err)
	}
	s := encodingSettings(v, encoding)
	s.StackTrace = c.StackTraceEnabled == nil || *c.StackTraceEnabled
	return s
}

func encodingSettings(version int, encoding string) Settings {
	return Settings{
		Version:    version,
		Tight:      strings.HasPrefix(encoding, "tight"),
		Cache:      strings.HasSuffix(encoding, "+cache"),
		CacheSize:  1024,
		StackTrace: true,
	}
}

// pair is a decoder and an encoder after the negotiation.
func pair(s Settings) (*Decoder, *Encoder) {
	d, e := NewDecoder(), NewEncoder()
	d.Negotiated(s)
	e.Negotiated(s)
	return d, e
}
