// Package bindgen turns compiled contracts into Go bindings.
package bindgen

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ethereum/go-ethereum/accounts/abi/abigen"
)

// Bound names the contracts that the program calls; the rest of the artifacts serve tests only.
var Bound = []string{"InvoiceRegistry", "TestUSDC"}

// Artifact is what the compile step writes for each contract.
type Artifact struct {
	ContractName string          `json:"contractName"`
	Source       string          `json:"source"`
	Compiler     string          `json:"compiler"`
	Inputs       string          `json:"inputs"` // hex SHA-256 over everything that was compiled from, see compile.mjs
	ABI          json.RawMessage `json:"abi"`
	Bytecode     string          `json:"bytecode"` // creation code, 0x and hex
}

// Read loads the artifact of the contract called name from folder.
func Read(folder, name string) (Artifact, error) {
	path := filepath.Join(folder, name+".json")
	raw, err := os.ReadFile(path)
	if err != nil {
		return Artifact{}, fmt.Errorf("read artifact of %s (compile the contracts first): %w", name, err)
	}
	var a Artifact
	if err := json.Unmarshal(raw, &a); err != nil {
		return Artifact{}, fmt.Errorf("parse artifact %s: %w", path, err)
	}
	return a, nil
}

// Generate returns the Go source of package contracts' bindings for the Bound artifacts in folder.
func Generate(folder string) (string, error) {
	var abis, codes []string
	for _, name := range Bound {
		a, err := Read(folder, name)
		if err != nil {
			return "", err
		}
		abis, codes = append(abis, string(a.ABI)), append(codes, a.Bytecode)
	}
	source, err := abigen.BindV2(Bound, abis, codes, "contracts", map[string]string{}, map[string]string{})
	if err != nil {
		return "", fmt.Errorf("generate bindings: %w", err)
	}
	return source, nil
}
