// Command lint checks the Dockerfile, the Compose file and the Kubernetes manifests of
// the repository, strictly. It prints every problem and exits with 1 if there is one.
//
// It is a separate module, so that users of the packages do not download its dependencies.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: lint REPOSITORY")
		os.Exit(2)
	}
	root := os.Args[1]
	err := errors.Join(
		prefix("Dockerfile", lintDockerfile(filepath.Join(root, "Dockerfile"))),
		prefix("compose.yaml", lintCompose(context.Background(), filepath.Join(root, "deploy", "compose", "compose.yaml"))),
		lintManifests(filepath.Join(root, "deploy", "kubernetes")),
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func prefix(file string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return err
}

// lintDockerfile parses a Dockerfile as BuildKit does, with its rules.
func lintDockerfile(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	var problems []error
	for _, w := range parsed.Warnings {
		problems = append(problems, errors.New(w.Short))
	}
	rules := linter.New(&linter.Config{Warn: func(rule, _, _, message string, at []parser.Range) {
		line := 0
		if len(at) > 0 {
			line = at[0].Start.Line
		}
		problems = append(problems, fmt.Errorf("line %d: %s: %s", line, rule, message))
	}})
	stages, _, err := instructions.Parse(parsed.AST, rules)
	if err != nil {
		return errors.Join(append(problems, err)...)
	}
	return errors.Join(append(problems, checkImage(stages[len(stages)-1]))...)
}

// checkImage wants the last stage to have a user without privileges and a health check.
func checkImage(last instructions.Stage) error {
	var user, health bool
	for _, command := range last.Commands {
		switch c := command.(type) {
		case *instructions.UserCommand:
			user = c.User != "" && c.User != "root" && !strings.HasPrefix(c.User, "0")
		case *instructions.HealthCheckCommand:
			health = !slices.Contains(c.Health.Test, "NONE")
		}
	}
	if !user || !health {
		return errors.New("the last stage wants USER, not root, and HEALTHCHECK")
	}
	return nil
}

// lintCompose loads a Compose file, which validates it against the schema, and checks how its services
// are confined.
func lintCompose(ctx context.Context, path string) error {
	options, err := cli.NewProjectOptions([]string{path}, cli.WithName("quittance"), cli.WithEnv([]string{"DOMAIN=pay.example.com"}))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(ctx)
	if err != nil {
		return err
	}
	var problems []error
	for name, s := range project.Services {
		for what, ok := range map[string]bool{
			"restart":                                s.Restart != "",
			"healthcheck":                            s.HealthCheck != nil || s.Build != nil, // or the image's
			"read_only: true":                        s.ReadOnly,
			"cap_drop: [ALL]":                        slices.Contains(s.CapDrop, "ALL"),
			"security_opt: [no-new-privileges:true]": slices.Contains(s.SecurityOpt, "no-new-privileges:true"),
			"mem_limit":                              s.MemLimit > 0,
			"a version of its image":                 s.Build != nil || strings.Contains(s.Image, ":") && !strings.HasSuffix(s.Image, ":latest"),
		} {
			if !ok {
				problems = append(problems, fmt.Errorf("service %s wants %s", name, what))
			}
		}
	}
	if db := project.Services["postgres"]; len(db.Ports) > 0 || !onlyInternal(db.NetworksByPriority(), func(n string) bool { return bool(project.Networks[n].Internal) }) {
		problems = append(problems, errors.New("postgres can be reached from outside"))
	}
	return errors.Join(problems...)
}

func onlyInternal(networks []string, internal func(string) bool) bool {
	return len(networks) > 0 && !slices.ContainsFunc(networks, func(n string) bool { return !internal(n) })
}
