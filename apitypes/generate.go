//go:build ignore

// Command generate writes the types of openapi.yaml, with oapi-codegen and its options. The members of a type have
// the order of openapi.yaml: without x-order, oapi-codegen sorts them by name.
package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// without removes from openapi.yaml what is not needed for types, and would make oapi-codegen rename some.
const without = `overlay: 1.0.0
info: { title: The schemas, version: "1" }
actions:
  - { target: $.webhooks, remove: true }
  - { target: $.components.parameters, remove: true }
  - { target: $.components.schemas.*.x-go-name, remove: true }
  - { target: "$.paths.*.*.parameters", remove: true }
`

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	spec, err := os.ReadFile("../openapi.yaml")
	if err != nil {
		return err
	}
	var document struct {
		Components struct {
			Schemas yaml.MapSlice `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.UnmarshalWithOptions(spec, &document, yaml.UseOrderedMap()); err != nil {
		return err
	}
	config, err := os.ReadFile("oapi-codegen.yaml")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "apitypes")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var overlay strings.Builder
	overlay.WriteString(without)
	order(&overlay, "$.components.schemas", document.Components.Schemas)
	files := map[string]string{"overlay.yaml": overlay.String(), "config.yaml": strings.ReplaceAll(string(config), "{dir}", dir)}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	args := []string{"tool", "-modfile=../tools/go.mod", "oapi-codegen", "-config", filepath.Join(dir, "config.yaml"), "-package", "apitypes"}
	generate := exec.Command("go", slices.Concat(args, os.Args[1:], []string{"../openapi.yaml"})...)
	generate.Stdout, generate.Stderr = os.Stdout, os.Stderr
	return generate.Run()
}

// order writes actions that give the members of all objects in a part of openapi.yaml their order.
func order(overlay *strings.Builder, path string, part any) {
	switch part := part.(type) {
	case yaml.MapSlice:
		for _, item := range part {
			order(overlay, fmt.Sprintf("%s[%q]", path, item.Key), item.Value)
			members, ok := item.Value.(yaml.MapSlice)
			if item.Key != "properties" || !ok {
				continue
			}
			for i, member := range members {
				fmt.Fprintf(overlay, "  - { target: '%s[\"properties\"][%q]', update: { x-order: %d } }\n", path, member.Key, i+1)
			}
		}
	case []any:
		for i, element := range part {
			order(overlay, fmt.Sprintf("%s[%d]", path, i), element)
		}
	}
}
