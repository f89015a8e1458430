// Command cmd writes the Go bindings of the compiled contracts: cmd ARTIFACTS OUTPUT.
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
	if len(args) != 2 {
		return fmt.Errorf("got %d arguments, want the artifacts' folder and the file to write", len(args))
	}
	source, err := bindgen.Generate(args[0])
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], []byte(source), 0o644)
}
