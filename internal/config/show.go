package config

import (
	"bytes"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// Show returns the settings in effect for the file at path, as YAML: the file's settings, and the
// defaults of the settings that it leaves out. Secrets are shown as the file's references; if the file
// contains the URL of a database or node, parts that may hold a secret are left out. It fails like
// Load.
func Show(path string, src Source) ([]byte, error) {
	f, _, err := load(path, src)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(f.Database.url, "sqlite:") {
		f.Database.url = origin(f.Database.url)
	}
	if l := f.Database.readOnly; l != nil {
		l.url = origin(l.url)
	}
	for _, c := range f.Chains {
		for i, node := range c.RPC {
			c.RPC[i].url = origin(node.url)
		}
	}
	var out bytes.Buffer
	err = yaml.NewEncoder(&out, yaml.OmitEmpty(), yaml.IndentSequence(true)).Encode(f)
	return out.Bytes(), err
}

// brief writes a duration without the zeros behind its last unit, such as 24h.
func brief(d time.Duration) scalar {
	text := d.String()
	if d > 0 && d%time.Minute == 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	if d > 0 && d%time.Hour == 0 {
		text = strings.TrimSuffix(text, "0m")
	}
	return scalar(text)
}

func number(n uint64) *scalar {
	text := scalar(strconv.FormatUint(n, 10))
	return &text
}

// inBillions writes a number of billionths in the form that billionths reads. It leaves out 0, which
// billionths does not accept.
func inBillions(n uint64) scalar {
	if n == 0 {
		return ""
	}
	text := new(big.Rat).SetFrac(new(big.Int).SetUint64(n), big.NewInt(1_000_000_000)).FloatString(gweiDecimals)
	return scalar(strings.TrimSuffix(strings.TrimRight(text, "0"), "."))
}

// MarshalYAML writes the form that was read.
func (l location) MarshalYAML() (any, error) {
	switch {
	case l.env != "":
		return map[string]string{"urlEnv": l.env}, nil
	case l.file != "":
		return map[string]string{"urlFile": l.file}, nil
	}
	return l.url, nil
}

// MarshalYAML writes a mapping if there is a standby.
func (d databaseFile) MarshalYAML() (any, error) {
	if d.readOnly == nil {
		return d.location.MarshalYAML()
	}
	return databaseMapping{d.url, d.env, d.file, d.readOnly}, nil
}

// MarshalYAML writes a whole number as such, and any other text as text.
func (s scalar) MarshalYAML() (any, error) {
	if n, err := strconv.ParseUint(string(s), 10, 64); err == nil && strconv.FormatUint(n, 10) == string(s) {
		return n, nil
	}
	return string(s), nil
}
