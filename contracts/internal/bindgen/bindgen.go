// Package bindgen turns compiled contracts into Go bindings.
package bindgen

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ethereum/go-ethereum/accounts/abi/abigen"
)

// Package is a Go package of bindings.
type Package struct {
	Name      string
	File      string   // its source file, relative to the folder of the contracts
	Contracts []string // the contracts it binds
}

// Packages are all generated packages: bindings for the program, and for tests. Other contracts are deployed from their
// artifacts.
var Packages = []Package{
	{"contracts", "bindings.gen.go", []string{"InvoiceRegistry", "DepositFactory", "Deposit", "AuthorizationRelay", "AuthorizationCheck", "TestUSDC"}},
	{"hostile", "hostile/bindings.gen.go", []string{"BlockableUSDC", "Disperse", "FakeToken", "GasBurner", "SmartAccount", "SmartAccountFactory"}},
}

// Artifact is the output of the compile step for each contract.
type Artifact struct {
	ContractName string          `json:"contractName"`
	Source       string          `json:"source"`
	Compiler     string          `json:"compiler"`
	Inputs       string          `json:"inputs"` // hex SHA-256 of all inputs of the compilation, see compile.mjs
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

// Generate returns the package's Go source, from the artifacts in folder.
func (p Package) Generate(folder string) (string, error) {
	var abis, codes []string
	for _, name := range p.Contracts {
		a, err := Read(folder, name)
		if err != nil {
			return "", err
		}
		abis, codes = append(abis, string(a.ABI)), append(codes, a.Bytecode)
	}
	source, err := abigen.BindV2(p.Contracts, abis, codes, p.Name, map[string]string{}, map[string]string{})
	if err != nil {
		return "", fmt.Errorf("generate bindings: %w", err)
	}
	return source, nil
}
