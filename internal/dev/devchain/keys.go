package devchain

import (
	"crypto/ecdsa"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// keysFile is the file of the keys in the data folder. Only its owner can read it.
const keysFile = "keys.json"

// Keys are the accounts of the genesis block, each with ether. They are generated for each data folder.
type Keys struct {
	Deployer *ecdsa.PrivateKey // owns the token and administers the registry
	Operator *ecdsa.PrivateKey // opens and closes invoices
	Merchant *ecdsa.PrivateKey // receives payments and sends refunds; has no tokens at first
	Payer    *ecdsa.PrivateKey // has tokens too
}

func (k *Keys) all() []*ecdsa.PrivateKey {
	return []*ecdsa.PrivateKey{k.Deployer, k.Operator, k.Merchant, k.Payer}
}

// Address returns the account of a key.
func Address(key *ecdsa.PrivateKey) common.Address {
	return crypto.PubkeyToAddress(key.PublicKey)
}

// keysJSON is the format of keysFile: private keys in 0x hex.
type keysJSON struct {
	Deployer string `json:"deployer"`
	Operator string `json:"operator"`
	Merchant string `json:"merchant"`
	Payer    string `json:"payer"`
}

// loadKeys reads the folder's keys, or generates them on its first use. For an empty folder name the keys are not
// stored. The folder must be locked.
func loadKeys(folder string, random io.Reader) (Keys, error) {
	if folder == "" {
		return newKeys(random)
	}
	path := filepath.Join(folder, keysFile)
	raw, err := os.ReadFile(path)
	if err == nil {
		return parseKeys(path, raw)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return Keys{}, fmt.Errorf("read the chain's keys: %w", err)
	}
	if complete, err := isComplete(folder); err != nil || complete {
		return Keys{}, errors.Join(err, fmt.Errorf(
			"%s holds a chain but not its keys: put %s back, or remove the folder to start over", folder, keysFile))
	}
	keys, err := newKeys(random)
	if err != nil {
		return Keys{}, err
	}
	return keys, writeKeys(path, keys)
}

func newKeys(random io.Reader) (Keys, error) {
	var keys Keys
	for _, into := range []**ecdsa.PrivateKey{&keys.Deployer, &keys.Operator, &keys.Merchant, &keys.Payer} {
		key, err := newKey(random)
		if err != nil {
			return Keys{}, err
		}
		*into = key
	}
	return keys, nil
}

func newKey(random io.Reader) (*ecdsa.PrivateKey, error) {
	var secret [32]byte
	if _, err := io.ReadFull(random, secret[:]); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	key, err := crypto.ToECDSA(secret[:]) // fails for one secret in 2^128, which is out of range
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return key, nil
}

func parseKeys(path string, raw []byte) (Keys, error) {
	var texts keysJSON
	if err := json.Unmarshal(raw, &texts); err != nil {
		return Keys{}, fmt.Errorf("parse the chain's keys in %s: %w", path, err)
	}
	var keys Keys
	for _, field := range []struct {
		name, text string
		into       **ecdsa.PrivateKey
	}{
		{"deployer", texts.Deployer, &keys.Deployer},
		{"operator", texts.Operator, &keys.Operator},
		{"merchant", texts.Merchant, &keys.Merchant},
		{"payer", texts.Payer, &keys.Payer},
	} {
		key, err := crypto.ToECDSA(common.FromHex(field.text))
		if err != nil {
			// The error is not wrapped: it could quote the secret.
			return Keys{}, fmt.Errorf("parse the chain's keys in %s: %s is not a private key in hex", path, field.name)
		}
		*field.into = key
	}
	return keys, nil
}

// writeKeys writes keysFile atomically and durably, before a block depends on it.
func writeKeys(path string, keys Keys) error {
	text := func(key *ecdsa.PrivateKey) string { return "0x" + hex.EncodeToString(crypto.FromECDSA(key)) }
	raw, err := json.MarshalIndent(keysJSON{
		Deployer: text(keys.Deployer), Operator: text(keys.Operator),
		Merchant: text(keys.Merchant), Payer: text(keys.Payer),
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("write the chain's keys: %w", err)
	}
	// A killed start may leave this file behind; the next one overwrites it.
	file, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the chain's keys: %w", err)
	}
	_, err = file.Write(append(raw, '\n'))
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write the chain's keys: %w", err)
	}
	return nil
}
