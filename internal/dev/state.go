package dev

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/db"
)

// MerchantID is the id of a development world's merchant.
const MerchantID = "demo-merchant"

// ProviderName is the name of a development world's transfer provider.
const ProviderName = "circle"

// state is stored in the file dev.json of a development world.
type state struct {
	MerchantKey    string `json:"merchantKey,omitempty"` // see prepareMerchant
	MerchantSecret string `json:"merchantWebhookSecret"`
	ProviderSecret string `json:"providerWebhookSecret"`
	RPCPort        int    `json:"rpcPort"` // port of the last run
	// ClockAhead is how many seconds the world's clock has been advanced.
	ClockAhead int64 `json:"clockAheadSeconds,omitempty"`
}

// loadState reads the state from the folder, or creates it.
func loadState(folder string, random io.Reader) (state, error) {
	var s state
	path := filepath.Join(folder, "dev.json")
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if s.MerchantSecret, err = access.NewSecret(random); err != nil {
			return s, err
		}
		if s.ProviderSecret, err = access.NewSecret(random); err != nil {
			return s, err
		}
		return s, s.save(folder)
	}
	if err != nil {
		return s, fmt.Errorf("read the world's secrets: %w", err)
	}
	if err := json.Unmarshal(raw, &s); err != nil || s.MerchantSecret == "" || s.ProviderSecret == "" || s.ClockAhead < 0 || s.ClockAhead > int64(MaxAhead/time.Second) {
		return s, fmt.Errorf("%s was not written by quittance dev; delete the folder %s to start over", path, folder)
	}
	return s, nil
}

// loadMasterKey reads the master key that seals the endpoints' secrets, or creates it, in
// the file format of quittance serve.
func loadMasterKey(folder string, random io.Reader) (access.MasterKey, error) {
	path := filepath.Join(folder, "master.key")
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text, err := access.NewMasterKey(random)
		if err != nil {
			return access.MasterKey{}, err
		}
		raw = []byte(text + "\n")
		if err := config.ReplaceFile(path, raw); err != nil {
			return access.MasterKey{}, fmt.Errorf("write %s: %w", path, err)
		}
	} else if err != nil {
		return access.MasterKey{}, fmt.Errorf("read the world's master key: %w", err)
	}
	key, err := access.ParseMasterKey(string(raw))
	if err != nil {
		return key, fmt.Errorf("%s %w; delete the folder %s to start over", path, err, folder)
	}
	return key, nil
}

// save writes the state to a file that only its owner can read.
func (s state) save(folder string) error {
	return writeFile(filepath.Join(folder, "dev.json"), s)
}

// writeFile writes v as JSON, as config.ReplaceFile does.
func writeFile(path string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return db.During("write "+path, config.ReplaceFile(path, append(raw, '\n')))
}
