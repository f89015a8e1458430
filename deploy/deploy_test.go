// Package deploy_test checks the files for installing Quittance. A tool made for the format checks
// each file, and the program's own rules check the configurations.
package deploy_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// TestExtraLint checks the Dockerfile as BuildKit parses it, the Compose file by its schema, and
// the Kubernetes manifests by their types and the restricted Pod Security Standard.
func TestExtraLint(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "run", ".", testdeps.Repo("."))
	cmd.Dir = "lint"
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly")
	if err := testdeps.MayInstall(); err != nil {
		cmd.Env = append(cmd.Env, "GOPROXY=off") // the linter's dependencies may have been downloaded before
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v (if modules are missing: run \"make test\", which downloads them)\n%s", err, out)
	}
}

// TestExtraCaddyfile loads the Caddyfile in Caddy without starting it.
func TestExtraCaddyfile(t *testing.T) {
	t.Parallel()
	caddy, err := testdeps.Unpacked(t.Context(), "deploy", "caddy", "caddy")
	expect.OK(t, err)
	cmd := exec.Command(caddy, "validate", "--adapter", "caddyfile", "--config", "compose/Caddyfile")
	cmd.Env = append(os.Environ(), "DOMAIN=pay.example.com", "XDG_DATA_HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestExtraUnit verifies the unit with systemd, and its rated confinement: at most 1.5 of 10 points of exposure.
func TestExtraUnit(t *testing.T) {
	t.Parallel()
	systemd, err := testdeps.ProgramOf(t.Context(), "deploy", "systemd", "systemd-analyze")
	expect.OK(t, err)
	raw := expect.Must(os.ReadFile("systemd/quittance.service"))
	// The program need not be installed.
	const command = "ExecStart=/usr/local/bin/quittance "
	if !strings.Contains(string(raw), command) {
		t.Fatalf("the unit lacks %s", command)
	}
	unit := filepath.Join(t.TempDir(), "quittance.service")
	expect.OK(t, os.WriteFile(unit, []byte(strings.Replace(string(raw), command, "ExecStart=/bin/true ", 1)), 0o600))
	for _, args := range [][]string{{"verify", "--man=no", unit}, {"security", "--offline=true", "--threshold=15", unit}} {
		out, err := exec.Command(systemd, args...).CombinedOutput()
		if err != nil || args[0] == "verify" && len(out) > 0 {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}

// secrets are contents of secret files, by the ends of their names.
var secrets = map[string]string{
	"database-url":      "postgres://quittance:hunter2@postgres:5432/quittance?sslmode=disable",
	"master-key":        "5ec7e78c3f1d5e9ab2047c6e11f0d93b58a7c42d7e9016fb83c5aa4e6d2719b0",
	"base-sepolia-node": "https://node.example.com/v2/hunter2",
}

// TestConfigurations loads the configuration of each way to install, as serve does.
func TestConfigurations(t *testing.T) {
	for _, path := range []string{"compose/quittance.yaml", "systemd/quittance.yaml", "kubernetes/config.yaml"} {
		t.Run(path, func(t *testing.T) {
			src := config.Source{File: func(name string) ([]byte, error) {
				if name == path {
					return configuration(path)
				}
				for end, secret := range secrets {
					if strings.HasSuffix(name, end) {
						return []byte(secret + "\n"), nil
					}
				}
				return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
			}}
			cfg, err := config.Load(path, src)
			if err != nil || len(cfg.Warnings) > 0 {
				t.Errorf("%v, with warnings %q", err, cfg.Warnings)
			}
		})
	}
}

// TestRecoverJob expects the Job that recovers the database to run as the service does, with its image and secrets.
func TestRecoverJob(t *testing.T) {
	type pod struct {
		SecurityContext any   `yaml:"securityContext"`
		Volumes         []any `yaml:"volumes"`
		Containers      []struct {
			Image           string   `yaml:"image"`
			Args            []string `yaml:"args"`
			SecurityContext any      `yaml:"securityContext"`
			VolumeMounts    []any    `yaml:"volumeMounts"`
		} `yaml:"containers"`
	}
	read := func(path string) pod {
		var object struct {
			Spec struct {
				Template struct {
					Spec pod `yaml:"spec"`
				} `yaml:"template"`
			} `yaml:"spec"`
		}
		expect.OK(t, yaml.Unmarshal(expect.Must(os.ReadFile(path)), &object))
		return object.Spec.Template.Spec
	}
	job, service := read("kubernetes/recover/job.yaml"), read("kubernetes/deployment.yaml")
	if got := strings.Join(job.Containers[0].Args, " "); got != "recover --config /etc/quittance/quittance.yaml" {
		t.Errorf("it runs %s", got)
	}
	job.Containers[0].Args = nil
	expect.NoDiff(t, cmp.Diff(service, job), "the pods of the service and of the job")
}

// configuration returns the content of a configuration file, or of the file in a ConfigMap.
func configuration(path string) ([]byte, error) {
	raw, err := os.ReadFile(path)
	if err != nil || filepath.Base(path) == "quittance.yaml" {
		return raw, err
	}
	var object struct {
		Data map[string]string `yaml:"data"`
	}
	err = yaml.Unmarshal(raw, &object)
	return []byte(object.Data["quittance.yaml"]), err
}
