package pebblestore

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// formatVersion is the version of the directory as a whole: our files, our keys
// in Pebble, and pebbleFormat. It rises when an older nixie could not read it.
const formatVersion = 1

// pebbleFormat is the version of Pebble's own files. It is pinned so that a new
// Pebble does not change directories by itself.
const pebbleFormat = pebble.FormatWALSyncChunks

// ErrFormat is the kind of error for a directory that this version cannot read.
var ErrFormat = errors.New("format of the data directory is not known")

const formatText = "nixie store, format "

// checkFormat refuses a directory that is not ours or is newer, and marks an
// empty one.
func checkFormat(v vfs.FS, dir string) error {
	text, err := readFile(v, dir, formatFile)
	if errors.Is(err, fs.ErrNotExist) {
		return markFormat(v, dir)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", v.PathJoin(dir, formatFile), err)
	}
	var version int
	rest, ours := strings.CutPrefix(text, formatText)
	if _, err := fmt.Sscanf(rest, "%d", &version); err != nil || !ours {
		return fmt.Errorf("%w: %s says %q", ErrFormat, v.PathJoin(dir, formatFile), text)
	}
	if version > formatVersion {
		return fmt.Errorf("%w: %s has format %d and this version of nixie reads up to %d; "+
			"use the version that wrote it, or a newer one", ErrFormat, dir, version, formatVersion)
	}
	return nil
}

// markFormat writes the format file, before anything else is in the directory.
func markFormat(v vfs.FS, dir string) error {
	names, err := v.List(dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "MANIFEST-") || strings.HasPrefix(name, "marker.") {
			return fmt.Errorf("%w: %s holds %s but no file %s", ErrFormat, dir, name, formatFile)
		}
	}
	if err := writeFile(v, dir, formatFile, fmt.Sprintf("%s%d\n", formatText, formatVersion)); err != nil {
		return fmt.Errorf("mark %s: %w", dir, err)
	}
	return nil
}
