package access

import (
	"slices"
)

// Version is a version of the interface: the date since which it exists.
type Version string

// Version1 is the first version.
const Version1 Version = "2026-11-22"

// Versions are the versions that the service speaks, the oldest first. docs/versioning.md describes them.
var Versions = []Version{Version1}

// NewestVersion returns the version of new keys, and of requests with a key that has no version.
func NewestVersion() Version { return Versions[len(Versions)-1] }

// Known reports whether the service speaks the version.
func (v Version) Known() bool { return slices.Contains(Versions, v) }
