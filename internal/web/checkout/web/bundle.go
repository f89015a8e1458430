//go:build ignore

// Command bundle bundles the TypeScript modules of pages. It is run with the modules of tools/go.mod.
//
//	go run -modfile=../../../../tools/go.mod bundle.go -modules DIR -out DIR [-classic MODULE] MODULE...
//
// It writes NAME.js for each NAME.ts, and NAME.LICENSE with the licenses of the npm packages in it. The bundles are
// modules, except the classic one, which is a script that declares no name in its page.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	modules := flag.String("modules", "", "the `folder` node_modules with the installed packages")
	out := flag.String("out", "", "the `folder` to write to")
	classic := flag.String("classic", "", "the `module` that is bundled as a classic script")
	flag.Parse()
	for _, entry := range flag.Args() {
		format := api.FormatESModule
		if entry == *classic {
			format = api.FormatIIFE
		}
		if err := bundle(entry, format, *modules, *out); err != nil {
			fmt.Fprintf(os.Stderr, "bundle %s: %v\n", entry, err)
			os.Exit(1)
		}
	}
}

// bundle bundles a module and what it imports into one file.
func bundle(entry string, format api.Format, modules, out string) error {
	modules, err := filepath.Abs(modules)
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(filepath.Base(entry), ".ts")
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{entry}, Outfile: filepath.Join(out, name+".js"), Metafile: true,
		Bundle: true, Format: format, Platform: api.PlatformBrowser, Target: api.ES2022, Charset: api.CharsetUTF8,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LegalComments: api.LegalCommentsNone,
		NodePaths: []string{modules}, LogLevel: api.LogLevelWarning,
	})
	if len(result.Errors)+len(result.Warnings) > 0 {
		return errors.New("see the messages above")
	}
	for _, f := range result.OutputFiles {
		if err := os.WriteFile(f.Path, f.Contents, 0o644); err != nil {
			return err
		}
	}
	return writeLicenses(result.Metafile, modules, filepath.Join(out, name+".LICENSE"))
}

// writeLicenses writes the licenses of the bundled packages, if any.
func writeLicenses(metafile, modules, file string) error {
	var meta struct {
		Outputs map[string]struct {
			Inputs map[string]struct {
				BytesInOutput int `json:"bytesInOutput"`
			}
		}
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return err
	}
	var packages []string
	for _, output := range meta.Outputs {
		for input, size := range output.Inputs {
			if folder := packageOf(input); folder != "" && size.BytesInOutput > 0 && !slices.Contains(packages, folder) {
				packages = append(packages, folder)
			}
		}
	}
	slices.Sort(packages)
	var text strings.Builder
	for _, folder := range packages {
		license, err := os.ReadFile(filepath.Join(modules, folder, "LICENSE"))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s\n\n%s\n\n", folder, strings.TrimSpace(string(license)))
	}
	if text.Len() == 0 {
		return nil
	}
	return os.WriteFile(file, []byte(strings.TrimSpace(text.String())+"\n"), 0o644)
}

// packageOf returns the folder below node_modules of the package that contains a file, or "". A
// package may be nested in another one.
func packageOf(file string) string {
	const folder = "node_modules/"
	first, last := strings.Index(file, folder), strings.LastIndex(file, folder)
	if first < 0 {
		return ""
	}
	rest := file[last+len(folder):]
	name, inner, _ := strings.Cut(rest, "/")
	if strings.HasPrefix(name, "@") {
		scoped, _, _ := strings.Cut(inner, "/")
		name += "/" + scoped
	}
	return file[first+len(folder):last+len(folder)] + name
}
