package dev

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// MerchantID is the id of the merchant that a development world begins with.
const MerchantID = "demo-merchant"

// ProviderName is the transfer provider that a development world knows.
const ProviderName = "circle"

// secretPrefix begins a webhook secret, so that people and scanners know one.
const secretPrefix = "whsec_"

// secretSize is the number of random bytes in a secret.
const secretSize = 32

// state is what a development world keeps beside its database and its chain.
type state struct {
	MerchantSecret string `json:"merchantWebhookSecret"`
	ProviderSecret string `json:"providerWebhookSecret"`
	RPCPort        int    `json:"rpcPort"` // of the last run, so that a wallet's setting stays good
}

// loadState reads the state in the folder, or makes it.
func loadState(folder string, random io.Reader) (state, error) {
	var s state
	path := filepath.Join(folder, "dev.json")
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if s.MerchantSecret, err = newSecret(random); err != nil {
			return s, err
		}
		if s.ProviderSecret, err = newSecret(random); err != nil {
			return s, err
		}
		return s, s.save(folder)
	}
	if err != nil {
		return s, fmt.Errorf("read the world's secrets: %w", err)
	}
	if err := json.Unmarshal(raw, &s); err != nil || s.MerchantSecret == "" || s.ProviderSecret == "" {
		return s, fmt.Errorf("%s is not what quittance dev wrote; delete the folder %s to begin anew", path, folder)
	}
	return s, nil
}

// save writes the state, for its owner's eyes alone.
func (s state) save(folder string) error {
	return writeFile(filepath.Join(folder, "dev.json"), s)
}

func newSecret(random io.Reader) (string, error) {
	var b [secretSize]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("make a secret: %w", err)
	}
	return secretPrefix + base64.StdEncoding.EncodeToString(b[:]), nil
}

// writeFile writes v as JSON so that a reader finds all of it or the file as
// it was before, also when the machine stops half-way.
func writeFile(path string, v any) (err error) {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(append(raw, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
