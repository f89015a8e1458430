// Command cmd writes the Go bindings of the compiled contracts: cmd ARTIFACTS, in the folder of the contracts.
package main

import (
	"fmt"
	"os"

	"github.com/quittance/quittance/contracts/internal/bindgen"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bindgen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("got %d arguments, want the artifacts' folder", len(args))
	}
	for _, p := range bindgen.Packages {
		source, err := p.Generate(args[0])
		if err != nil {
			return err
		}
		if err := os.WriteFile(p.File, []byte(source), 0o644); err != nil {
			return err
		}
	}
	return nil
}
