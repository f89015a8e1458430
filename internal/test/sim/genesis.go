package main

import (
	"crypto/ecdsa"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/contracts/hostile"
)

// account returns the key of a name. It is the same in every world.
func account(name string) *ecdsa.PrivateKey {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("quittance simulator " + name)))
	if err != nil {
		panic(err)
	}
	return key
}

func addressOf(key *ecdsa.PrivateKey) common.Address { return crypto.PubkeyToAddress(key.PublicKey) }

// payers are the accounts that have tokens in the first block.
var payers = func() (all []*ecdsa.PrivateKey) {
	for i := range 6 {
		all = append(all, account(fmt.Sprint("payer ", i)))
	}
	return all
}()

// stranger is the name of an account that pays no invoice.
const stranger = "stranger"

// holders are all accounts with a key and tokens: payers, merchants, a stranger and the payer after the faults.
func holders() []*ecdsa.PrivateKey {
	return append(slices.Clone(payers), account("merchant1"), account("merchant1 two"), account("merchant2"), account("merchant2 two"), account(stranger), account("last payer"))
}

var operatorKey, deployerKey = account("operator"), account("deployer")

// genesis is a chain with contracts, of which worlds begin with a copy.
var genesis = map[int64]*evmChain{}

// newChain returns a chain whose first blocks have the contracts. Its blocks are dated from now on.
func newChain(index int64) *evmChain {
	g := genesis[index]
	if g == nil {
		g = firstBlocks(index)
		genesis[index] = g
	}
	c := &evmChain{
		id: g.id, config: g.config, signer: g.signer, contractAddresses: g.contractAddresses,
		byHash: map[common.Hash]*block{}, places: maps.Clone(g.places), waiting: map[common.Hash]uint64{}, hidden: map[common.Hash]withheld{}, made: g.made, minTip: big.NewInt(params.GWei / 100),
	}
	c.canonical = slices.Clone(g.canonical)
	for _, b := range c.canonical {
		c.byHash[b.hash] = b
	}
	return c
}

// firstBlocks returns a chain with the contracts in block 1.
func firstBlocks(index int64) *evmChain {
	config := *params.AllDevChainProtocolChanges
	config.BogotaTime = nil // not active on public chains
	c := &evmChain{
		id: big.NewInt(firstChain + index), config: &config, byHash: map[common.Hash]*block{}, places: map[common.Hash][]*block{},
		minTip: new(big.Int),
	}
	config.ChainID = c.id
	c.signer = types.LatestSignerForChainID(c.id)
	db, err := state.New(types.EmptyRootHash, state.NewDatabaseForTesting())
	if err != nil {
		panic(err)
	}
	for address, a := range core.SystemContractAllocs() {
		db.SetCode(address, a.Code, 0)
		db.SetNonce(address, a.Nonce, 0)
	}
	for _, key := range append([]*ecdsa.PrivateKey{operatorKey, deployerKey}, holders()...) {
		db.AddBalance(addressOf(key), new(uint256.Int).Mul(uint256.NewInt(1_000_000), uint256.NewInt(params.Ether)), 0)
	}
	db.Finalise(config.Rules(new(big.Int), true, 0))
	c.append(nil, time.Unix(worldBegins-1000, 0), db, nil, nil)
	c.deploy()
	return c
}

// deploy mines the block with the contracts.
func (c *evmChain) deploy() {
	deployer := addressOf(deployerKey)
	create := func(bin string, args []byte) {
		c.send(deployerKey, nil, append(common.FromHex(bin), args...), deployGas)
	}
	token := contracts.NewTestUSDC()
	c.token, c.other = crypto.CreateAddress(deployer, 0), crypto.CreateAddress(deployer, 1)
	c.registry, c.burner, c.disperse = crypto.CreateAddress(deployer, 2), crypto.CreateAddress(deployer, 3), crypto.CreateAddress(deployer, 4)
	create(contracts.TestUSDCMetaData.Bin, token.PackConstructor(deployer))
	create(contracts.TestUSDCMetaData.Bin, token.PackConstructor(deployer))
	create(contracts.InvoiceRegistryMetaData.Bin, contracts.NewInvoiceRegistry().PackConstructor(deployer, addressOf(operatorKey)))
	create(hostile.GasBurnerMetaData.Bin, nil)
	create(hostile.DisperseMetaData.Bin, nil)
	for at, meta := range map[*common.Address]*bind.MetaData{&c.factory: &contracts.DepositFactoryMetaData, &c.relay: &contracts.AuthorizationRelayMetaData} {
		address, data := contracts.Create2(meta)
		*at = address
		c.send(deployerKey, &contracts.Create2Deployer, data, deployGas)
	}
	rich := []common.Address{c.burner}
	for _, key := range holders() {
		rich = append(rich, addressOf(key))
	}
	for _, address := range rich {
		for _, t := range []common.Address{c.token, c.other} {
			c.send(deployerKey, &t, token.PackMint(address, big.NewInt(1e15)), callGas)
		}
	}
	c.mine(time.Unix(worldBegins-500, 0))
	for _, r := range c.head().receipts {
		if r.Status != types.ReceiptStatusSuccessful {
			panic("a transaction of the first block failed")
		}
	}
}
