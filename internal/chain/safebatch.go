package chain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/internal/invoice"
)

// Versions in a batch file.
const (
	safeBatchVersion   = "1.0"    // of its format
	safeBuilderVersion = "1.18.2" // of the Transaction Builder that the file is written for
)

// safeBatch is a batch file of Safe's Transaction Builder.
type safeBatch struct {
	Version      string            `json:"version"`
	ChainID      string            `json:"chainId"`
	CreatedAt    int64             `json:"createdAt"` // Unix milliseconds
	Meta         safeMeta          `json:"meta"`
	Transactions []safeTransaction `json:"transactions"`
}

type safeMeta struct {
	Name                    string `json:"name"`
	Description             string `json:"description"`
	TxBuilderVersion        string `json:"txBuilderVersion"`
	CreatedFromSafeAddress  string `json:"createdFromSafeAddress"`
	CreatedFromOwnerAddress string `json:"createdFromOwnerAddress"`
	Checksum                string `json:"checksum,omitempty"`
}

type safeTransaction struct {
	To                   string  `json:"to"`
	Value                string  `json:"value"`
	Data                 string  `json:"data"`
	ContractMethod       *string `json:"contractMethod"`       // null: Data is the call
	ContractInputsValues *string `json:"contractInputsValues"` // null: without a method it has no inputs
}

// SafeBatch returns a batch file for Safe's Transaction Builder with one call by a Safe.
func SafeBatch(chainID uint64, createdAt time.Time, name, description string, from, to invoice.Address, data string) (json.RawMessage, error) {
	b := safeBatch{
		Version: safeBatchVersion, ChainID: strconv.FormatUint(chainID, 10), CreatedAt: createdAt.UnixMilli(),
		Meta:         safeMeta{Name: name, Description: description, TxBuilderVersion: safeBuilderVersion, CreatedFromSafeAddress: Checksum(from)},
		Transactions: []safeTransaction{{To: Checksum(to), Value: "0", Data: data}},
	}
	file, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode a batch file: %w", err)
	}
	if b.Meta.Checksum, err = SafeChecksum(file); err != nil {
		return nil, err
	}
	return json.Marshal(b)
}

// SafeChecksum returns the checksum for a batch file without one, as the Transaction Builder computes it: the
// Keccak-256 hash of the file in a special serialization, with null as the name.
func SafeChecksum(file []byte) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(file))
	decoder.UseNumber()
	var batch map[string]any
	if err := decoder.Decode(&batch); err != nil {
		return "", fmt.Errorf("decode a batch file: %w", err)
	}
	if meta, ok := batch["meta"].(map[string]any); ok {
		meta["name"] = nil
	}
	var text bytes.Buffer
	if err := serializeForSafe(&text, batch); err != nil {
		return "", fmt.Errorf("serialize a batch file: %w", err)
	}
	return fmt.Sprintf("0x%x", crypto.Keccak256(text.Bytes())), nil
}

// serializeForSafe writes a value as the Transaction Builder serializes it: an object as
// the array of its sorted names and then its values, each followed by a comma.
func serializeForSafe(text *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		text.WriteByte('{')
		if err := writeJSON(text, names); err != nil {
			return err
		}
		for _, name := range names {
			if err := serializeForSafe(text, v[name]); err != nil {
				return err
			}
			text.WriteByte(',')
		}
		text.WriteByte('}')
		return nil
	case []any:
		text.WriteByte('[')
		for i, element := range v {
			if i > 0 {
				text.WriteByte(',')
			}
			if err := serializeForSafe(text, element); err != nil {
				return err
			}
		}
		text.WriteByte(']')
		return nil
	}
	return writeJSON(text, v)
}

// writeJSON writes a value as JSON.stringify does.
func writeJSON(text *bytes.Buffer, v any) error {
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	text.Truncate(max(0, text.Len()-1)) // without the line feed
	return err
}
