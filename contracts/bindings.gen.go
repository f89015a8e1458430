// Code generated via abigen V2 - DO NOT EDIT.
// This file is a generated binding and any manual changes will be lost.

package contracts

import (
	"bytes"
	"errors"
	"math/big"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Reference imports to suppress errors if they are not otherwise used.
var (
	_ = bytes.Equal
	_ = errors.New
	_ = big.NewInt
	_ = common.Big1
	_ = types.BloomLookup
	_ = abi.ConvertType
)

// SignedAuthorization is an auto generated low-level Go binding around an user-defined struct.
type SignedAuthorization struct {
	Token       common.Address
	From        common.Address
	To          common.Address
	Value       *big.Int
	ValidAfter  *big.Int
	ValidBefore *big.Int
	Nonce       [32]byte
	Signature   []byte
	Deployer    common.Address
	DeployData  []byte
}

// Sweep is an auto generated low-level Go binding around an user-defined struct.
type Sweep struct {
	Merchant common.Address
	Id       [32]byte
	Token    common.Address
}

// Terms is an auto generated low-level Go binding around an user-defined struct.
type Terms struct {
	Merchant  common.Address
	Token     common.Address
	Amount    *big.Int
	ExpiresAt uint64
	Salt      [32]byte
}

// AuthorizationCheckMetaData contains all meta data concerning the AuthorizationCheck contract.
var AuthorizationCheckMetaData = bind.MetaData{
	ABI: "[{\"inputs\":[{\"components\":[{\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validAfter\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validBefore\",\"type\":\"uint256\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"},{\"internalType\":\"bytes\",\"name\":\"signature\",\"type\":\"bytes\"},{\"internalType\":\"address\",\"name\":\"deployer\",\"type\":\"address\"},{\"internalType\":\"bytes\",\"name\":\"deployData\",\"type\":\"bytes\"}],\"internalType\":\"structSignedAuthorization\",\"name\":\"a\",\"type\":\"tuple\"}],\"stateMutability\":\"nonpayable\",\"type\":\"constructor\"}]",
	ID:  "AuthorizationCheck",
	Bin: "0x608060405234801561000f575f5ffd5b50604051610b9c380380610b9c83398101604081905261002e91610906565b60408051610180810182525f6020820181905291810182905260608082018390526080820183905260a0820183905260c0820183905260e08201839052610100820183905261012082018390526101408201839052610160820152428152905a6101008401519091506001600160a01b0316158015906100ba575060208301516001600160a01b03163b155b1580156101008401526100e4576100e183610100015184610120015161034e60201b60201c565b50505b5f5a6100f09083610a1f565b6020808601516001600160a01b03163b151560408087019190915286518151600481526024810190925291810180516001600160e01b03908116633644e51560e01b17909152929350610143926103da16565b60208401819052610155908590610401565b151560608401528351602085015160c08601516040516001600160a01b03909216602483015260448201526101bb919060640160408051601f198184030181529190526020810180516001600160e01b039081166374a5008160e11b179091526103da16565b15156080840152835160208501516040516001600160a01b03909116602482015261021891906044015b60408051601f198184030181529190526020810180516001600160e01b0390811663fe575a8760e01b179091526103da16565b15158061024a5750835160408086015190516001600160a01b03909116602482015261024791906044016101e5565b15155b151560a084015283516040805160048152602481019091526020810180516001600160e01b03908116635c975abb60e01b1790915261028b9291906103da16565b151560c0840152835160208501516040516001600160a01b0390911660248201526102e891906044015b60408051601f198184030181529190526020810180516001600160e01b039081166370a0823160e01b179091526103da16565b6101208401525a91506102fa8461063f565b610160850152151560e08401525a6103128383610a32565b61031c9190610a1f565b6101408401526040515f90610335908590602001610a73565b6040516020818303038152906040529050805160208201f35b5f60605f5f5f8551602087015f89622dc6c0f192503d9050821561037257506103d3565b610100811061038357610100610385565b805b6001600160401b0381111561039c5761039c610825565b6040519080825280601f01601f1916602001820160405280156103c6576020820181803683370190505b50915081515f602084013e505b9250929050565b5f60205f83516020850186622dc6c0fa601f3d118116156103fa575f5191505b5092915050565b5f5f827f7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a226785602001518660400151876060015188608001518960a001518a60c0015160405160200161049097969594939291909687526001600160a01b0395861660208801529390941660408601526060850191909152608084015260a083019190915260c082015260e00190565b604051602081830303815290604052805190602001206040516020016104cd92919061190160f01b81526002810192909252602282015260420190565b6040516020818303038152906040528051906020012090505f84602001516001600160a01b03163b111561056b575f61054e8560200151838760e0015160405160240161051b929190610b2f565b60408051601f198184030181529190526020810180516001600160e01b03908116630b135d3f60e11b179091526103da16565b6001600160e01b031916630b135d3f60e11b149250610639915050565b8360e0015151604114610581575f915050610639565b5f5f5f6105978760e0015161080b60201b60201c565b92509250925086602001516001600160a01b03166001858386866040515f81526020016040526040516105e6949392919093845260ff9290921660208401526040830152606082015260800190565b6020604051602081039080840390855afa158015610606573d5f5f3e3d5ffd5b505050602060405103516001600160a01b0316148015610632575060208701516001600160a01b031615155b9450505050505b92915050565b805160408083015190516001600160a01b0390911660248201525f91606091839161066c916044016102b5565b905060608460e0015151604103610752575f5f5f6106938860e0015161080b60201b60201c565b9250925092508760200151886040015189606001518a608001518b60a001518c60c0015186898960405160240161071d999897969594939291906001600160a01b03998a16815297909816602088015260408701959095526060860193909352608085019190915260a084015260ff1660c083015260e08201526101008101919091526101200190565b60408051601f198184030181529190526020810180516001600160e01b03166371f70b0760e11b17905293506107b392505050565b60208501516040808701516060880151608089015160a08a015160c08b015160e08c01519551610786979690602401610b47565b60408051601f198184030181529190526020810180516001600160e01b031663cf09299560e01b17905290505b84516107bf908261034e565b909450925083156108045760608501516107d99083610a32565b855160408088015190516001600160a01b03909116602482015261080091906044016102b5565b1493505b5050915091565b6020810151604082015160609092015190925f9190911a90565b634e487b7160e01b5f52604160045260245ffd5b60405161014081016001600160401b038111828210171561085c5761085c610825565b60405290565b80516001600160a01b0381168114610878575f5ffd5b919050565b5f82601f83011261088c575f5ffd5b81516001600160401b038111156108a5576108a5610825565b604051601f8201601f19908116603f011681016001600160401b03811182821017156108d3576108d3610825565b6040528181528382016020018510156108ea575f5ffd5b8160208501602083015e5f918101602001919091529392505050565b5f60208284031215610916575f5ffd5b81516001600160401b0381111561092b575f5ffd5b8201610140818503121561093d575f5ffd5b610945610839565b61094e82610862565b815261095c60208301610862565b602082015261096d60408301610862565b6040820152606082810151908201526080808301519082015260a0808301519082015260c0808301519082015260e08201516001600160401b038111156109b2575f5ffd5b6109be8682850161087d565b60e0830152506109d16101008301610862565b6101008201526101208201516001600160401b038111156109f0575f5ffd5b6109fc8682850161087d565b61012083015250949350505050565b634e487b7160e01b5f52601160045260245ffd5b8181038181111561063957610639610a0b565b8082018082111561063957610639610a0b565b5f81518084528060208401602086015e5f602082860101526020601f19601f83011685010191505092915050565b6020815281516020820152602082015160408201525f6040830151610a9c606084018215159052565b506060830151801515608084015250608083015180151560a08401525060a083015180151560c08401525060c083015180151560e08401525060e0830151801515610100840152506101008301518015156101208401525061012083015161014083015261014083015161016083015261016083015161018080840152610b276101a0840182610a45565b949350505050565b828152604060208201525f610b276040830184610a45565b6001600160a01b0388811682528716602082015260408101869052606081018590526080810184905260a0810183905260e060c082018190525f90610b8e90830184610a45565b999850505050505050505056fe",
}

// AuthorizationCheck is an auto generated Go binding around an Ethereum contract.
type AuthorizationCheck struct {
	abi abi.ABI
}

// GetABI returns the ABI associated with this contract binding.
func (c *AuthorizationCheck) GetABI() abi.ABI {
	return c.abi
}

// NewAuthorizationCheck creates a new instance of AuthorizationCheck.
func NewAuthorizationCheck() *AuthorizationCheck {
	parsed, err := AuthorizationCheckMetaData.ParseABI()
	if err != nil {
		panic(errors.New("invalid ABI: " + err.Error()))
	}
	return &AuthorizationCheck{abi: *parsed}
}

// Instance creates a wrapper for a deployed contract instance at the given address.
// Use this to create the instance object passed to abigen v2 library functions Call, Transact, etc.
func (c *AuthorizationCheck) Instance(backend bind.ContractBackend, addr common.Address) *bind.BoundContract {
	return bind.NewBoundContract(addr, c.abi, backend, backend, backend)
}

// PackConstructor is the Go binding used to pack the parameters required for
// contract deployment.
//
// Solidity: constructor((address,address,address,uint256,uint256,uint256,bytes32,bytes,address,bytes) a) returns()
func (authorizationCheck *AuthorizationCheck) PackConstructor(a SignedAuthorization) []byte {
	enc, err := authorizationCheck.abi.Pack("", a)
	if err != nil {
		panic(err)
	}
	return enc
}

// AuthorizationRelayMetaData contains all meta data concerning the AuthorizationRelay contract.
var AuthorizationRelayMetaData = bind.MetaData{
	ABI: "[{\"inputs\":[{\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"}],\"name\":\"NoToken\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"needed\",\"type\":\"uint256\"}],\"name\":\"NotEnoughGas\",\"type\":\"error\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"},{\"indexed\":false,\"internalType\":\"bytes\",\"name\":\"reason\",\"type\":\"bytes\"}],\"name\":\"Refused\",\"type\":\"event\"},{\"inputs\":[],\"name\":\"GAS_BESIDES\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"GAS_PER_BYTE\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"components\":[{\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validAfter\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validBefore\",\"type\":\"uint256\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"},{\"internalType\":\"bytes\",\"name\":\"signature\",\"type\":\"bytes\"},{\"internalType\":\"address\",\"name\":\"deployer\",\"type\":\"address\"},{\"internalType\":\"bytes\",\"name\":\"deployData\",\"type\":\"bytes\"}],\"internalType\":\"structSignedAuthorization[]\",\"name\":\"authorizations\",\"type\":\"tuple[]\"},{\"internalType\":\"uint256[]\",\"name\":\"limits\",\"type\":\"uint256[]\"}],\"name\":\"relay\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"components\":[{\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validAfter\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validBefore\",\"type\":\"uint256\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"},{\"internalType\":\"bytes\",\"name\":\"signature\",\"type\":\"bytes\"},{\"internalType\":\"address\",\"name\":\"deployer\",\"type\":\"address\"},{\"internalType\":\"bytes\",\"name\":\"deployData\",\"type\":\"bytes\"}],\"internalType\":\"structSignedAuthorization\",\"name\":\"a\",\"type\":\"tuple\"}],\"name\":\"relayOne\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"}]",
	ID:  "AuthorizationRelay",
	Bin: "0x6080604052348015600e575f5ffd5b50610ad98061001c5f395ff3fe608060405234801561000f575f5ffd5b506004361061004a575f3560e01c806361fb5cac1461004e5780637dfd6acf14610063578063d50856401461007d578063fa6011fb14610086575b5f5ffd5b61006161005c3660046106a4565b610099565b005b61006b600881565b60405190815260200160405180910390f35b61006b613a9881565b61006161009436600461072b565b6101ea565b5f6100ac610120830161010084016107b2565b6001600160a01b0316141580156100da57506100ce60408201602083016107b2565b6001600160a01b03163b155b1561013d5761013b6100f4610120830161010084016107b2565b6101026101208401846107cb565b8080601f0160208091040260200160405190810160405280939291908181526020018383808284375f9201919091525061045892505050565b505b61014a60208201826107b2565b6001600160a01b03163b5f036101aa5761016760208201826107b2565b6040517fd7e285730000000000000000000000000000000000000000000000000000000081526001600160a01b0390911660048201526024015b60405180910390fd5b6101c86101ba60208301836107b2565b6101c38361046d565b610458565b6101e7573d6101008111156101dc57506101005b604051815f823e8181fd5b50565b5f805b848110156102e9575f8686838181106102085761020861080e565b905060200281019061021a9190610822565b610229906101208101906107cb565b905087878481811061023d5761023d61080e565b905060200281019061024f9190610822565b61025d9060e08101906107cb565b610268929150610855565b9050610275816008610868565b613a98603f87878681811061028c5761028c61080e565b9050602002013561029d919061087f565b8787868181106102af576102af61080e565b905060200201356102c09190610855565b6102ca9190610855565b6102d49190610855565b6102de9084610855565b9250506001016101ed565b50805a1015610327576040517f5e31f860000000000000000000000000000000000000000000000000000000008152600481018290526024016101a1565b5f5b8481101561045057368686838181106103445761034461080e565b90506020028101906103569190610822565b9050306361fb5cac8686858181106103705761037061080e565b90506020020135836040518363ffffffff1660e01b81526004016103949190610908565b5f604051808303815f88803b1580156103ab575f5ffd5b5087f1935050505080156103bd575060015b610447573d8080156103ea576040519150601f19603f3d011682016040523d82523d5f602084013e6103ef565b606091505b5060c082013561040560408401602085016107b2565b6001600160a01b03167f9655af10a2b71c918234880e5d9662c045a11da9f0e181118dc13bc209f2e7098360405161043d9190610a09565b60405180910390a3505b50600101610329565b505050505050565b5f610464835f8461068f565b90505b92915050565b606061047c60e08301836107cb565b905060411461053b5761049560408301602084016107b2565b6104a560608401604085016107b2565b6060840135608085013560a086013560c08701356104c660e08901896107cb565b6040516024016104dd989796959493929190610a3e565b60408051601f198184030181529190526020810180517bffffffffffffffffffffffffffffffffffffffffffffffffffffffff167fcf0929950000000000000000000000000000000000000000000000000000000017905292915050565b61054b60408301602084016107b2565b61055b60608401604085016107b2565b6060840135608085013560a086013560c087013561057c60e08901896107cb565b604081811061058d5761058d61080e565b919091013560f81c90506105a460e08a018a6107cb565b6105b2916020915f91610a95565b6105bb91610abc565b6105c860e08b018b6107cb565b6105d791604091602091610a95565b6105e091610abc565b6040516001600160a01b03998a1660248201529890971660448901526064880195909552608487019390935260a486019190915260c485015260ff1660e48401526101048301526101248201526101440160408051601f198184030181529190526020810180517bffffffffffffffffffffffffffffffffffffffffffffffffffffffff167fe3ee160e0000000000000000000000000000000000000000000000000000000017905292915050565b5f5f5f83516020850186885af1949350505050565b5f602082840312156106b4575f5ffd5b813567ffffffffffffffff8111156106ca575f5ffd5b820161014081850312156106dc575f5ffd5b9392505050565b5f5f83601f8401126106f3575f5ffd5b50813567ffffffffffffffff81111561070a575f5ffd5b6020830191508360208260051b8501011115610724575f5ffd5b9250929050565b5f5f5f5f6040858703121561073e575f5ffd5b843567ffffffffffffffff811115610754575f5ffd5b610760878288016106e3565b909550935050602085013567ffffffffffffffff81111561077f575f5ffd5b61078b878288016106e3565b95989497509550505050565b80356001600160a01b03811681146107ad575f5ffd5b919050565b5f602082840312156107c2575f5ffd5b61046482610797565b5f5f8335601e198436030181126107e0575f5ffd5b83018035915067ffffffffffffffff8211156107fa575f5ffd5b602001915036819003821315610724575f5ffd5b634e487b7160e01b5f52603260045260245ffd5b5f823561013e19833603018112610837575f5ffd5b9190910192915050565b634e487b7160e01b5f52601160045260245ffd5b8082018082111561046757610467610841565b808202811582820484141761046757610467610841565b5f8261089957634e487b7160e01b5f52601260045260245ffd5b500490565b5f5f8335601e198436030181126108b3575f5ffd5b830160208101925035905067ffffffffffffffff8111156108d2575f5ffd5b803603821315610724575f5ffd5b81835281816020850137505f828201602090810191909152601f909101601f19169091010190565b602081526109296020820161091c84610797565b6001600160a01b03169052565b5f61093660208401610797565b6001600160a01b03811660408401525061095260408401610797565b6001600160a01b038116606084015250606083013560808381019190915283013560a08084019190915283013560c08084019190915283013560e0808401919091526109a09084018461089e565b6101406101008501526109b8610160850182846108e0565b9150506109c86101008501610797565b6001600160a01b038116610120850152506109e761012085018561089e565b848303601f19016101408601526109ff8382846108e0565b9695505050505050565b602081525f82518060208401528060208501604085015e5f604082850101526040601f19601f83011684010191505092915050565b6001600160a01b03891681526001600160a01b03881660208201528660408201528560608201528460808201528360a082015260e060c08201525f610a8760e0830184866108e0565b9a9950505050505050505050565b5f5f85851115610aa3575f5ffd5b83861115610aaf575f5ffd5b5050820193919092039150565b80356020831015610467575f19602084900360031b1b169291505056",
}

// AuthorizationRelay is an auto generated Go binding around an Ethereum contract.
type AuthorizationRelay struct {
	abi abi.ABI
}

// GetABI returns the ABI associated with this contract binding.
func (c *AuthorizationRelay) GetABI() abi.ABI {
	return c.abi
}

// NewAuthorizationRelay creates a new instance of AuthorizationRelay.
func NewAuthorizationRelay() *AuthorizationRelay {
	parsed, err := AuthorizationRelayMetaData.ParseABI()
	if err != nil {
		panic(errors.New("invalid ABI: " + err.Error()))
	}
	return &AuthorizationRelay{abi: *parsed}
}

// Instance creates a wrapper for a deployed contract instance at the given address.
// Use this to create the instance object passed to abigen v2 library functions Call, Transact, etc.
func (c *AuthorizationRelay) Instance(backend bind.ContractBackend, addr common.Address) *bind.BoundContract {
	return bind.NewBoundContract(addr, c.abi, backend, backend, backend)
}

// PackGASBESIDES is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xd5085640.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function GAS_BESIDES() view returns(uint256)
func (authorizationRelay *AuthorizationRelay) PackGASBESIDES() []byte {
	enc, err := authorizationRelay.abi.Pack("GAS_BESIDES")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackGASBESIDES is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xd5085640.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function GAS_BESIDES() view returns(uint256)
func (authorizationRelay *AuthorizationRelay) TryPackGASBESIDES() ([]byte, error) {
	return authorizationRelay.abi.Pack("GAS_BESIDES")
}

// UnpackGASBESIDES is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xd5085640.
//
// Solidity: function GAS_BESIDES() view returns(uint256)
func (authorizationRelay *AuthorizationRelay) UnpackGASBESIDES(data []byte) (*big.Int, error) {
	out, err := authorizationRelay.abi.Unpack("GAS_BESIDES", data)
	if err != nil {
		return new(big.Int), err
	}
	out0 := abi.ConvertType(out[0], new(big.Int)).(*big.Int)
	return out0, nil
}

// PackGASPERBYTE is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x7dfd6acf.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function GAS_PER_BYTE() view returns(uint256)
func (authorizationRelay *AuthorizationRelay) PackGASPERBYTE() []byte {
	enc, err := authorizationRelay.abi.Pack("GAS_PER_BYTE")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackGASPERBYTE is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x7dfd6acf.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function GAS_PER_BYTE() view returns(uint256)
func (authorizationRelay *AuthorizationRelay) TryPackGASPERBYTE() ([]byte, error) {
	return authorizationRelay.abi.Pack("GAS_PER_BYTE")
}

// UnpackGASPERBYTE is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x7dfd6acf.
//
// Solidity: function GAS_PER_BYTE() view returns(uint256)
func (authorizationRelay *AuthorizationRelay) UnpackGASPERBYTE(data []byte) (*big.Int, error) {
	out, err := authorizationRelay.abi.Unpack("GAS_PER_BYTE", data)
	if err != nil {
		return new(big.Int), err
	}
	out0 := abi.ConvertType(out[0], new(big.Int)).(*big.Int)
	return out0, nil
}

// PackRelay is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xfa6011fb.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function relay((address,address,address,uint256,uint256,uint256,bytes32,bytes,address,bytes)[] authorizations, uint256[] limits) returns()
func (authorizationRelay *AuthorizationRelay) PackRelay(authorizations []SignedAuthorization, limits []*big.Int) []byte {
	enc, err := authorizationRelay.abi.Pack("relay", authorizations, limits)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackRelay is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xfa6011fb.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function relay((address,address,address,uint256,uint256,uint256,bytes32,bytes,address,bytes)[] authorizations, uint256[] limits) returns()
func (authorizationRelay *AuthorizationRelay) TryPackRelay(authorizations []SignedAuthorization, limits []*big.Int) ([]byte, error) {
	return authorizationRelay.abi.Pack("relay", authorizations, limits)
}

// PackRelayOne is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x61fb5cac.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function relayOne((address,address,address,uint256,uint256,uint256,bytes32,bytes,address,bytes) a) returns()
func (authorizationRelay *AuthorizationRelay) PackRelayOne(a SignedAuthorization) []byte {
	enc, err := authorizationRelay.abi.Pack("relayOne", a)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackRelayOne is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x61fb5cac.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function relayOne((address,address,address,uint256,uint256,uint256,bytes32,bytes,address,bytes) a) returns()
func (authorizationRelay *AuthorizationRelay) TryPackRelayOne(a SignedAuthorization) ([]byte, error) {
	return authorizationRelay.abi.Pack("relayOne", a)
}

// AuthorizationRelayRefused represents a Refused event raised by the AuthorizationRelay contract.
type AuthorizationRelayRefused struct {
	From   common.Address
	Nonce  [32]byte
	Reason []byte
	Raw    *types.Log // Blockchain specific contextual infos
}

const AuthorizationRelayRefusedEventName = "Refused"

// ContractEventName returns the user-defined event name.
func (AuthorizationRelayRefused) ContractEventName() string {
	return AuthorizationRelayRefusedEventName
}

// UnpackRefusedEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event Refused(address indexed from, bytes32 indexed nonce, bytes reason)
func (authorizationRelay *AuthorizationRelay) UnpackRefusedEvent(log *types.Log) (*AuthorizationRelayRefused, error) {
	event := "Refused"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != authorizationRelay.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(AuthorizationRelayRefused)
	if len(log.Data) > 0 {
		if err := authorizationRelay.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range authorizationRelay.abi.Events[event].Inputs {
		if arg.Indexed {
			indexed = append(indexed, arg)
		}
	}
	if err := abi.ParseTopics(out, indexed, log.Topics[1:]); err != nil {
		return nil, err
	}
	out.Raw = log
	return out, nil
}

// UnpackError attempts to decode the provided error data using user-defined
// error definitions.
func (authorizationRelay *AuthorizationRelay) UnpackError(raw []byte) (any, error) {
	if bytes.Equal(raw[:4], authorizationRelay.abi.Errors["NoToken"].ID.Bytes()[:4]) {
		return authorizationRelay.UnpackNoTokenError(raw[4:])
	}
	if bytes.Equal(raw[:4], authorizationRelay.abi.Errors["NotEnoughGas"].ID.Bytes()[:4]) {
		return authorizationRelay.UnpackNotEnoughGasError(raw[4:])
	}
	return nil, errors.New("Unknown error")
}

// AuthorizationRelayNoToken represents a NoToken error raised by the AuthorizationRelay contract.
type AuthorizationRelayNoToken struct {
	Token common.Address
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error NoToken(address token)
func AuthorizationRelayNoTokenErrorID() common.Hash {
	return common.HexToHash("0xd7e28573065371623a3915464526e9401807d7ee8b278a4d097278d02f2eeaa3")
}

// UnpackNoTokenError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error NoToken(address token)
func (authorizationRelay *AuthorizationRelay) UnpackNoTokenError(raw []byte) (*AuthorizationRelayNoToken, error) {
	out := new(AuthorizationRelayNoToken)
	if err := authorizationRelay.abi.UnpackIntoInterface(out, "NoToken", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// AuthorizationRelayNotEnoughGas represents a NotEnoughGas error raised by the AuthorizationRelay contract.
type AuthorizationRelayNotEnoughGas struct {
	Needed *big.Int
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error NotEnoughGas(uint256 needed)
func AuthorizationRelayNotEnoughGasErrorID() common.Hash {
	return common.HexToHash("0x5e31f860f933797f506b70790a3e92ae2d52bb6c7661986960a232925cc0b275")
}

// UnpackNotEnoughGasError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error NotEnoughGas(uint256 needed)
func (authorizationRelay *AuthorizationRelay) UnpackNotEnoughGasError(raw []byte) (*AuthorizationRelayNotEnoughGas, error) {
	out := new(AuthorizationRelayNotEnoughGas)
	if err := authorizationRelay.abi.UnpackIntoInterface(out, "NotEnoughGas", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// DepositMetaData contains all meta data concerning the Deposit contract.
var DepositMetaData = bind.MetaData{
	ABI: "[{\"inputs\":[],\"name\":\"NotADeposit\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"}],\"name\":\"NotTransferred\",\"type\":\"error\"},{\"inputs\":[],\"name\":\"merchant\",\"outputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"}],\"name\":\"sweep\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"amount\",\"type\":\"uint256\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"stateMutability\":\"payable\",\"type\":\"receive\"}]",
	ID:  "Deposit",
	Bin: "0x6080604052348015600e575f5ffd5b5061056a8061001c5f395ff3fe60806040526004361061002b575f3560e01c806301681a6214610036578063a5ff765114610068575f5ffd5b3661003257005b5f5ffd5b348015610041575f5ffd5b5061005561005036600461044f565b610094565b6040519081526020015b60405180910390f35b348015610073575f5ffd5b5061007c6101d0565b6040516001600160a01b03909116815260200161005f565b5f5f61009e6101d0565b90506001600160a01b03831661010a574791505f821180156100d657506100d4818360405180602001604052805f81525061022a565b155b15610104576040516302599a8160e41b81526001600160a01b03841660048201526024015b60405180910390fd5b50919050565b6040516370a0823160e01b81523060048201525f906001600160a01b038516906370a0823190602401602060405180830381865afa15801561014e573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906101729190610475565b9050805f0361018457505f9392505050565b5f61019085848461023f565b90508181106101bd576040516302599a8160e41b81526001600160a01b03861660048201526024016100fb565b6101c781836104a0565b95945050505050565b5f5f6101db30610352565b90508051601414610218576040517f783c318e00000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b610221816104b9565b60601c91505090565b5f5f5f83516020850186885af1949350505050565b80805f5b82156103485782821115610255578291505b6102696001600160a01b03871686846103bf565b15610304576040516370a0823160e01b81523060048201525f906001600160a01b038816906370a0823190602401602060405180830381865afa1580156102b2573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906102d69190610475565b90508381106102e957925061034b915050565b80935061ea605a10156102fe5750505061034b565b50610243565b81600114806103135750600681145b1561031f57505061034b565b6103288161050c565b90506004610337836003610524565b6103419190610537565b9150610243565b50505b9392505050565b60605f61036a602d6001600160a01b0385163b6104a0565b67ffffffffffffffff81111561038257610382610556565b6040519080825280601f01601f1916602001820160405280156103ac576020820181803683370190505b5090508051602d60208301853c92915050565b5f6103cc8484845f6103d4565b949350505050565b6040517fa9059cbb000000000000000000000000000000000000000000000000000000005f8181526001600160a01b038616600452602485905291602083604481808b5af1925060015f51148316610443578383151615610437573d5f823e3d81fd5b5f873b113d1516831692505b60405250949350505050565b5f6020828403121561045f575f5ffd5b81356001600160a01b038116811461034b575f5ffd5b5f60208284031215610485575f5ffd5b5051919050565b634e487b7160e01b5f52601160045260245ffd5b818103818111156104b3576104b361048c565b92915050565b805160208201516bffffffffffffffffffffffff19811691906014821015610505576bffffffffffffffffffffffff196bffffffffffffffffffffffff198360140360031b1b82161692505b5050919050565b5f6001820161051d5761051d61048c565b5060010190565b808201808211156104b3576104b361048c565b5f8261055157634e487b7160e01b5f52601260045260245ffd5b500490565b634e487b7160e01b5f52604160045260245ffd",
}

// Deposit is an auto generated Go binding around an Ethereum contract.
type Deposit struct {
	abi abi.ABI
}

// GetABI returns the ABI associated with this contract binding.
func (c *Deposit) GetABI() abi.ABI {
	return c.abi
}

// NewDeposit creates a new instance of Deposit.
func NewDeposit() *Deposit {
	parsed, err := DepositMetaData.ParseABI()
	if err != nil {
		panic(errors.New("invalid ABI: " + err.Error()))
	}
	return &Deposit{abi: *parsed}
}

// Instance creates a wrapper for a deployed contract instance at the given address.
// Use this to create the instance object passed to abigen v2 library functions Call, Transact, etc.
func (c *Deposit) Instance(backend bind.ContractBackend, addr common.Address) *bind.BoundContract {
	return bind.NewBoundContract(addr, c.abi, backend, backend, backend)
}

// PackMerchant is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xa5ff7651.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function merchant() view returns(address)
func (deposit *Deposit) PackMerchant() []byte {
	enc, err := deposit.abi.Pack("merchant")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackMerchant is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xa5ff7651.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function merchant() view returns(address)
func (deposit *Deposit) TryPackMerchant() ([]byte, error) {
	return deposit.abi.Pack("merchant")
}

// UnpackMerchant is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xa5ff7651.
//
// Solidity: function merchant() view returns(address)
func (deposit *Deposit) UnpackMerchant(data []byte) (common.Address, error) {
	out, err := deposit.abi.Unpack("merchant", data)
	if err != nil {
		return *new(common.Address), err
	}
	out0 := *abi.ConvertType(out[0], new(common.Address)).(*common.Address)
	return out0, nil
}

// PackSweep is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x01681a62.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function sweep(address token) returns(uint256 amount)
func (deposit *Deposit) PackSweep(token common.Address) []byte {
	enc, err := deposit.abi.Pack("sweep", token)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackSweep is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x01681a62.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function sweep(address token) returns(uint256 amount)
func (deposit *Deposit) TryPackSweep(token common.Address) ([]byte, error) {
	return deposit.abi.Pack("sweep", token)
}

// UnpackSweep is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x01681a62.
//
// Solidity: function sweep(address token) returns(uint256 amount)
func (deposit *Deposit) UnpackSweep(data []byte) (*big.Int, error) {
	out, err := deposit.abi.Unpack("sweep", data)
	if err != nil {
		return new(big.Int), err
	}
	out0 := abi.ConvertType(out[0], new(big.Int)).(*big.Int)
	return out0, nil
}

// UnpackError attempts to decode the provided error data using user-defined
// error definitions.
func (deposit *Deposit) UnpackError(raw []byte) (any, error) {
	if bytes.Equal(raw[:4], deposit.abi.Errors["NotADeposit"].ID.Bytes()[:4]) {
		return deposit.UnpackNotADepositError(raw[4:])
	}
	if bytes.Equal(raw[:4], deposit.abi.Errors["NotTransferred"].ID.Bytes()[:4]) {
		return deposit.UnpackNotTransferredError(raw[4:])
	}
	return nil, errors.New("Unknown error")
}

// DepositNotADeposit represents a NotADeposit error raised by the Deposit contract.
type DepositNotADeposit struct {
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error NotADeposit()
func DepositNotADepositErrorID() common.Hash {
	return common.HexToHash("0x783c318eca85ec7977832793a22906f69527a11638614a9de1fb69bbc66cb35f")
}

// UnpackNotADepositError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error NotADeposit()
func (deposit *Deposit) UnpackNotADepositError(raw []byte) (*DepositNotADeposit, error) {
	out := new(DepositNotADeposit)
	if err := deposit.abi.UnpackIntoInterface(out, "NotADeposit", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// DepositNotTransferred represents a NotTransferred error raised by the Deposit contract.
type DepositNotTransferred struct {
	Token common.Address
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error NotTransferred(address token)
func DepositNotTransferredErrorID() common.Hash {
	return common.HexToHash("0x2599a8108a9830cf29bbade301da6fbbd471de1cbef0c1544f04e0ce060bf833")
}

// UnpackNotTransferredError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error NotTransferred(address token)
func (deposit *Deposit) UnpackNotTransferredError(raw []byte) (*DepositNotTransferred, error) {
	out := new(DepositNotTransferred)
	if err := deposit.abi.UnpackIntoInterface(out, "NotTransferred", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// DepositFactoryMetaData contains all meta data concerning the DepositFactory contract.
var DepositFactoryMetaData = bind.MetaData{
	ABI: "[{\"inputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"constructor\"},{\"inputs\":[],\"name\":\"CloneArgumentsTooLong\",\"type\":\"error\"},{\"inputs\":[],\"name\":\"Create2EmptyBytecode\",\"type\":\"error\"},{\"inputs\":[],\"name\":\"FailedDeployment\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"balance\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"needed\",\"type\":\"uint256\"}],\"name\":\"InsufficientBalance\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"needed\",\"type\":\"uint256\"}],\"name\":\"NotEnoughGas\",\"type\":\"error\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"deposit\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"}],\"name\":\"SweepFailed\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"deposit\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"merchant\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"amount\",\"type\":\"uint256\"}],\"name\":\"Swept\",\"type\":\"event\"},{\"inputs\":[],\"name\":\"GAS_BESIDES\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"GAS_PER_SWEEP\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"merchant\",\"type\":\"address\"},{\"internalType\":\"bytes32\",\"name\":\"id\",\"type\":\"bytes32\"}],\"name\":\"depositAddress\",\"outputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"implementation\",\"outputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"components\":[{\"internalType\":\"address\",\"name\":\"merchant\",\"type\":\"address\"},{\"internalType\":\"bytes32\",\"name\":\"id\",\"type\":\"bytes32\"},{\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"}],\"internalType\":\"structSweep[]\",\"name\":\"sweeps\",\"type\":\"tuple[]\"}],\"name\":\"sweep\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"components\":[{\"internalType\":\"address\",\"name\":\"merchant\",\"type\":\"address\"},{\"internalType\":\"bytes32\",\"name\":\"id\",\"type\":\"bytes32\"},{\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"}],\"internalType\":\"structSweep\",\"name\":\"s\",\"type\":\"tuple\"}],\"name\":\"sweepOne\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"amount\",\"type\":\"uint256\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"}]",
	ID:  "DepositFactory",
	Bin: "0x6080604052348015600e575f5ffd5b50604080516135a560f21b6020808301919091523060601b6001600160601b0319166022830152600160f81b603683015282516017818403018152603790920190925280519101206001600160a01b03166040516069906099565b604051809103905ff0801580156081573d5f5f3e3d5ffd5b506001600160a01b031614609557609560a6565b60ba565b61058680610af083390190565b634e487b7160e01b5f52600160045260245ffd5b610a29806100c75f395ff3fe608060405234801561000f575f5ffd5b506004361061006e575f3560e01c8063c659cd7d1161004d578063c659cd7d1461010b578063d508564014610120578063fe0d004614610129575f5ffd5b8062a9113a14610072578063130f5a4b1461008f5780635c60da1b146100ba575b5f5ffd5b61007c6201388081565b6040519081526020015b60405180910390f35b6100a261009d3660046107d0565b61013c565b6040516001600160a01b039091168152602001610086565b604080516135a560f21b6020808301919091523060601b6bffffffffffffffffffffffff19166022830152600160f81b603683015282516017818403018152603790920190925280519101206100a2565b61011e6101193660046107f8565b6101d2565b005b61007c61ea6081565b61007c610137366004610869565b6103c2565b5f6101c96101956040516135a560f21b60208201526bffffffffffffffffffffffff193060601b166022820152600160f81b60368201525f90603701604051602081830303815290604052805190602001205f1c905090565b6040516bffffffffffffffffffffffff19606087901b166020820152603401604051602081830303815290604052846105b8565b90505b92915050565b5f6101e06201388083610896565b90506101ee61ea60826108ad565b5a101561023f5761020161ea60826108ad565b6040517f5e31f86000000000000000000000000000000000000000000000000000000000815260040161023691815260200190565b60405180910390fd5b5f5b828110156103bc5761025662013880836108c0565b91505f610271835a61026891906108c0565b6207a1206105cf565b90503063fe0d0046610285611388846108c0565b878786818110610297576102976108d3565b9050606002016040518363ffffffff1660e01b81526004016102b991906108e7565b6020604051808303815f8887f1935050505080156102f4575060408051601f3d908101601f191682019092526102f191810190610929565b60015b6103b15784848381811061030a5761030a6108d3565b90506060020160400160208101906103229190610940565b6001600160a01b0316610377868685818110610340576103406108d3565b6103569260206060909202019081019150610940565b878786818110610368576103686108d3565b9050606002016020013561013c565b6001600160a01b03167f42cba9ba465c1c4e1024950b5d3d3f29a4e9252cddd6abf394727cc27e2d813460405160405180910390a36103b3565b505b50600101610241565b50505050565b5f806103de6103d46020850185610940565b846020013561013c565b9050806001600160a01b03163b5f03610499576104976104496040516135a560f21b60208201526bffffffffffffffffffffffff193060601b166022820152600160f81b60368201525f90603701604051602081830303815290604052805190602001205f1c905090565b6104566020860186610940565b60405160200161047e919060609190911b6bffffffffffffffffffffffff1916815260140190565b60405160208183030381529060405285602001356105de565b505b6001600160a01b0381166301681a626104b86060860160408701610940565b6040517fffffffff0000000000000000000000000000000000000000000000000000000060e084901b1681526001600160a01b0390911660048201526024016020604051808303815f875af1158015610513573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906105379190610929565b915081156105b25761054c6020840184610940565b6001600160a01b03166105656060850160408601610940565b6001600160a01b0316826001600160a01b03167fddb9e887767e767a0e6a62c15b95f9f09e40e04427f78be916fdf478da1dbc23856040516105a991815260200190565b60405180910390a45b50919050565b5f6105c5848484306105eb565b90505b9392505050565b5f8282188284100282186101c9565b5f6105c58484845f610615565b5f5f6105f7868661062e565b905061060b848280519060200120856106a5565b9695505050505050565b5f5f610621868661062e565b905061060b8385836106d7565b6060615fd38251111561066d576040517f9428905400000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b815161067a90602d6108ad565b838360405160200161068e93929190610959565b604051602081830303815290604052905092915050565b5f604051836040820152846020820152828152600b8101905060ff8153605590206001600160a01b0316949350505050565b5f8347101561071b576040517fcf47918100000000000000000000000000000000000000000000000000000000815247600482015260248101859052604401610236565b81515f03610755576040517f4ca249dc00000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b8282516020840186f590506001600160a01b0381166105c8573d5f036107a7576040517fb06ebf3d00000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b6105c86040513d5f823e3d81fd5b80356001600160a01b03811681146107cb575f5ffd5b919050565b5f5f604083850312156107e1575f5ffd5b6107ea836107b5565b946020939093013593505050565b5f5f60208385031215610809575f5ffd5b823567ffffffffffffffff81111561081f575f5ffd5b8301601f8101851361082f575f5ffd5b803567ffffffffffffffff811115610845575f5ffd5b856020606083028401011115610859575f5ffd5b6020919091019590945092505050565b5f606082840312801561087a575f5ffd5b509092915050565b634e487b7160e01b5f52601160045260245ffd5b80820281158282048414176101cc576101cc610882565b808201808211156101cc576101cc610882565b818103818111156101cc576101cc610882565b634e487b7160e01b5f52603260045260245ffd5b606081016001600160a01b036108fc846107b5565b168252602083810135908301526001600160a01b0361091d604085016107b5565b16604083015292915050565b5f60208284031215610939575f5ffd5b5051919050565b5f60208284031215610950575f5ffd5b6101c9826107b5565b7f610000000000000000000000000000000000000000000000000000000000000081527fffff0000000000000000000000000000000000000000000000000000000000008460f01b1660018201527f3d81600a3d39f3363d3d373d3d3d363d7300000000000000000000000000000060038201526bffffffffffffffffffffffff198360601b1660148201527f5af43d82803e903d91602b57fd5bf3000000000000000000000000000000000060288201525f82518060208501603785015e5f9201603701918252509392505050566080604052348015600e575f5ffd5b5061056a8061001c5f395ff3fe60806040526004361061002b575f3560e01c806301681a6214610036578063a5ff765114610068575f5ffd5b3661003257005b5f5ffd5b348015610041575f5ffd5b5061005561005036600461044f565b610094565b6040519081526020015b60405180910390f35b348015610073575f5ffd5b5061007c6101d0565b6040516001600160a01b03909116815260200161005f565b5f5f61009e6101d0565b90506001600160a01b03831661010a574791505f821180156100d657506100d4818360405180602001604052805f81525061022a565b155b15610104576040516302599a8160e41b81526001600160a01b03841660048201526024015b60405180910390fd5b50919050565b6040516370a0823160e01b81523060048201525f906001600160a01b038516906370a0823190602401602060405180830381865afa15801561014e573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906101729190610475565b9050805f0361018457505f9392505050565b5f61019085848461023f565b90508181106101bd576040516302599a8160e41b81526001600160a01b03861660048201526024016100fb565b6101c781836104a0565b95945050505050565b5f5f6101db30610352565b90508051601414610218576040517f783c318e00000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b610221816104b9565b60601c91505090565b5f5f5f83516020850186885af1949350505050565b80805f5b82156103485782821115610255578291505b6102696001600160a01b03871686846103bf565b15610304576040516370a0823160e01b81523060048201525f906001600160a01b038816906370a0823190602401602060405180830381865afa1580156102b2573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906102d69190610475565b90508381106102e957925061034b915050565b80935061ea605a10156102fe5750505061034b565b50610243565b81600114806103135750600681145b1561031f57505061034b565b6103288161050c565b90506004610337836003610524565b6103419190610537565b9150610243565b50505b9392505050565b60605f61036a602d6001600160a01b0385163b6104a0565b67ffffffffffffffff81111561038257610382610556565b6040519080825280601f01601f1916602001820160405280156103ac576020820181803683370190505b5090508051602d60208301853c92915050565b5f6103cc8484845f6103d4565b949350505050565b6040517fa9059cbb000000000000000000000000000000000000000000000000000000005f8181526001600160a01b038616600452602485905291602083604481808b5af1925060015f51148316610443578383151615610437573d5f823e3d81fd5b5f873b113d1516831692505b60405250949350505050565b5f6020828403121561045f575f5ffd5b81356001600160a01b038116811461034b575f5ffd5b5f60208284031215610485575f5ffd5b5051919050565b634e487b7160e01b5f52601160045260245ffd5b818103818111156104b3576104b361048c565b92915050565b805160208201516bffffffffffffffffffffffff19811691906014821015610505576bffffffffffffffffffffffff196bffffffffffffffffffffffff198360140360031b1b82161692505b5050919050565b5f6001820161051d5761051d61048c565b5060010190565b808201808211156104b3576104b361048c565b5f8261055157634e487b7160e01b5f52601260045260245ffd5b500490565b634e487b7160e01b5f52604160045260245ffd",
}

// DepositFactory is an auto generated Go binding around an Ethereum contract.
type DepositFactory struct {
	abi abi.ABI
}

// GetABI returns the ABI associated with this contract binding.
func (c *DepositFactory) GetABI() abi.ABI {
	return c.abi
}

// NewDepositFactory creates a new instance of DepositFactory.
func NewDepositFactory() *DepositFactory {
	parsed, err := DepositFactoryMetaData.ParseABI()
	if err != nil {
		panic(errors.New("invalid ABI: " + err.Error()))
	}
	return &DepositFactory{abi: *parsed}
}

// Instance creates a wrapper for a deployed contract instance at the given address.
// Use this to create the instance object passed to abigen v2 library functions Call, Transact, etc.
func (c *DepositFactory) Instance(backend bind.ContractBackend, addr common.Address) *bind.BoundContract {
	return bind.NewBoundContract(addr, c.abi, backend, backend, backend)
}

// PackGASBESIDES is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xd5085640.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function GAS_BESIDES() view returns(uint256)
func (depositFactory *DepositFactory) PackGASBESIDES() []byte {
	enc, err := depositFactory.abi.Pack("GAS_BESIDES")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackGASBESIDES is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xd5085640.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function GAS_BESIDES() view returns(uint256)
func (depositFactory *DepositFactory) TryPackGASBESIDES() ([]byte, error) {
	return depositFactory.abi.Pack("GAS_BESIDES")
}

// UnpackGASBESIDES is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xd5085640.
//
// Solidity: function GAS_BESIDES() view returns(uint256)
func (depositFactory *DepositFactory) UnpackGASBESIDES(data []byte) (*big.Int, error) {
	out, err := depositFactory.abi.Unpack("GAS_BESIDES", data)
	if err != nil {
		return new(big.Int), err
	}
	out0 := abi.ConvertType(out[0], new(big.Int)).(*big.Int)
	return out0, nil
}

// PackGASPERSWEEP is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x00a9113a.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function GAS_PER_SWEEP() view returns(uint256)
func (depositFactory *DepositFactory) PackGASPERSWEEP() []byte {
	enc, err := depositFactory.abi.Pack("GAS_PER_SWEEP")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackGASPERSWEEP is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x00a9113a.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function GAS_PER_SWEEP() view returns(uint256)
func (depositFactory *DepositFactory) TryPackGASPERSWEEP() ([]byte, error) {
	return depositFactory.abi.Pack("GAS_PER_SWEEP")
}

// UnpackGASPERSWEEP is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x00a9113a.
//
// Solidity: function GAS_PER_SWEEP() view returns(uint256)
func (depositFactory *DepositFactory) UnpackGASPERSWEEP(data []byte) (*big.Int, error) {
	out, err := depositFactory.abi.Unpack("GAS_PER_SWEEP", data)
	if err != nil {
		return new(big.Int), err
	}
	out0 := abi.ConvertType(out[0], new(big.Int)).(*big.Int)
	return out0, nil
}

// PackDepositAddress is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x130f5a4b.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function depositAddress(address merchant, bytes32 id) view returns(address)
func (depositFactory *DepositFactory) PackDepositAddress(merchant common.Address, id [32]byte) []byte {
	enc, err := depositFactory.abi.Pack("depositAddress", merchant, id)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackDepositAddress is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x130f5a4b.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function depositAddress(address merchant, bytes32 id) view returns(address)
func (depositFactory *DepositFactory) TryPackDepositAddress(merchant common.Address, id [32]byte) ([]byte, error) {
	return depositFactory.abi.Pack("depositAddress", merchant, id)
}

// UnpackDepositAddress is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x130f5a4b.
//
// Solidity: function depositAddress(address merchant, bytes32 id) view returns(address)
func (depositFactory *DepositFactory) UnpackDepositAddress(data []byte) (common.Address, error) {
	out, err := depositFactory.abi.Unpack("depositAddress", data)
	if err != nil {
		return *new(common.Address), err
	}
	out0 := *abi.ConvertType(out[0], new(common.Address)).(*common.Address)
	return out0, nil
}

// PackImplementation is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x5c60da1b.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function implementation() view returns(address)
func (depositFactory *DepositFactory) PackImplementation() []byte {
	enc, err := depositFactory.abi.Pack("implementation")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackImplementation is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x5c60da1b.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function implementation() view returns(address)
func (depositFactory *DepositFactory) TryPackImplementation() ([]byte, error) {
	return depositFactory.abi.Pack("implementation")
}

// UnpackImplementation is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x5c60da1b.
//
// Solidity: function implementation() view returns(address)
func (depositFactory *DepositFactory) UnpackImplementation(data []byte) (common.Address, error) {
	out, err := depositFactory.abi.Unpack("implementation", data)
	if err != nil {
		return *new(common.Address), err
	}
	out0 := *abi.ConvertType(out[0], new(common.Address)).(*common.Address)
	return out0, nil
}

// PackSweep is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xc659cd7d.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function sweep((address,bytes32,address)[] sweeps) returns()
func (depositFactory *DepositFactory) PackSweep(sweeps []Sweep) []byte {
	enc, err := depositFactory.abi.Pack("sweep", sweeps)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackSweep is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xc659cd7d.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function sweep((address,bytes32,address)[] sweeps) returns()
func (depositFactory *DepositFactory) TryPackSweep(sweeps []Sweep) ([]byte, error) {
	return depositFactory.abi.Pack("sweep", sweeps)
}

// PackSweepOne is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xfe0d0046.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function sweepOne((address,bytes32,address) s) returns(uint256 amount)
func (depositFactory *DepositFactory) PackSweepOne(s Sweep) []byte {
	enc, err := depositFactory.abi.Pack("sweepOne", s)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackSweepOne is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xfe0d0046.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function sweepOne((address,bytes32,address) s) returns(uint256 amount)
func (depositFactory *DepositFactory) TryPackSweepOne(s Sweep) ([]byte, error) {
	return depositFactory.abi.Pack("sweepOne", s)
}

// UnpackSweepOne is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xfe0d0046.
//
// Solidity: function sweepOne((address,bytes32,address) s) returns(uint256 amount)
func (depositFactory *DepositFactory) UnpackSweepOne(data []byte) (*big.Int, error) {
	out, err := depositFactory.abi.Unpack("sweepOne", data)
	if err != nil {
		return new(big.Int), err
	}
	out0 := abi.ConvertType(out[0], new(big.Int)).(*big.Int)
	return out0, nil
}

// DepositFactorySweepFailed represents a SweepFailed event raised by the DepositFactory contract.
type DepositFactorySweepFailed struct {
	Deposit common.Address
	Token   common.Address
	Raw     *types.Log // Blockchain specific contextual infos
}

const DepositFactorySweepFailedEventName = "SweepFailed"

// ContractEventName returns the user-defined event name.
func (DepositFactorySweepFailed) ContractEventName() string {
	return DepositFactorySweepFailedEventName
}

// UnpackSweepFailedEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event SweepFailed(address indexed deposit, address indexed token)
func (depositFactory *DepositFactory) UnpackSweepFailedEvent(log *types.Log) (*DepositFactorySweepFailed, error) {
	event := "SweepFailed"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != depositFactory.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(DepositFactorySweepFailed)
	if len(log.Data) > 0 {
		if err := depositFactory.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range depositFactory.abi.Events[event].Inputs {
		if arg.Indexed {
			indexed = append(indexed, arg)
		}
	}
	if err := abi.ParseTopics(out, indexed, log.Topics[1:]); err != nil {
		return nil, err
	}
	out.Raw = log
	return out, nil
}

// DepositFactorySwept represents a Swept event raised by the DepositFactory contract.
type DepositFactorySwept struct {
	Deposit  common.Address
	Token    common.Address
	Merchant common.Address
	Amount   *big.Int
	Raw      *types.Log // Blockchain specific contextual infos
}

const DepositFactorySweptEventName = "Swept"

// ContractEventName returns the user-defined event name.
func (DepositFactorySwept) ContractEventName() string {
	return DepositFactorySweptEventName
}

// UnpackSweptEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event Swept(address indexed deposit, address indexed token, address indexed merchant, uint256 amount)
func (depositFactory *DepositFactory) UnpackSweptEvent(log *types.Log) (*DepositFactorySwept, error) {
	event := "Swept"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != depositFactory.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(DepositFactorySwept)
	if len(log.Data) > 0 {
		if err := depositFactory.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range depositFactory.abi.Events[event].Inputs {
		if arg.Indexed {
			indexed = append(indexed, arg)
		}
	}
	if err := abi.ParseTopics(out, indexed, log.Topics[1:]); err != nil {
		return nil, err
	}
	out.Raw = log
	return out, nil
}

// UnpackError attempts to decode the provided error data using user-defined
// error definitions.
func (depositFactory *DepositFactory) UnpackError(raw []byte) (any, error) {
	if bytes.Equal(raw[:4], depositFactory.abi.Errors["CloneArgumentsTooLong"].ID.Bytes()[:4]) {
		return depositFactory.UnpackCloneArgumentsTooLongError(raw[4:])
	}
	if bytes.Equal(raw[:4], depositFactory.abi.Errors["Create2EmptyBytecode"].ID.Bytes()[:4]) {
		return depositFactory.UnpackCreate2EmptyBytecodeError(raw[4:])
	}
	if bytes.Equal(raw[:4], depositFactory.abi.Errors["FailedDeployment"].ID.Bytes()[:4]) {
		return depositFactory.UnpackFailedDeploymentError(raw[4:])
	}
	if bytes.Equal(raw[:4], depositFactory.abi.Errors["InsufficientBalance"].ID.Bytes()[:4]) {
		return depositFactory.UnpackInsufficientBalanceError(raw[4:])
	}
	if bytes.Equal(raw[:4], depositFactory.abi.Errors["NotEnoughGas"].ID.Bytes()[:4]) {
		return depositFactory.UnpackNotEnoughGasError(raw[4:])
	}
	return nil, errors.New("Unknown error")
}

// DepositFactoryCloneArgumentsTooLong represents a CloneArgumentsTooLong error raised by the DepositFactory contract.
type DepositFactoryCloneArgumentsTooLong struct {
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error CloneArgumentsTooLong()
func DepositFactoryCloneArgumentsTooLongErrorID() common.Hash {
	return common.HexToHash("0x94289054871591d3430cc609d2f0e85b3474ba36313e71e06c09c95ae956555b")
}

// UnpackCloneArgumentsTooLongError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error CloneArgumentsTooLong()
func (depositFactory *DepositFactory) UnpackCloneArgumentsTooLongError(raw []byte) (*DepositFactoryCloneArgumentsTooLong, error) {
	out := new(DepositFactoryCloneArgumentsTooLong)
	if err := depositFactory.abi.UnpackIntoInterface(out, "CloneArgumentsTooLong", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// DepositFactoryCreate2EmptyBytecode represents a Create2EmptyBytecode error raised by the DepositFactory contract.
type DepositFactoryCreate2EmptyBytecode struct {
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error Create2EmptyBytecode()
func DepositFactoryCreate2EmptyBytecodeErrorID() common.Hash {
	return common.HexToHash("0x4ca249dcffe41558ef8b961d71c905e4fa4317a1663f377b9610642e4e0abdb6")
}

// UnpackCreate2EmptyBytecodeError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error Create2EmptyBytecode()
func (depositFactory *DepositFactory) UnpackCreate2EmptyBytecodeError(raw []byte) (*DepositFactoryCreate2EmptyBytecode, error) {
	out := new(DepositFactoryCreate2EmptyBytecode)
	if err := depositFactory.abi.UnpackIntoInterface(out, "Create2EmptyBytecode", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// DepositFactoryFailedDeployment represents a FailedDeployment error raised by the DepositFactory contract.
type DepositFactoryFailedDeployment struct {
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error FailedDeployment()
func DepositFactoryFailedDeploymentErrorID() common.Hash {
	return common.HexToHash("0xb06ebf3d5067824a3fe5d5ba19471e035a7de6c88dac362c77b162830a5b9093")
}

// UnpackFailedDeploymentError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error FailedDeployment()
func (depositFactory *DepositFactory) UnpackFailedDeploymentError(raw []byte) (*DepositFactoryFailedDeployment, error) {
	out := new(DepositFactoryFailedDeployment)
	if err := depositFactory.abi.UnpackIntoInterface(out, "FailedDeployment", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// DepositFactoryInsufficientBalance represents a InsufficientBalance error raised by the DepositFactory contract.
type DepositFactoryInsufficientBalance struct {
	Balance *big.Int
	Needed  *big.Int
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error InsufficientBalance(uint256 balance, uint256 needed)
func DepositFactoryInsufficientBalanceErrorID() common.Hash {
	return common.HexToHash("0xcf4791818fba6e019216eb4864093b4947f674afada5d305e57d598b641dad1d")
}

// UnpackInsufficientBalanceError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error InsufficientBalance(uint256 balance, uint256 needed)
func (depositFactory *DepositFactory) UnpackInsufficientBalanceError(raw []byte) (*DepositFactoryInsufficientBalance, error) {
	out := new(DepositFactoryInsufficientBalance)
	if err := depositFactory.abi.UnpackIntoInterface(out, "InsufficientBalance", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// DepositFactoryNotEnoughGas represents a NotEnoughGas error raised by the DepositFactory contract.
type DepositFactoryNotEnoughGas struct {
	Needed *big.Int
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error NotEnoughGas(uint256 needed)
func DepositFactoryNotEnoughGasErrorID() common.Hash {
	return common.HexToHash("0x5e31f860f933797f506b70790a3e92ae2d52bb6c7661986960a232925cc0b275")
}

// UnpackNotEnoughGasError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error NotEnoughGas(uint256 needed)
func (depositFactory *DepositFactory) UnpackNotEnoughGasError(raw []byte) (*DepositFactoryNotEnoughGas, error) {
	out := new(DepositFactoryNotEnoughGas)
	if err := depositFactory.abi.UnpackIntoInterface(out, "NotEnoughGas", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// InvoiceRegistryMetaData contains all meta data concerning the InvoiceRegistry contract.
var InvoiceRegistryMetaData = bind.MetaData{
	ABI: "[{\"inputs\":[{\"internalType\":\"address\",\"name\":\"admin\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"operator\",\"type\":\"address\"}],\"stateMutability\":\"nonpayable\",\"type\":\"constructor\"},{\"inputs\":[],\"name\":\"AccessControlBadConfirmation\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"account\",\"type\":\"address\"},{\"internalType\":\"bytes32\",\"name\":\"neededRole\",\"type\":\"bytes32\"}],\"name\":\"AccessControlUnauthorizedAccount\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"bytes32\",\"name\":\"id\",\"type\":\"bytes32\"}],\"name\":\"AlreadyPaid\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"bytes32\",\"name\":\"id\",\"type\":\"bytes32\"}],\"name\":\"InvoiceClosed\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"bytes32\",\"name\":\"id\",\"type\":\"bytes32\"},{\"internalType\":\"uint64\",\"name\":\"expiresAt\",\"type\":\"uint64\"}],\"name\":\"InvoiceExpired\",\"type\":\"error\"},{\"inputs\":[],\"name\":\"ReentrancyGuardReentrantCall\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"}],\"name\":\"SafeERC20FailedOperation\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"balanceBefore\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"balanceAfter\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"amount\",\"type\":\"uint256\"}],\"name\":\"WrongAmountReceived\",\"type\":\"error\"},{\"inputs\":[],\"name\":\"ZeroAmount\",\"type\":\"error\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"bytes32\",\"name\":\"id\",\"type\":\"bytes32\"}],\"name\":\"Closed\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"bytes32\",\"name\":\"id\",\"type\":\"bytes32\"}],\"name\":\"Opened\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"bytes32\",\"name\":\"id\",\"type\":\"bytes32\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"payer\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"merchant\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"amount\",\"type\":\"uint256\"}],\"name\":\"Paid\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"bytes32\",\"name\":\"role\",\"type\":\"bytes32\"},{\"indexed\":true,\"internalType\":\"bytes32\",\"name\":\"previousAdminRole\",\"type\":\"bytes32\"},{\"indexed\":true,\"internalType\":\"bytes32\",\"name\":\"newAdminRole\",\"type\":\"bytes32\"}],\"name\":\"RoleAdminChanged\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"bytes32\",\"name\":\"role\",\"type\":\"bytes32\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"account\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"sender\",\"type\":\"address\"}],\"name\":\"RoleGranted\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"bytes32\",\"name\":\"role\",\"type\":\"bytes32\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"account\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"sender\",\"type\":\"address\"}],\"name\":\"RoleRevoked\",\"type\":\"event\"},{\"inputs\":[],\"name\":\"DEFAULT_ADMIN_ROLE\",\"outputs\":[{\"internalType\":\"bytes32\",\"name\":\"\",\"type\":\"bytes32\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"OPERATOR_ROLE\",\"outputs\":[{\"internalType\":\"bytes32\",\"name\":\"\",\"type\":\"bytes32\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"bytes32[]\",\"name\":\"ids\",\"type\":\"bytes32[]\"},{\"internalType\":\"uint64\",\"name\":\"expiresAt\",\"type\":\"uint64\"}],\"name\":\"close\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"bytes32\",\"name\":\"role\",\"type\":\"bytes32\"}],\"name\":\"getRoleAdmin\",\"outputs\":[{\"internalType\":\"bytes32\",\"name\":\"\",\"type\":\"bytes32\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"bytes32\",\"name\":\"role\",\"type\":\"bytes32\"},{\"internalType\":\"address\",\"name\":\"account\",\"type\":\"address\"}],\"name\":\"grantRole\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"bytes32\",\"name\":\"role\",\"type\":\"bytes32\"},{\"internalType\":\"address\",\"name\":\"account\",\"type\":\"address\"}],\"name\":\"hasRole\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"components\":[{\"internalType\":\"address\",\"name\":\"merchant\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"amount\",\"type\":\"uint256\"},{\"internalType\":\"uint64\",\"name\":\"expiresAt\",\"type\":\"uint64\"},{\"internalType\":\"bytes32\",\"name\":\"salt\",\"type\":\"bytes32\"}],\"internalType\":\"structTerms\",\"name\":\"t\",\"type\":\"tuple\"}],\"name\":\"idOf\",\"outputs\":[{\"internalType\":\"bytes32\",\"name\":\"\",\"type\":\"bytes32\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"bytes32[]\",\"name\":\"ids\",\"type\":\"bytes32[]\"}],\"name\":\"open\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"components\":[{\"internalType\":\"address\",\"name\":\"merchant\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"amount\",\"type\":\"uint256\"},{\"internalType\":\"uint64\",\"name\":\"expiresAt\",\"type\":\"uint64\"},{\"internalType\":\"bytes32\",\"name\":\"salt\",\"type\":\"bytes32\"}],\"internalType\":\"structTerms\",\"name\":\"t\",\"type\":\"tuple\"}],\"name\":\"pay\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"components\":[{\"internalType\":\"address\",\"name\":\"merchant\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"amount\",\"type\":\"uint256\"},{\"internalType\":\"uint64\",\"name\":\"expiresAt\",\"type\":\"uint64\"},{\"internalType\":\"bytes32\",\"name\":\"salt\",\"type\":\"bytes32\"}],\"internalType\":\"structTerms\",\"name\":\"t\",\"type\":\"tuple\"},{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"validAfter\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validBefore\",\"type\":\"uint256\"},{\"internalType\":\"uint8\",\"name\":\"v\",\"type\":\"uint8\"},{\"internalType\":\"bytes32\",\"name\":\"r\",\"type\":\"bytes32\"},{\"internalType\":\"bytes32\",\"name\":\"s\",\"type\":\"bytes32\"}],\"name\":\"payWithAuthorization\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"components\":[{\"internalType\":\"address\",\"name\":\"merchant\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"amount\",\"type\":\"uint256\"},{\"internalType\":\"uint64\",\"name\":\"expiresAt\",\"type\":\"uint64\"},{\"internalType\":\"bytes32\",\"name\":\"salt\",\"type\":\"bytes32\"}],\"internalType\":\"structTerms\",\"name\":\"t\",\"type\":\"tuple\"},{\"internalType\":\"uint256\",\"name\":\"deadline\",\"type\":\"uint256\"},{\"internalType\":\"uint8\",\"name\":\"v\",\"type\":\"uint8\"},{\"internalType\":\"bytes32\",\"name\":\"r\",\"type\":\"bytes32\"},{\"internalType\":\"bytes32\",\"name\":\"s\",\"type\":\"bytes32\"}],\"name\":\"payWithPermit\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"bytes32\",\"name\":\"role\",\"type\":\"bytes32\"},{\"internalType\":\"address\",\"name\":\"callerConfirmation\",\"type\":\"address\"}],\"name\":\"renounceRole\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"bytes32\",\"name\":\"role\",\"type\":\"bytes32\"},{\"internalType\":\"address\",\"name\":\"account\",\"type\":\"address\"}],\"name\":\"revokeRole\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"bytes32\",\"name\":\"id\",\"type\":\"bytes32\"}],\"name\":\"statusOf\",\"outputs\":[{\"internalType\":\"enumInvoiceRegistry.Status\",\"name\":\"\",\"type\":\"uint8\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"bytes4\",\"name\":\"interfaceId\",\"type\":\"bytes4\"}],\"name\":\"supportsInterface\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"view\",\"type\":\"function\"}]",
	ID:  "InvoiceRegistry",
	Bin: "0x608060405234801561000f575f5ffd5b506040516113bc3803806113bc83398101604081905261002e9161012f565b6100385f8361006b565b506100637f97667070c54ef182b0f5858b034beac1b6f3089aa2d3188bb1e8929f4fa9b9298261006b565b505050610160565b5f828152602081815260408083206001600160a01b038516845290915281205460ff1661010b575f838152602081815260408083206001600160a01b03861684529091529020805460ff191660011790556100c33390565b6001600160a01b0316826001600160a01b0316847f2f8788117e7eff1d82e926ec794901d17c78024a50270940304540a733656f0d60405160405180910390a450600161010e565b505f5b92915050565b80516001600160a01b038116811461012a575f5ffd5b919050565b5f5f60408385031215610140575f5ffd5b61014983610114565b915061015760208401610114565b90509250929050565b61124f8061016d5f395ff3fe608060405234801561000f575f5ffd5b50600436106100f0575f3560e01c8063866fa1f611610093578063b91e903011610063578063b91e903014610210578063c7df14e214610223578063d547741f14610252578063f5b541a614610265575f5ffd5b8063866fa1f6146101ad5780638edb56dd146101c057806391d14854146101d3578063a217fddf14610209575f5ffd5b80632f2ff15d116100ce5780632f2ff15d1461016157806336568abe1461017457806350ced1f8146101875780636947e4d31461019a575f5ffd5b806301ffc9a7146100f4578063248a9ca31461011c578063297e03551461014c575b5f5ffd5b610107610102366004610f29565b61028c565b60405190151581526020015b60405180910390f35b61013e61012a366004610f57565b5f9081526020819052604090206001015490565b604051908152602001610113565b61015f61015a366004610fb6565b6102f4565b005b61015f61016f366004611010565b61037b565b61015f610182366004611010565b61039f565b61015f610195366004611050565b6103f0565b61015f6101a8366004611081565b61040c565b61015f6101bb3660046110e1565b6104f0565b61015f6101ce36600461114c565b610677565b6101076101e1366004611010565b5f918252602082815260408084206001600160a01b0393909316845291905290205460ff1690565b61013e5f81565b61013e61021e366004611050565b610740565b610245610231366004610f57565b60016020525f908152604090205460ff1681565b60405161011391906111ad565b61015f610260366004611010565b6107e3565b61013e7f97667070c54ef182b0f5858b034beac1b6f3089aa2d3188bb1e8929f4fa9b92981565b5f6001600160e01b031982167f7965db0b0000000000000000000000000000000000000000000000000000000014806102ee57507f01ffc9a7000000000000000000000000000000000000000000000000000000006001600160e01b03198316145b92915050565b7f97667070c54ef182b0f5858b034beac1b6f3089aa2d3188bb1e8929f4fa9b92961031e81610807565b5f5b828110156103755783838281811061033a5761033a6111d3565b905060200201357fd087f17acc177540af5f382bc30c65363705b90855144d285a822536ee11fdd160405160405180910390a2600101610320565b50505050565b5f8281526020819052604090206001015461039581610807565b6103758383610811565b6001600160a01b03811633146103e1576040517f6697b23200000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b6103eb82826108b8565b505050565b6103f8610939565b61040181610970565b610409610a52565b50565b7f97667070c54ef182b0f5858b034beac1b6f3089aa2d3188bb1e8929f4fa9b92961043681610807565b67ffffffffffffffff821642115f5b848110156104e8575f868683818110610460576104606111d3565b905060200201359050826104b4575f8181526001602052604081205460ff16600281111561049057610490611199565b1461049b57506104e0565b5f818152600160205260409020805460ff191660021790555b60405181907f7b6ac8bce3193cb9464e9070476bf8926e449f5f743f8c7578eea15265467d79905f90a2505b600101610445565b505050505050565b6104f8610939565b5f61050288610a7c565b90505f61051560408a0160208b016111e7565b6001600160a01b03166370a0823161053060208c018c6111e7565b6040516001600160e01b031960e084901b1681526001600160a01b039091166004820152602401602060405180830381865afa158015610572573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906105969190611200565b90506105a860408a0160208b016111e7565b6001600160a01b031663e3ee160e896105c460208d018d6111e7565b604080516001600160e01b031960e086901b1681526001600160a01b0393841660048201529290911660248301528c01356044820152606481018a90526084810189905260a4810185905260ff881660c482015260e481018790526101048101869052610124015f604051808303815f87803b158015610642575f5ffd5b505af1158015610654573d5f5f3e3d5ffd5b50505050610664828a8a84610c14565b505061066e610a52565b50505050505050565b61067f610939565b61068f60408601602087016111e7565b604080517fd505accf0000000000000000000000000000000000000000000000000000000081523360048201523060248201529087013560448201526064810186905260ff8516608482015260a4810184905260c481018390526001600160a01b03919091169063d505accf9060e4015f604051808303815f87803b158015610716575f5ffd5b505af1925050508015610727575060015b5061073185610970565b610739610a52565b5050505050565b5f463061075060208501856111e7565b61076060408601602087016111e7565b60408601356107756080880160608901611217565b6040805160208101979097526001600160a01b03958616908701529284166060860152921660808481019190915260a084019290925267ffffffffffffffff1660c083015283013560e082015261010001604051602081830303815290604052805190602001209050919050565b5f828152602081905260409020600101546107fd81610807565b61037583836108b8565b6104098133610d85565b5f828152602081815260408083206001600160a01b038516845290915281205460ff166108b1575f838152602081815260408083206001600160a01b03861684529091529020805460ff191660011790556108693390565b6001600160a01b0316826001600160a01b0316847f2f8788117e7eff1d82e926ec794901d17c78024a50270940304540a733656f0d60405160405180910390a45060016102ee565b505f6102ee565b5f828152602081815260408083206001600160a01b038516845290915281205460ff16156108b1575f838152602081815260408083206001600160a01b0386168085529252808320805460ff1916905551339286917ff6391f5c32d9c69d2a47ea670b442974b53935d1edc7fd64eb21e047a839171b9190a45060016102ee565b610941610df4565b61096e60017f9b779b17422d0df92223018b32b4d1fa46e071723d6817e2486d003becc55f005b90610e4d565b565b5f61097a82610a7c565b90505f61098d60408401602085016111e7565b6001600160a01b03166370a082316109a860208601866111e7565b6040516001600160e01b031960e084901b1681526001600160a01b039091166004820152602401602060405180830381865afa1580156109ea573d5f5f3e3d5ffd5b505050506040513d601f19601f82011682018060405250810190610a0e9190611200565b9050610a4633610a2160208601866111e7565b60408601803590610a3590602089016111e7565b6001600160a01b0316929190610e54565b6103eb82843384610c14565b61096e5f7f9b779b17422d0df92223018b32b4d1fa46e071723d6817e2486d003becc55f00610968565b5f81604001355f03610aba576040517f1f2a200500000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b610ac382610740565b5f8181526001602081905260409091205491925060ff90911690816002811115610aef57610aef611199565b03610b2e576040517ff4b76a0e000000000000000000000000000000000000000000000000000000008152600481018390526024015b60405180910390fd5b6002816002811115610b4257610b42611199565b03610b7c576040517f95cd6fdb00000000000000000000000000000000000000000000000000000000815260048101839052602401610b25565b610b8c6080840160608501611217565b67ffffffffffffffff16421115610bf35781610bae6080850160608601611217565b6040517f5a38ffeb000000000000000000000000000000000000000000000000000000008152600481019290925267ffffffffffffffff166024820152604401610b25565b505f818152600160208190526040909120805460ff19169091179055919050565b5f610c2560408501602086016111e7565b6001600160a01b03166370a08231610c4060208701876111e7565b6040516001600160e01b031960e084901b1681526001600160a01b039091166004820152602401602060405180830381865afa158015610c82573d5f5f3e3d5ffd5b505050506040513d601f19601f82011682018060405250810190610ca69190611200565b905081811080610cc357506040840135610cc08383611230565b14155b15610d0e57604080517f5965d9cc0000000000000000000000000000000000000000000000000000000081526004810184905260248101839052908501356044820152606401610b25565b610d1b60208501856111e7565b6001600160a01b03908116908416867f060bb954af967ecb7aa08a0072a7f8fe308ceee2f5d15f4a9d4a5275a5fe79e9610d5b6040890160208a016111e7565b604080516001600160a01b039092168252808a013560208301520160405180910390a45050505050565b5f828152602081815260408083206001600160a01b038516845290915290205460ff16610df0576040517fe2517d3f0000000000000000000000000000000000000000000000000000000081526001600160a01b038216600482015260248101839052604401610b25565b5050565b7f9b779b17422d0df92223018b32b4d1fa46e071723d6817e2486d003becc55f005c1561096e576040517f3ee5aeb500000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b80825d5050565b610e62848484846001610ea3565b610375576040517f5274afe70000000000000000000000000000000000000000000000000000000081526001600160a01b0385166004820152602401610b25565b6040517f23b872dd000000000000000000000000000000000000000000000000000000005f8181526001600160a01b038781166004528616602452604485905291602083606481808c5af1925060015f51148316610f18578383151615610f0c573d5f823e3d81fd5b5f883b113d1516831692505b604052505f60605295945050505050565b5f60208284031215610f39575f5ffd5b81356001600160e01b031981168114610f50575f5ffd5b9392505050565b5f60208284031215610f67575f5ffd5b5035919050565b5f5f83601f840112610f7e575f5ffd5b50813567ffffffffffffffff811115610f95575f5ffd5b6020830191508360208260051b8501011115610faf575f5ffd5b9250929050565b5f5f60208385031215610fc7575f5ffd5b823567ffffffffffffffff811115610fdd575f5ffd5b610fe985828601610f6e565b90969095509350505050565b80356001600160a01b038116811461100b575f5ffd5b919050565b5f5f60408385031215611021575f5ffd5b8235915061103160208401610ff5565b90509250929050565b5f60a0828403121561104a575f5ffd5b50919050565b5f60a08284031215611060575f5ffd5b610f50838361103a565b803567ffffffffffffffff8116811461100b575f5ffd5b5f5f5f60408486031215611093575f5ffd5b833567ffffffffffffffff8111156110a9575f5ffd5b6110b586828701610f6e565b90945092506110c890506020850161106a565b90509250925092565b803560ff8116811461100b575f5ffd5b5f5f5f5f5f5f5f610160888a0312156110f8575f5ffd5b611102898961103a565b965061111060a08901610ff5565b955060c0880135945060e0880135935061112d61010089016110d1565b9699959850939692959461012084013594506101409093013592915050565b5f5f5f5f5f6101208688031215611161575f5ffd5b61116b878761103a565b945060a0860135935061118060c087016110d1565b9497939650939460e08101359450610100013592915050565b634e487b7160e01b5f52602160045260245ffd5b60208101600383106111cd57634e487b7160e01b5f52602160045260245ffd5b91905290565b634e487b7160e01b5f52603260045260245ffd5b5f602082840312156111f7575f5ffd5b610f5082610ff5565b5f60208284031215611210575f5ffd5b5051919050565b5f60208284031215611227575f5ffd5b610f508261106a565b818103818111156102ee57634e487b7160e01b5f52601160045260245ffd",
}

// InvoiceRegistry is an auto generated Go binding around an Ethereum contract.
type InvoiceRegistry struct {
	abi abi.ABI
}

// GetABI returns the ABI associated with this contract binding.
func (c *InvoiceRegistry) GetABI() abi.ABI {
	return c.abi
}

// NewInvoiceRegistry creates a new instance of InvoiceRegistry.
func NewInvoiceRegistry() *InvoiceRegistry {
	parsed, err := InvoiceRegistryMetaData.ParseABI()
	if err != nil {
		panic(errors.New("invalid ABI: " + err.Error()))
	}
	return &InvoiceRegistry{abi: *parsed}
}

// Instance creates a wrapper for a deployed contract instance at the given address.
// Use this to create the instance object passed to abigen v2 library functions Call, Transact, etc.
func (c *InvoiceRegistry) Instance(backend bind.ContractBackend, addr common.Address) *bind.BoundContract {
	return bind.NewBoundContract(addr, c.abi, backend, backend, backend)
}

// PackConstructor is the Go binding used to pack the parameters required for
// contract deployment.
//
// Solidity: constructor(address admin, address operator) returns()
func (invoiceRegistry *InvoiceRegistry) PackConstructor(admin common.Address, operator common.Address) []byte {
	enc, err := invoiceRegistry.abi.Pack("", admin, operator)
	if err != nil {
		panic(err)
	}
	return enc
}

// PackDEFAULTADMINROLE is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xa217fddf.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function DEFAULT_ADMIN_ROLE() view returns(bytes32)
func (invoiceRegistry *InvoiceRegistry) PackDEFAULTADMINROLE() []byte {
	enc, err := invoiceRegistry.abi.Pack("DEFAULT_ADMIN_ROLE")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackDEFAULTADMINROLE is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xa217fddf.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function DEFAULT_ADMIN_ROLE() view returns(bytes32)
func (invoiceRegistry *InvoiceRegistry) TryPackDEFAULTADMINROLE() ([]byte, error) {
	return invoiceRegistry.abi.Pack("DEFAULT_ADMIN_ROLE")
}

// UnpackDEFAULTADMINROLE is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xa217fddf.
//
// Solidity: function DEFAULT_ADMIN_ROLE() view returns(bytes32)
func (invoiceRegistry *InvoiceRegistry) UnpackDEFAULTADMINROLE(data []byte) ([32]byte, error) {
	out, err := invoiceRegistry.abi.Unpack("DEFAULT_ADMIN_ROLE", data)
	if err != nil {
		return *new([32]byte), err
	}
	out0 := *abi.ConvertType(out[0], new([32]byte)).(*[32]byte)
	return out0, nil
}

// PackOPERATORROLE is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xf5b541a6.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function OPERATOR_ROLE() view returns(bytes32)
func (invoiceRegistry *InvoiceRegistry) PackOPERATORROLE() []byte {
	enc, err := invoiceRegistry.abi.Pack("OPERATOR_ROLE")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackOPERATORROLE is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xf5b541a6.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function OPERATOR_ROLE() view returns(bytes32)
func (invoiceRegistry *InvoiceRegistry) TryPackOPERATORROLE() ([]byte, error) {
	return invoiceRegistry.abi.Pack("OPERATOR_ROLE")
}

// UnpackOPERATORROLE is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xf5b541a6.
//
// Solidity: function OPERATOR_ROLE() view returns(bytes32)
func (invoiceRegistry *InvoiceRegistry) UnpackOPERATORROLE(data []byte) ([32]byte, error) {
	out, err := invoiceRegistry.abi.Unpack("OPERATOR_ROLE", data)
	if err != nil {
		return *new([32]byte), err
	}
	out0 := *abi.ConvertType(out[0], new([32]byte)).(*[32]byte)
	return out0, nil
}

// PackClose is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x6947e4d3.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function close(bytes32[] ids, uint64 expiresAt) returns()
func (invoiceRegistry *InvoiceRegistry) PackClose(ids [][32]byte, expiresAt uint64) []byte {
	enc, err := invoiceRegistry.abi.Pack("close", ids, expiresAt)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackClose is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x6947e4d3.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function close(bytes32[] ids, uint64 expiresAt) returns()
func (invoiceRegistry *InvoiceRegistry) TryPackClose(ids [][32]byte, expiresAt uint64) ([]byte, error) {
	return invoiceRegistry.abi.Pack("close", ids, expiresAt)
}

// PackGetRoleAdmin is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x248a9ca3.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function getRoleAdmin(bytes32 role) view returns(bytes32)
func (invoiceRegistry *InvoiceRegistry) PackGetRoleAdmin(role [32]byte) []byte {
	enc, err := invoiceRegistry.abi.Pack("getRoleAdmin", role)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackGetRoleAdmin is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x248a9ca3.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function getRoleAdmin(bytes32 role) view returns(bytes32)
func (invoiceRegistry *InvoiceRegistry) TryPackGetRoleAdmin(role [32]byte) ([]byte, error) {
	return invoiceRegistry.abi.Pack("getRoleAdmin", role)
}

// UnpackGetRoleAdmin is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x248a9ca3.
//
// Solidity: function getRoleAdmin(bytes32 role) view returns(bytes32)
func (invoiceRegistry *InvoiceRegistry) UnpackGetRoleAdmin(data []byte) ([32]byte, error) {
	out, err := invoiceRegistry.abi.Unpack("getRoleAdmin", data)
	if err != nil {
		return *new([32]byte), err
	}
	out0 := *abi.ConvertType(out[0], new([32]byte)).(*[32]byte)
	return out0, nil
}

// PackGrantRole is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x2f2ff15d.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function grantRole(bytes32 role, address account) returns()
func (invoiceRegistry *InvoiceRegistry) PackGrantRole(role [32]byte, account common.Address) []byte {
	enc, err := invoiceRegistry.abi.Pack("grantRole", role, account)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackGrantRole is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x2f2ff15d.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function grantRole(bytes32 role, address account) returns()
func (invoiceRegistry *InvoiceRegistry) TryPackGrantRole(role [32]byte, account common.Address) ([]byte, error) {
	return invoiceRegistry.abi.Pack("grantRole", role, account)
}

// PackHasRole is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x91d14854.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function hasRole(bytes32 role, address account) view returns(bool)
func (invoiceRegistry *InvoiceRegistry) PackHasRole(role [32]byte, account common.Address) []byte {
	enc, err := invoiceRegistry.abi.Pack("hasRole", role, account)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackHasRole is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x91d14854.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function hasRole(bytes32 role, address account) view returns(bool)
func (invoiceRegistry *InvoiceRegistry) TryPackHasRole(role [32]byte, account common.Address) ([]byte, error) {
	return invoiceRegistry.abi.Pack("hasRole", role, account)
}

// UnpackHasRole is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x91d14854.
//
// Solidity: function hasRole(bytes32 role, address account) view returns(bool)
func (invoiceRegistry *InvoiceRegistry) UnpackHasRole(data []byte) (bool, error) {
	out, err := invoiceRegistry.abi.Unpack("hasRole", data)
	if err != nil {
		return *new(bool), err
	}
	out0 := *abi.ConvertType(out[0], new(bool)).(*bool)
	return out0, nil
}

// PackIdOf is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xb91e9030.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function idOf((address,address,uint256,uint64,bytes32) t) view returns(bytes32)
func (invoiceRegistry *InvoiceRegistry) PackIdOf(t Terms) []byte {
	enc, err := invoiceRegistry.abi.Pack("idOf", t)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackIdOf is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xb91e9030.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function idOf((address,address,uint256,uint64,bytes32) t) view returns(bytes32)
func (invoiceRegistry *InvoiceRegistry) TryPackIdOf(t Terms) ([]byte, error) {
	return invoiceRegistry.abi.Pack("idOf", t)
}

// UnpackIdOf is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xb91e9030.
//
// Solidity: function idOf((address,address,uint256,uint64,bytes32) t) view returns(bytes32)
func (invoiceRegistry *InvoiceRegistry) UnpackIdOf(data []byte) ([32]byte, error) {
	out, err := invoiceRegistry.abi.Unpack("idOf", data)
	if err != nil {
		return *new([32]byte), err
	}
	out0 := *abi.ConvertType(out[0], new([32]byte)).(*[32]byte)
	return out0, nil
}

// PackOpen is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x297e0355.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function open(bytes32[] ids) returns()
func (invoiceRegistry *InvoiceRegistry) PackOpen(ids [][32]byte) []byte {
	enc, err := invoiceRegistry.abi.Pack("open", ids)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackOpen is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x297e0355.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function open(bytes32[] ids) returns()
func (invoiceRegistry *InvoiceRegistry) TryPackOpen(ids [][32]byte) ([]byte, error) {
	return invoiceRegistry.abi.Pack("open", ids)
}

// PackPay is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x50ced1f8.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function pay((address,address,uint256,uint64,bytes32) t) returns()
func (invoiceRegistry *InvoiceRegistry) PackPay(t Terms) []byte {
	enc, err := invoiceRegistry.abi.Pack("pay", t)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackPay is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x50ced1f8.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function pay((address,address,uint256,uint64,bytes32) t) returns()
func (invoiceRegistry *InvoiceRegistry) TryPackPay(t Terms) ([]byte, error) {
	return invoiceRegistry.abi.Pack("pay", t)
}

// PackPayWithAuthorization is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x866fa1f6.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function payWithAuthorization((address,address,uint256,uint64,bytes32) t, address from, uint256 validAfter, uint256 validBefore, uint8 v, bytes32 r, bytes32 s) returns()
func (invoiceRegistry *InvoiceRegistry) PackPayWithAuthorization(t Terms, from common.Address, validAfter *big.Int, validBefore *big.Int, v uint8, r [32]byte, s [32]byte) []byte {
	enc, err := invoiceRegistry.abi.Pack("payWithAuthorization", t, from, validAfter, validBefore, v, r, s)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackPayWithAuthorization is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x866fa1f6.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function payWithAuthorization((address,address,uint256,uint64,bytes32) t, address from, uint256 validAfter, uint256 validBefore, uint8 v, bytes32 r, bytes32 s) returns()
func (invoiceRegistry *InvoiceRegistry) TryPackPayWithAuthorization(t Terms, from common.Address, validAfter *big.Int, validBefore *big.Int, v uint8, r [32]byte, s [32]byte) ([]byte, error) {
	return invoiceRegistry.abi.Pack("payWithAuthorization", t, from, validAfter, validBefore, v, r, s)
}

// PackPayWithPermit is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x8edb56dd.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function payWithPermit((address,address,uint256,uint64,bytes32) t, uint256 deadline, uint8 v, bytes32 r, bytes32 s) returns()
func (invoiceRegistry *InvoiceRegistry) PackPayWithPermit(t Terms, deadline *big.Int, v uint8, r [32]byte, s [32]byte) []byte {
	enc, err := invoiceRegistry.abi.Pack("payWithPermit", t, deadline, v, r, s)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackPayWithPermit is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x8edb56dd.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function payWithPermit((address,address,uint256,uint64,bytes32) t, uint256 deadline, uint8 v, bytes32 r, bytes32 s) returns()
func (invoiceRegistry *InvoiceRegistry) TryPackPayWithPermit(t Terms, deadline *big.Int, v uint8, r [32]byte, s [32]byte) ([]byte, error) {
	return invoiceRegistry.abi.Pack("payWithPermit", t, deadline, v, r, s)
}

// PackRenounceRole is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x36568abe.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function renounceRole(bytes32 role, address callerConfirmation) returns()
func (invoiceRegistry *InvoiceRegistry) PackRenounceRole(role [32]byte, callerConfirmation common.Address) []byte {
	enc, err := invoiceRegistry.abi.Pack("renounceRole", role, callerConfirmation)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackRenounceRole is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x36568abe.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function renounceRole(bytes32 role, address callerConfirmation) returns()
func (invoiceRegistry *InvoiceRegistry) TryPackRenounceRole(role [32]byte, callerConfirmation common.Address) ([]byte, error) {
	return invoiceRegistry.abi.Pack("renounceRole", role, callerConfirmation)
}

// PackRevokeRole is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xd547741f.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function revokeRole(bytes32 role, address account) returns()
func (invoiceRegistry *InvoiceRegistry) PackRevokeRole(role [32]byte, account common.Address) []byte {
	enc, err := invoiceRegistry.abi.Pack("revokeRole", role, account)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackRevokeRole is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xd547741f.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function revokeRole(bytes32 role, address account) returns()
func (invoiceRegistry *InvoiceRegistry) TryPackRevokeRole(role [32]byte, account common.Address) ([]byte, error) {
	return invoiceRegistry.abi.Pack("revokeRole", role, account)
}

// PackStatusOf is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xc7df14e2.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function statusOf(bytes32 id) view returns(uint8)
func (invoiceRegistry *InvoiceRegistry) PackStatusOf(id [32]byte) []byte {
	enc, err := invoiceRegistry.abi.Pack("statusOf", id)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackStatusOf is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xc7df14e2.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function statusOf(bytes32 id) view returns(uint8)
func (invoiceRegistry *InvoiceRegistry) TryPackStatusOf(id [32]byte) ([]byte, error) {
	return invoiceRegistry.abi.Pack("statusOf", id)
}

// UnpackStatusOf is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xc7df14e2.
//
// Solidity: function statusOf(bytes32 id) view returns(uint8)
func (invoiceRegistry *InvoiceRegistry) UnpackStatusOf(data []byte) (uint8, error) {
	out, err := invoiceRegistry.abi.Unpack("statusOf", data)
	if err != nil {
		return *new(uint8), err
	}
	out0 := *abi.ConvertType(out[0], new(uint8)).(*uint8)
	return out0, nil
}

// PackSupportsInterface is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x01ffc9a7.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function supportsInterface(bytes4 interfaceId) view returns(bool)
func (invoiceRegistry *InvoiceRegistry) PackSupportsInterface(interfaceId [4]byte) []byte {
	enc, err := invoiceRegistry.abi.Pack("supportsInterface", interfaceId)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackSupportsInterface is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x01ffc9a7.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function supportsInterface(bytes4 interfaceId) view returns(bool)
func (invoiceRegistry *InvoiceRegistry) TryPackSupportsInterface(interfaceId [4]byte) ([]byte, error) {
	return invoiceRegistry.abi.Pack("supportsInterface", interfaceId)
}

// UnpackSupportsInterface is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x01ffc9a7.
//
// Solidity: function supportsInterface(bytes4 interfaceId) view returns(bool)
func (invoiceRegistry *InvoiceRegistry) UnpackSupportsInterface(data []byte) (bool, error) {
	out, err := invoiceRegistry.abi.Unpack("supportsInterface", data)
	if err != nil {
		return *new(bool), err
	}
	out0 := *abi.ConvertType(out[0], new(bool)).(*bool)
	return out0, nil
}

// InvoiceRegistryClosed represents a Closed event raised by the InvoiceRegistry contract.
type InvoiceRegistryClosed struct {
	Id  [32]byte
	Raw *types.Log // Blockchain specific contextual infos
}

const InvoiceRegistryClosedEventName = "Closed"

// ContractEventName returns the user-defined event name.
func (InvoiceRegistryClosed) ContractEventName() string {
	return InvoiceRegistryClosedEventName
}

// UnpackClosedEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event Closed(bytes32 indexed id)
func (invoiceRegistry *InvoiceRegistry) UnpackClosedEvent(log *types.Log) (*InvoiceRegistryClosed, error) {
	event := "Closed"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != invoiceRegistry.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(InvoiceRegistryClosed)
	if len(log.Data) > 0 {
		if err := invoiceRegistry.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range invoiceRegistry.abi.Events[event].Inputs {
		if arg.Indexed {
			indexed = append(indexed, arg)
		}
	}
	if err := abi.ParseTopics(out, indexed, log.Topics[1:]); err != nil {
		return nil, err
	}
	out.Raw = log
	return out, nil
}

// InvoiceRegistryOpened represents a Opened event raised by the InvoiceRegistry contract.
type InvoiceRegistryOpened struct {
	Id  [32]byte
	Raw *types.Log // Blockchain specific contextual infos
}

const InvoiceRegistryOpenedEventName = "Opened"

// ContractEventName returns the user-defined event name.
func (InvoiceRegistryOpened) ContractEventName() string {
	return InvoiceRegistryOpenedEventName
}

// UnpackOpenedEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event Opened(bytes32 indexed id)
func (invoiceRegistry *InvoiceRegistry) UnpackOpenedEvent(log *types.Log) (*InvoiceRegistryOpened, error) {
	event := "Opened"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != invoiceRegistry.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(InvoiceRegistryOpened)
	if len(log.Data) > 0 {
		if err := invoiceRegistry.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range invoiceRegistry.abi.Events[event].Inputs {
		if arg.Indexed {
			indexed = append(indexed, arg)
		}
	}
	if err := abi.ParseTopics(out, indexed, log.Topics[1:]); err != nil {
		return nil, err
	}
	out.Raw = log
	return out, nil
}

// InvoiceRegistryPaid represents a Paid event raised by the InvoiceRegistry contract.
type InvoiceRegistryPaid struct {
	Id       [32]byte
	Payer    common.Address
	Merchant common.Address
	Token    common.Address
	Amount   *big.Int
	Raw      *types.Log // Blockchain specific contextual infos
}

const InvoiceRegistryPaidEventName = "Paid"

// ContractEventName returns the user-defined event name.
func (InvoiceRegistryPaid) ContractEventName() string {
	return InvoiceRegistryPaidEventName
}

// UnpackPaidEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event Paid(bytes32 indexed id, address indexed payer, address indexed merchant, address token, uint256 amount)
func (invoiceRegistry *InvoiceRegistry) UnpackPaidEvent(log *types.Log) (*InvoiceRegistryPaid, error) {
	event := "Paid"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != invoiceRegistry.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(InvoiceRegistryPaid)
	if len(log.Data) > 0 {
		if err := invoiceRegistry.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range invoiceRegistry.abi.Events[event].Inputs {
		if arg.Indexed {
			indexed = append(indexed, arg)
		}
	}
	if err := abi.ParseTopics(out, indexed, log.Topics[1:]); err != nil {
		return nil, err
	}
	out.Raw = log
	return out, nil
}

// InvoiceRegistryRoleAdminChanged represents a RoleAdminChanged event raised by the InvoiceRegistry contract.
type InvoiceRegistryRoleAdminChanged struct {
	Role              [32]byte
	PreviousAdminRole [32]byte
	NewAdminRole      [32]byte
	Raw               *types.Log // Blockchain specific contextual infos
}

const InvoiceRegistryRoleAdminChangedEventName = "RoleAdminChanged"

// ContractEventName returns the user-defined event name.
func (InvoiceRegistryRoleAdminChanged) ContractEventName() string {
	return InvoiceRegistryRoleAdminChangedEventName
}

// UnpackRoleAdminChangedEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event RoleAdminChanged(bytes32 indexed role, bytes32 indexed previousAdminRole, bytes32 indexed newAdminRole)
func (invoiceRegistry *InvoiceRegistry) UnpackRoleAdminChangedEvent(log *types.Log) (*InvoiceRegistryRoleAdminChanged, error) {
	event := "RoleAdminChanged"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != invoiceRegistry.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(InvoiceRegistryRoleAdminChanged)
	if len(log.Data) > 0 {
		if err := invoiceRegistry.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range invoiceRegistry.abi.Events[event].Inputs {
		if arg.Indexed {
			indexed = append(indexed, arg)
		}
	}
	if err := abi.ParseTopics(out, indexed, log.Topics[1:]); err != nil {
		return nil, err
	}
	out.Raw = log
	return out, nil
}

// InvoiceRegistryRoleGranted represents a RoleGranted event raised by the InvoiceRegistry contract.
type InvoiceRegistryRoleGranted struct {
	Role    [32]byte
	Account common.Address
	Sender  common.Address
	Raw     *types.Log // Blockchain specific contextual infos
}

const InvoiceRegistryRoleGrantedEventName = "RoleGranted"

// ContractEventName returns the user-defined event name.
func (InvoiceRegistryRoleGranted) ContractEventName() string {
	return InvoiceRegistryRoleGrantedEventName
}

// UnpackRoleGrantedEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event RoleGranted(bytes32 indexed role, address indexed account, address indexed sender)
func (invoiceRegistry *InvoiceRegistry) UnpackRoleGrantedEvent(log *types.Log) (*InvoiceRegistryRoleGranted, error) {
	event := "RoleGranted"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != invoiceRegistry.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(InvoiceRegistryRoleGranted)
	if len(log.Data) > 0 {
		if err := invoiceRegistry.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range invoiceRegistry.abi.Events[event].Inputs {
		if arg.Indexed {
			indexed = append(indexed, arg)
		}
	}
	if err := abi.ParseTopics(out, indexed, log.Topics[1:]); err != nil {
		return nil, err
	}
	out.Raw = log
	return out, nil
}

// InvoiceRegistryRoleRevoked represents a RoleRevoked event raised by the InvoiceRegistry contract.
type InvoiceRegistryRoleRevoked struct {
	Role    [32]byte
	Account common.Address
	Sender  common.Address
	Raw     *types.Log // Blockchain specific contextual infos
}

const InvoiceRegistryRoleRevokedEventName = "RoleRevoked"

// ContractEventName returns the user-defined event name.
func (InvoiceRegistryRoleRevoked) ContractEventName() string {
	return InvoiceRegistryRoleRevokedEventName
}

// UnpackRoleRevokedEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event RoleRevoked(bytes32 indexed role, address indexed account, address indexed sender)
func (invoiceRegistry *InvoiceRegistry) UnpackRoleRevokedEvent(log *types.Log) (*InvoiceRegistryRoleRevoked, error) {
	event := "RoleRevoked"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != invoiceRegistry.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(InvoiceRegistryRoleRevoked)
	if len(log.Data) > 0 {
		if err := invoiceRegistry.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range invoiceRegistry.abi.Events[event].Inputs {
		if arg.Indexed {
			indexed = append(indexed, arg)
		}
	}
	if err := abi.ParseTopics(out, indexed, log.Topics[1:]); err != nil {
		return nil, err
	}
	out.Raw = log
	return out, nil
}

// UnpackError attempts to decode the provided error data using user-defined
// error definitions.
func (invoiceRegistry *InvoiceRegistry) UnpackError(raw []byte) (any, error) {
	if bytes.Equal(raw[:4], invoiceRegistry.abi.Errors["AccessControlBadConfirmation"].ID.Bytes()[:4]) {
		return invoiceRegistry.UnpackAccessControlBadConfirmationError(raw[4:])
	}
	if bytes.Equal(raw[:4], invoiceRegistry.abi.Errors["AccessControlUnauthorizedAccount"].ID.Bytes()[:4]) {
		return invoiceRegistry.UnpackAccessControlUnauthorizedAccountError(raw[4:])
	}
	if bytes.Equal(raw[:4], invoiceRegistry.abi.Errors["AlreadyPaid"].ID.Bytes()[:4]) {
		return invoiceRegistry.UnpackAlreadyPaidError(raw[4:])
	}
	if bytes.Equal(raw[:4], invoiceRegistry.abi.Errors["InvoiceClosed"].ID.Bytes()[:4]) {
		return invoiceRegistry.UnpackInvoiceClosedError(raw[4:])
	}
	if bytes.Equal(raw[:4], invoiceRegistry.abi.Errors["InvoiceExpired"].ID.Bytes()[:4]) {
		return invoiceRegistry.UnpackInvoiceExpiredError(raw[4:])
	}
	if bytes.Equal(raw[:4], invoiceRegistry.abi.Errors["ReentrancyGuardReentrantCall"].ID.Bytes()[:4]) {
		return invoiceRegistry.UnpackReentrancyGuardReentrantCallError(raw[4:])
	}
	if bytes.Equal(raw[:4], invoiceRegistry.abi.Errors["SafeERC20FailedOperation"].ID.Bytes()[:4]) {
		return invoiceRegistry.UnpackSafeERC20FailedOperationError(raw[4:])
	}
	if bytes.Equal(raw[:4], invoiceRegistry.abi.Errors["WrongAmountReceived"].ID.Bytes()[:4]) {
		return invoiceRegistry.UnpackWrongAmountReceivedError(raw[4:])
	}
	if bytes.Equal(raw[:4], invoiceRegistry.abi.Errors["ZeroAmount"].ID.Bytes()[:4]) {
		return invoiceRegistry.UnpackZeroAmountError(raw[4:])
	}
	return nil, errors.New("Unknown error")
}

// InvoiceRegistryAccessControlBadConfirmation represents a AccessControlBadConfirmation error raised by the InvoiceRegistry contract.
type InvoiceRegistryAccessControlBadConfirmation struct {
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error AccessControlBadConfirmation()
func InvoiceRegistryAccessControlBadConfirmationErrorID() common.Hash {
	return common.HexToHash("0x6697b23232a647058342c0724fe7c415cab25915b54e5dbc03f233173d37b41c")
}

// UnpackAccessControlBadConfirmationError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error AccessControlBadConfirmation()
func (invoiceRegistry *InvoiceRegistry) UnpackAccessControlBadConfirmationError(raw []byte) (*InvoiceRegistryAccessControlBadConfirmation, error) {
	out := new(InvoiceRegistryAccessControlBadConfirmation)
	if err := invoiceRegistry.abi.UnpackIntoInterface(out, "AccessControlBadConfirmation", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// InvoiceRegistryAccessControlUnauthorizedAccount represents a AccessControlUnauthorizedAccount error raised by the InvoiceRegistry contract.
type InvoiceRegistryAccessControlUnauthorizedAccount struct {
	Account    common.Address
	NeededRole [32]byte
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error AccessControlUnauthorizedAccount(address account, bytes32 neededRole)
func InvoiceRegistryAccessControlUnauthorizedAccountErrorID() common.Hash {
	return common.HexToHash("0xe2517d3fbfae6f8515ef5ff1ccedc3933ab0cbbda0b492c06eb54ad10ef03b3e")
}

// UnpackAccessControlUnauthorizedAccountError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error AccessControlUnauthorizedAccount(address account, bytes32 neededRole)
func (invoiceRegistry *InvoiceRegistry) UnpackAccessControlUnauthorizedAccountError(raw []byte) (*InvoiceRegistryAccessControlUnauthorizedAccount, error) {
	out := new(InvoiceRegistryAccessControlUnauthorizedAccount)
	if err := invoiceRegistry.abi.UnpackIntoInterface(out, "AccessControlUnauthorizedAccount", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// InvoiceRegistryAlreadyPaid represents a AlreadyPaid error raised by the InvoiceRegistry contract.
type InvoiceRegistryAlreadyPaid struct {
	Id [32]byte
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error AlreadyPaid(bytes32 id)
func InvoiceRegistryAlreadyPaidErrorID() common.Hash {
	return common.HexToHash("0xf4b76a0e190620c3521e4dfff16272055d2f85fe92a49677762cbf7ede84fc06")
}

// UnpackAlreadyPaidError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error AlreadyPaid(bytes32 id)
func (invoiceRegistry *InvoiceRegistry) UnpackAlreadyPaidError(raw []byte) (*InvoiceRegistryAlreadyPaid, error) {
	out := new(InvoiceRegistryAlreadyPaid)
	if err := invoiceRegistry.abi.UnpackIntoInterface(out, "AlreadyPaid", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// InvoiceRegistryInvoiceClosed represents a InvoiceClosed error raised by the InvoiceRegistry contract.
type InvoiceRegistryInvoiceClosed struct {
	Id [32]byte
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error InvoiceClosed(bytes32 id)
func InvoiceRegistryInvoiceClosedErrorID() common.Hash {
	return common.HexToHash("0x95cd6fdb0b23cdcff268aad1b32e9dd6bedd403623c87bedccf5216851d97405")
}

// UnpackInvoiceClosedError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error InvoiceClosed(bytes32 id)
func (invoiceRegistry *InvoiceRegistry) UnpackInvoiceClosedError(raw []byte) (*InvoiceRegistryInvoiceClosed, error) {
	out := new(InvoiceRegistryInvoiceClosed)
	if err := invoiceRegistry.abi.UnpackIntoInterface(out, "InvoiceClosed", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// InvoiceRegistryInvoiceExpired represents a InvoiceExpired error raised by the InvoiceRegistry contract.
type InvoiceRegistryInvoiceExpired struct {
	Id        [32]byte
	ExpiresAt uint64
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error InvoiceExpired(bytes32 id, uint64 expiresAt)
func InvoiceRegistryInvoiceExpiredErrorID() common.Hash {
	return common.HexToHash("0x5a38ffeb276414d4f3c134edbd37495eb680f304ecf0d9f0c2f7159405a59478")
}

// UnpackInvoiceExpiredError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error InvoiceExpired(bytes32 id, uint64 expiresAt)
func (invoiceRegistry *InvoiceRegistry) UnpackInvoiceExpiredError(raw []byte) (*InvoiceRegistryInvoiceExpired, error) {
	out := new(InvoiceRegistryInvoiceExpired)
	if err := invoiceRegistry.abi.UnpackIntoInterface(out, "InvoiceExpired", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// InvoiceRegistryReentrancyGuardReentrantCall represents a ReentrancyGuardReentrantCall error raised by the InvoiceRegistry contract.
type InvoiceRegistryReentrancyGuardReentrantCall struct {
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error ReentrancyGuardReentrantCall()
func InvoiceRegistryReentrancyGuardReentrantCallErrorID() common.Hash {
	return common.HexToHash("0x3ee5aeb571de7fc460830b4d0017439a1ca56fb0bc39062227ade4fe4a24c1ca")
}

// UnpackReentrancyGuardReentrantCallError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error ReentrancyGuardReentrantCall()
func (invoiceRegistry *InvoiceRegistry) UnpackReentrancyGuardReentrantCallError(raw []byte) (*InvoiceRegistryReentrancyGuardReentrantCall, error) {
	out := new(InvoiceRegistryReentrancyGuardReentrantCall)
	if err := invoiceRegistry.abi.UnpackIntoInterface(out, "ReentrancyGuardReentrantCall", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// InvoiceRegistrySafeERC20FailedOperation represents a SafeERC20FailedOperation error raised by the InvoiceRegistry contract.
type InvoiceRegistrySafeERC20FailedOperation struct {
	Token common.Address
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error SafeERC20FailedOperation(address token)
func InvoiceRegistrySafeERC20FailedOperationErrorID() common.Hash {
	return common.HexToHash("0x5274afe73c98b4749fc91ffae6b7b574e7842cb2144a159e9377a5f20b32edf9")
}

// UnpackSafeERC20FailedOperationError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error SafeERC20FailedOperation(address token)
func (invoiceRegistry *InvoiceRegistry) UnpackSafeERC20FailedOperationError(raw []byte) (*InvoiceRegistrySafeERC20FailedOperation, error) {
	out := new(InvoiceRegistrySafeERC20FailedOperation)
	if err := invoiceRegistry.abi.UnpackIntoInterface(out, "SafeERC20FailedOperation", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// InvoiceRegistryWrongAmountReceived represents a WrongAmountReceived error raised by the InvoiceRegistry contract.
type InvoiceRegistryWrongAmountReceived struct {
	BalanceBefore *big.Int
	BalanceAfter  *big.Int
	Amount        *big.Int
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error WrongAmountReceived(uint256 balanceBefore, uint256 balanceAfter, uint256 amount)
func InvoiceRegistryWrongAmountReceivedErrorID() common.Hash {
	return common.HexToHash("0x5965d9cc014c10fbd671c831f867bc1f507a45bbfd0af380e4c8e11548bee043")
}

// UnpackWrongAmountReceivedError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error WrongAmountReceived(uint256 balanceBefore, uint256 balanceAfter, uint256 amount)
func (invoiceRegistry *InvoiceRegistry) UnpackWrongAmountReceivedError(raw []byte) (*InvoiceRegistryWrongAmountReceived, error) {
	out := new(InvoiceRegistryWrongAmountReceived)
	if err := invoiceRegistry.abi.UnpackIntoInterface(out, "WrongAmountReceived", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// InvoiceRegistryZeroAmount represents a ZeroAmount error raised by the InvoiceRegistry contract.
type InvoiceRegistryZeroAmount struct {
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error ZeroAmount()
func InvoiceRegistryZeroAmountErrorID() common.Hash {
	return common.HexToHash("0x1f2a2005cb66a8e145327e8814e243a0996aec9bfe1e15a495778b1236dbd485")
}

// UnpackZeroAmountError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error ZeroAmount()
func (invoiceRegistry *InvoiceRegistry) UnpackZeroAmountError(raw []byte) (*InvoiceRegistryZeroAmount, error) {
	out := new(InvoiceRegistryZeroAmount)
	if err := invoiceRegistry.abi.UnpackIntoInterface(out, "ZeroAmount", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// TestUSDCMetaData contains all meta data concerning the TestUSDC contract.
var TestUSDCMetaData = bind.MetaData{
	ABI: "[{\"inputs\":[{\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"}],\"stateMutability\":\"nonpayable\",\"type\":\"constructor\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"validBefore\",\"type\":\"uint256\"}],\"name\":\"AuthorizationExpired\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"validAfter\",\"type\":\"uint256\"}],\"name\":\"AuthorizationNotYetValid\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"authorizer\",\"type\":\"address\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"}],\"name\":\"AuthorizationUsedOrCanceled\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"caller\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"payee\",\"type\":\"address\"}],\"name\":\"CallerMustBePayee\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"allowance\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"needed\",\"type\":\"uint256\"}],\"name\":\"ERC20InsufficientAllowance\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"sender\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"balance\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"needed\",\"type\":\"uint256\"}],\"name\":\"ERC20InsufficientBalance\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"approver\",\"type\":\"address\"}],\"name\":\"ERC20InvalidApprover\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"receiver\",\"type\":\"address\"}],\"name\":\"ERC20InvalidReceiver\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"sender\",\"type\":\"address\"}],\"name\":\"ERC20InvalidSender\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"}],\"name\":\"ERC20InvalidSpender\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"account\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"currentNonce\",\"type\":\"uint256\"}],\"name\":\"InvalidAccountNonce\",\"type\":\"error\"},{\"inputs\":[],\"name\":\"InvalidShortString\",\"type\":\"error\"},{\"inputs\":[],\"name\":\"InvalidSignature\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"}],\"name\":\"OwnableInvalidOwner\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"account\",\"type\":\"address\"}],\"name\":\"OwnableUnauthorizedAccount\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"deadline\",\"type\":\"uint256\"}],\"name\":\"PermitExpired\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"string\",\"name\":\"str\",\"type\":\"string\"}],\"name\":\"StringTooLong\",\"type\":\"error\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"Approval\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"authorizer\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"}],\"name\":\"AuthorizationCanceled\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"authorizer\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"}],\"name\":\"AuthorizationUsed\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[],\"name\":\"EIP712DomainChanged\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"previousOwner\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"newOwner\",\"type\":\"address\"}],\"name\":\"OwnershipTransferred\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"Transfer\",\"type\":\"event\"},{\"inputs\":[],\"name\":\"CANCEL_AUTHORIZATION_TYPEHASH\",\"outputs\":[{\"internalType\":\"bytes32\",\"name\":\"\",\"type\":\"bytes32\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"DOMAIN_SEPARATOR\",\"outputs\":[{\"internalType\":\"bytes32\",\"name\":\"\",\"type\":\"bytes32\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"PERMIT_TYPEHASH\",\"outputs\":[{\"internalType\":\"bytes32\",\"name\":\"\",\"type\":\"bytes32\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"RECEIVE_WITH_AUTHORIZATION_TYPEHASH\",\"outputs\":[{\"internalType\":\"bytes32\",\"name\":\"\",\"type\":\"bytes32\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"TRANSFER_WITH_AUTHORIZATION_TYPEHASH\",\"outputs\":[{\"internalType\":\"bytes32\",\"name\":\"\",\"type\":\"bytes32\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"}],\"name\":\"allowance\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"approve\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"authorizer\",\"type\":\"address\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"}],\"name\":\"authorizationState\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"account\",\"type\":\"address\"}],\"name\":\"balanceOf\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"authorizer\",\"type\":\"address\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"},{\"internalType\":\"uint8\",\"name\":\"v\",\"type\":\"uint8\"},{\"internalType\":\"bytes32\",\"name\":\"r\",\"type\":\"bytes32\"},{\"internalType\":\"bytes32\",\"name\":\"s\",\"type\":\"bytes32\"}],\"name\":\"cancelAuthorization\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"authorizer\",\"type\":\"address\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"},{\"internalType\":\"bytes\",\"name\":\"signature\",\"type\":\"bytes\"}],\"name\":\"cancelAuthorization\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"decimals\",\"outputs\":[{\"internalType\":\"uint8\",\"name\":\"\",\"type\":\"uint8\"}],\"stateMutability\":\"pure\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"eip712Domain\",\"outputs\":[{\"internalType\":\"bytes1\",\"name\":\"fields\",\"type\":\"bytes1\"},{\"internalType\":\"string\",\"name\":\"name\",\"type\":\"string\"},{\"internalType\":\"string\",\"name\":\"version\",\"type\":\"string\"},{\"internalType\":\"uint256\",\"name\":\"chainId\",\"type\":\"uint256\"},{\"internalType\":\"address\",\"name\":\"verifyingContract\",\"type\":\"address\"},{\"internalType\":\"bytes32\",\"name\":\"salt\",\"type\":\"bytes32\"},{\"internalType\":\"uint256[]\",\"name\":\"extensions\",\"type\":\"uint256[]\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"amount\",\"type\":\"uint256\"}],\"name\":\"mint\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"name\",\"outputs\":[{\"internalType\":\"string\",\"name\":\"\",\"type\":\"string\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"}],\"name\":\"nonces\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"owner\",\"outputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"deadline\",\"type\":\"uint256\"},{\"internalType\":\"bytes\",\"name\":\"signature\",\"type\":\"bytes\"}],\"name\":\"permit\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"deadline\",\"type\":\"uint256\"},{\"internalType\":\"uint8\",\"name\":\"v\",\"type\":\"uint8\"},{\"internalType\":\"bytes32\",\"name\":\"r\",\"type\":\"bytes32\"},{\"internalType\":\"bytes32\",\"name\":\"s\",\"type\":\"bytes32\"}],\"name\":\"permit\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validAfter\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validBefore\",\"type\":\"uint256\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"},{\"internalType\":\"bytes\",\"name\":\"signature\",\"type\":\"bytes\"}],\"name\":\"receiveWithAuthorization\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validAfter\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validBefore\",\"type\":\"uint256\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"},{\"internalType\":\"uint8\",\"name\":\"v\",\"type\":\"uint8\"},{\"internalType\":\"bytes32\",\"name\":\"r\",\"type\":\"bytes32\"},{\"internalType\":\"bytes32\",\"name\":\"s\",\"type\":\"bytes32\"}],\"name\":\"receiveWithAuthorization\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"renounceOwnership\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"symbol\",\"outputs\":[{\"internalType\":\"string\",\"name\":\"\",\"type\":\"string\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"totalSupply\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"transfer\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"transferFrom\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"newOwner\",\"type\":\"address\"}],\"name\":\"transferOwnership\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validAfter\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validBefore\",\"type\":\"uint256\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"},{\"internalType\":\"bytes\",\"name\":\"signature\",\"type\":\"bytes\"}],\"name\":\"transferWithAuthorization\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validAfter\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validBefore\",\"type\":\"uint256\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"},{\"internalType\":\"uint8\",\"name\":\"v\",\"type\":\"uint8\"},{\"internalType\":\"bytes32\",\"name\":\"r\",\"type\":\"bytes32\"},{\"internalType\":\"bytes32\",\"name\":\"s\",\"type\":\"bytes32\"}],\"name\":\"transferWithAuthorization\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"version\",\"outputs\":[{\"internalType\":\"string\",\"name\":\"\",\"type\":\"string\"}],\"stateMutability\":\"pure\",\"type\":\"function\"}]",
	ID:  "TestUSDC",
	Bin: "0x610160604052348015610010575f5ffd5b50604051611e77380380611e7783398101604081905261002f91610245565b80604051806040016040528060088152602001672aa9a21021b7b4b760c11b815250604051806040016040528060018152602001601960f91b815250604051806040016040528060088152602001672aa9a21021b7b4b760c11b815250604051806040016040528060048152602001635553444360e01b81525081600390816100b89190610315565b5060046100c58282610315565b5050506100d7826101b760201b60201c565b610120526100e4816101b7565b61014052815160208084019190912060e052815190820120610100524660a05261017060e05161010051604080517f8b73c3c69bb8fe3d512ecc4cf759cc79239f7b179b0ffacaa9a75d522b39400f60208201529081019290925260608201524660808201523060a08201525f9060c00160405160208183030381529060405280519060200120905090565b60805250503060c0526001600160a01b0381166101a757604051631e4fbdf760e01b81525f60048201526024015b60405180910390fd5b6101b0816101f4565b505061042b565b5f5f829050601f815111156101e1578260405163305a27a960e01b815260040161019e91906103d3565b80516101ec82610408565b179392505050565b600880546001600160a01b038381166001600160a01b0319831681179093556040519116919082907f8be0079c531659141344cd1fd0a4f28419497f9722a3daafe3b4186f6b6457e0905f90a35050565b5f60208284031215610255575f5ffd5b81516001600160a01b038116811461026b575f5ffd5b9392505050565b634e487b7160e01b5f52604160045260245ffd5b600181811c9082168061029a57607f821691505b6020821081036102b857634e487b7160e01b5f52602260045260245ffd5b50919050565b601f821115610310578282111561031057805f5260205f20601f840160051c60208510156102e957505f5b90810190601f840160051c035f5b8181101561030c575f838201556001016102f7565b5050505b505050565b81516001600160401b0381111561032e5761032e610272565b6103428161033c8454610286565b846102be565b6020601f821160018114610374575f831561035d5750848201515b5f19600385901b1c1916600184901b1784556103cc565b5f84815260208120601f198516915b828110156103a35787850151825560209485019460019092019101610383565b50848210156103c057868401515f19600387901b60f8161c191681555b505060018360011b0184555b5050505050565b602081525f82518060208401528060208501604085015e5f604082850101526040601f19601f83011684010191505092915050565b805160208083015191908110156102b8575f1960209190910360031b1b16919050565b60805160a05160c05160e0516101005161012051610140516119fb61047c5f395f610da901525f610d7e01525f610c4401525f610c1c01525f610b7701525f610ba101525f610bcb01526119fb5ff3fe608060405234801561000f575f5ffd5b50600436106101d1575f3560e01c806388b7ab63116100fe578063cf0929951161009e578063e3ee160e1161006e578063e3ee160e1461048f578063e94a0102146104a2578063ef55bec6146104cf578063f2fde38b146104e2575f5ffd5b8063cf0929951461040a578063d505accf1461041d578063d916948714610430578063dd62ed3e14610457575f5ffd5b80639fd5a6cf116100d95780639fd5a6cf146103aa578063a0cc6a68146103bd578063a9059cbb146103e4578063b7b72899146103f7575f5ffd5b806388b7ab63146103745780638da5cb5b1461038757806395d89b41146103a2575f5ffd5b806340c10f1911610174578063715018a611610144578063715018a6146103025780637ecebe001461030a5780637f2eecc31461033257806384b0196e14610359575f5ffd5b806340c10f191461027957806354fd4d501461028e5780635a049a70146102c757806370a08231146102da575f5ffd5b806323b872dd116101af57806323b872dd1461022857806330adf81f1461023b578063313ce567146102625780633644e51514610271575f5ffd5b806306fdde03146101d5578063095ea7b3146101f357806318160ddd14610216575b5f5ffd5b6101dd6104f5565b6040516101ea9190611504565b60405180910390f35b610206610201366004611531565b610585565b60405190151581526020016101ea565b6002545b6040519081526020016101ea565b610206610236366004611559565b61059e565b61021a7f6e71edae12b1b97f4d1f60370fef10105fa2faae0126114a169c64845d6126c981565b604051600681526020016101ea565b61021a6105c3565b61028c610287366004611531565b6105d1565b005b60408051808201909152600181527f320000000000000000000000000000000000000000000000000000000000000060208201526101dd565b61028c6102d53660046115a3565b6105e7565b61021a6102e83660046115ed565b6001600160a01b03165f9081526020819052604090205490565b61028c610632565b61021a6103183660046115ed565b6001600160a01b03165f9081526007602052604090205490565b61021a7fd099cc98ef71107a616c4f0f941f04c322d8e254fe26b3c6668db87aae413de881565b610361610645565b6040516101ea9796959493929190611606565b61028c61038236600461173f565b6106a3565b6008546040516001600160a01b0390911681526020016101ea565b6101dd610734565b61028c6103b83660046117be565b610743565b61021a7f7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a226781565b6102066103f2366004611531565b61082e565b61028c61040536600461182b565b61083b565b61028c61041836600461173f565b6108cf565b61028c61042b36600461187e565b6108ff565b61021a7f158b0a9edf7a828aad02f63cd515c68ef2f50ba807396f6d12842833a159742981565b61021a6104653660046118e4565b6001600160a01b039182165f90815260016020908152604080832093909416825291909152205490565b61028c61049d366004611915565b61094d565b6102066104b0366004611531565b600960209081525f928352604080842090915290825290205460ff1681565b61028c6104dd366004611915565b6109a8565b61028c6104f03660046115ed565b6109f8565b60606003805461050490611990565b80601f016020809104026020016040519081016040528092919081815260200182805461053090611990565b801561057b5780601f106105525761010080835404028352916020019161057b565b820191905f5260205f20905b81548152906001019060200180831161055e57829003601f168201915b5050505050905090565b5f33610592818585610a4e565b60019150505b92915050565b5f336105ab858285610a60565b6105b6858585610af5565b60019150505b9392505050565b5f6105cc610b6b565b905090565b6105d9610c94565b6105e38282610cda565b5050565b60408051602081018490529081018290526001600160f81b031960f885901b16606082015261062b908690869060610160405160208183030381529060405261083b565b5050505050565b61063a610c94565b6106435f610d0e565b565b5f6060805f5f5f6060610656610d77565b61065e610da2565b604080515f808252602082019092527f0f000000000000000000000000000000000000000000000000000000000000009b939a50919850469750309650945092509050565b336001600160a01b038716146106fb576040517f1c5939f30000000000000000000000000000000000000000000000000000000081523360048201526001600160a01b03871660248201526044015b60405180910390fd5b61072b7fd099cc98ef71107a616c4f0f941f04c322d8e254fe26b3c6668db87aae413de888888888888888610dcd565b50505050505050565b60606004805461050490611990565b81421115610780576040517f9e96b26f000000000000000000000000000000000000000000000000000000008152600481018390526024016106f2565b610823857f6e71edae12b1b97f4d1f60370fef10105fa2faae0126114a169c64845d6126c98787876107ce8b6001600160a01b03165f90815260076020526040902080546001810190915590565b6040805160208101969096526001600160a01b0394851690860152929091166060840152608083015260a082015260c0810185905260e0015b6040516020818303038152906040528051906020012083610ee9565b61062b858585610a4e565b5f33610592818585610af5565b6108458383610f32565b604080517f158b0a9edf7a828aad02f63cd515c68ef2f50ba807396f6d12842833a159742960208201526001600160a01b0385169181019190915260608101839052610895908490608001610807565b60405182906001600160a01b038516907f1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81905f90a3505050565b61072b7f7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a226788888888888888610dcd565b61072b8787878786868960405160200161093993929190928352602083019190915260f81b6001600160f81b031916604082015260410190565b604051602081830303815290604052610743565b61099d89898989898988888b60405160200161098993929190928352602083019190915260f81b6001600160f81b031916604082015260410190565b6040516020818303038152906040526108cf565b505050505050505050565b61099d89898989898988888b6040516020016109e493929190928352602083019190915260f81b6001600160f81b031916604082015260410190565b6040516020818303038152906040526106a3565b610a00610c94565b6001600160a01b038116610a42576040517f1e4fbdf70000000000000000000000000000000000000000000000000000000081525f60048201526024016106f2565b610a4b81610d0e565b50565b610a5b8383836001610fd0565b505050565b6001600160a01b038381165f908152600160209081526040808320938616835292905220545f19811015610aef5781811015610ae1576040517ffb8f41b20000000000000000000000000000000000000000000000000000000081526001600160a01b038416600482015260248101829052604481018390526064016106f2565b610aef84848484035f610fd0565b50505050565b6001600160a01b038316610b37576040517f96c6fd1e0000000000000000000000000000000000000000000000000000000081525f60048201526024016106f2565b6001600160a01b038216610b605760405163ec442f0560e01b81525f60048201526024016106f2565b610a5b8383836110d4565b5f306001600160a01b037f000000000000000000000000000000000000000000000000000000000000000016148015610bc357507f000000000000000000000000000000000000000000000000000000000000000046145b15610bed57507f000000000000000000000000000000000000000000000000000000000000000090565b6105cc604080517f8b73c3c69bb8fe3d512ecc4cf759cc79239f7b179b0ffacaa9a75d522b39400f60208201527f0000000000000000000000000000000000000000000000000000000000000000918101919091527f000000000000000000000000000000000000000000000000000000000000000060608201524660808201523060a08201525f9060c00160405160208183030381529060405280519060200120905090565b6008546001600160a01b03163314610643576040517f118cdaa70000000000000000000000000000000000000000000000000000000081523360048201526024016106f2565b6001600160a01b038216610d035760405163ec442f0560e01b81525f60048201526024016106f2565b6105e35f83836110d4565b600880546001600160a01b038381167fffffffffffffffffffffffff0000000000000000000000000000000000000000831681179093556040519116919082907f8be0079c531659141344cd1fd0a4f28419497f9722a3daafe3b4186f6b6457e0905f90a35050565b60606105cc7f0000000000000000000000000000000000000000000000000000000000000000611213565b60606105cc7f0000000000000000000000000000000000000000000000000000000000000000611213565b834211610e09576040517f7a4df079000000000000000000000000000000000000000000000000000000008152600481018590526024016106f2565b824210610e45576040517f3d91b05f000000000000000000000000000000000000000000000000000000008152600481018490526024016106f2565b610e4f8783610f32565b60408051602081018a90526001600160a01b03808a169282019290925290871660608201526080810186905260a0810185905260c0810184905260e08101839052610e9f90889061010001610807565b60405182906001600160a01b038916907f98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5905f90a3610edf878787610af5565b5050505050505050565b610efc83610ef684611250565b83611297565b610a5b576040517f8baa579f00000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b6001600160a01b0382165f90815260096020908152604080832084845290915290205460ff1615610fa1576040517f8ef82f7f0000000000000000000000000000000000000000000000000000000081526001600160a01b0383166004820152602481018290526044016106f2565b6001600160a01b039091165f90815260096020908152604080832093835292905220805460ff19166001179055565b6001600160a01b038416611012576040517fe602df050000000000000000000000000000000000000000000000000000000081525f60048201526024016106f2565b6001600160a01b038316611054576040517f94280d620000000000000000000000000000000000000000000000000000000081525f60048201526024016106f2565b6001600160a01b038085165f9081526001602090815260408083209387168352929052208290558015610aef57826001600160a01b0316846001600160a01b03167f8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925846040516110c691815260200190565b60405180910390a350505050565b6001600160a01b0383166110fe578060025f8282546110f391906119c8565b909155506111879050565b6001600160a01b0383165f9081526020819052604090205481811015611169576040517fe450d38c0000000000000000000000000000000000000000000000000000000081526001600160a01b038516600482015260248101829052604481018390526064016106f2565b6001600160a01b0384165f9081526020819052604090209082900390555b6001600160a01b0382166111a3576002805482900390556111c1565b6001600160a01b0382165f9081526020819052604090208054820190555b816001600160a01b0316836001600160a01b03167fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef8360405161120691815260200190565b60405180910390a3505050565b60605f61121f83611307565b6040805160208082528183019092529192505f91906020820181803683375050509182525060208101929092525090565b5f61059861125c610b6b565b836040517f19010000000000000000000000000000000000000000000000000000000000008152600281019290925260228201526042902090565b5f836001600160a01b03163b5f036112f5575f5f6112b58585611347565b5090925090505f8160038111156112ce576112ce6119e7565b1480156112ec5750856001600160a01b0316826001600160a01b0316145b925050506105bc565b611300848484611390565b90506105bc565b5f60ff8216601f811115610598576040517fb3512b0c00000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b5f5f5f835160410361137e576020840151604085015160608601515f1a6113708882858561140e565b955095509550505050611389565b505081515f91506002905b9250925092565b8051604080517f1626ba7e000000000000000000000000000000000000000000000000000000008082526004820186905260248201929092525f92906020820185604483015e5f82606483010152601f820160051c60051b915060205f60648401838a5afa9050825f5114601f3d1116811693505050509392505050565b5f80807f7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a084111561144757505f915060039050826114cc565b604080515f808252602082018084528a905260ff891692820192909252606081018790526080810186905260019060a0016020604051602081039080840390855afa158015611498573d5f5f3e3d5ffd5b5050604051601f1901519150506001600160a01b0381166114c357505f9250600191508290506114cc565b92505f91508190505b9450945094915050565b5f81518084528060208401602086015e5f602082860101526020601f19601f83011685010191505092915050565b602081525f6105bc60208301846114d6565b80356001600160a01b038116811461152c575f5ffd5b919050565b5f5f60408385031215611542575f5ffd5b61154b83611516565b946020939093013593505050565b5f5f5f6060848603121561156b575f5ffd5b61157484611516565b925061158260208501611516565b929592945050506040919091013590565b803560ff8116811461152c575f5ffd5b5f5f5f5f5f60a086880312156115b7575f5ffd5b6115c086611516565b9450602086013593506115d560408701611593565b94979396509394606081013594506080013592915050565b5f602082840312156115fd575f5ffd5b6105bc82611516565b6001600160f81b03198816815260e060208201525f61162860e08301896114d6565b828103604084015261163a81896114d6565b606084018890526001600160a01b038716608085015260a0840186905283810360c0850152845180825260208087019350909101905f5b8181101561168f578351835260209384019390920191600101611671565b50909b9a5050505050505050505050565b634e487b7160e01b5f52604160045260245ffd5b5f82601f8301126116c3575f5ffd5b813567ffffffffffffffff8111156116dd576116dd6116a0565b604051601f8201601f19908116603f0116810167ffffffffffffffff8111828210171561170c5761170c6116a0565b604052818152838201602001851015611723575f5ffd5b816020850160208301375f918101602001919091529392505050565b5f5f5f5f5f5f5f60e0888a031215611755575f5ffd5b61175e88611516565b965061176c60208901611516565b955060408801359450606088013593506080880135925060a0880135915060c088013567ffffffffffffffff8111156117a3575f5ffd5b6117af8a828b016116b4565b91505092959891949750929550565b5f5f5f5f5f60a086880312156117d2575f5ffd5b6117db86611516565b94506117e960208701611516565b93506040860135925060608601359150608086013567ffffffffffffffff811115611812575f5ffd5b61181e888289016116b4565b9150509295509295909350565b5f5f5f6060848603121561183d575f5ffd5b61184684611516565b925060208401359150604084013567ffffffffffffffff811115611868575f5ffd5b611874868287016116b4565b9150509250925092565b5f5f5f5f5f5f5f60e0888a031215611894575f5ffd5b61189d88611516565b96506118ab60208901611516565b955060408801359450606088013593506118c760808901611593565b9699959850939692959460a0840135945060c09093013592915050565b5f5f604083850312156118f5575f5ffd5b6118fe83611516565b915061190c60208401611516565b90509250929050565b5f5f5f5f5f5f5f5f5f6101208a8c03121561192e575f5ffd5b6119378a611516565b985061194560208b01611516565b975060408a0135965060608a0135955060808a0135945060a08a0135935061196f60c08b01611593565b989b979a50959894979396929550929360e081013593506101000135919050565b600181811c908216806119a457607f821691505b6020821081036119c257634e487b7160e01b5f52602260045260245ffd5b50919050565b8082018082111561059857634e487b7160e01b5f52601160045260245ffd5b634e487b7160e01b5f52602160045260245ffd",
}

// TestUSDC is an auto generated Go binding around an Ethereum contract.
type TestUSDC struct {
	abi abi.ABI
}

// GetABI returns the ABI associated with this contract binding.
func (c *TestUSDC) GetABI() abi.ABI {
	return c.abi
}

// NewTestUSDC creates a new instance of TestUSDC.
func NewTestUSDC() *TestUSDC {
	parsed, err := TestUSDCMetaData.ParseABI()
	if err != nil {
		panic(errors.New("invalid ABI: " + err.Error()))
	}
	return &TestUSDC{abi: *parsed}
}

// Instance creates a wrapper for a deployed contract instance at the given address.
// Use this to create the instance object passed to abigen v2 library functions Call, Transact, etc.
func (c *TestUSDC) Instance(backend bind.ContractBackend, addr common.Address) *bind.BoundContract {
	return bind.NewBoundContract(addr, c.abi, backend, backend, backend)
}

// PackConstructor is the Go binding used to pack the parameters required for
// contract deployment.
//
// Solidity: constructor(address owner) returns()
func (testUSDC *TestUSDC) PackConstructor(owner common.Address) []byte {
	enc, err := testUSDC.abi.Pack("", owner)
	if err != nil {
		panic(err)
	}
	return enc
}

// PackCANCELAUTHORIZATIONTYPEHASH is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xd9169487.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function CANCEL_AUTHORIZATION_TYPEHASH() view returns(bytes32)
func (testUSDC *TestUSDC) PackCANCELAUTHORIZATIONTYPEHASH() []byte {
	enc, err := testUSDC.abi.Pack("CANCEL_AUTHORIZATION_TYPEHASH")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackCANCELAUTHORIZATIONTYPEHASH is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xd9169487.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function CANCEL_AUTHORIZATION_TYPEHASH() view returns(bytes32)
func (testUSDC *TestUSDC) TryPackCANCELAUTHORIZATIONTYPEHASH() ([]byte, error) {
	return testUSDC.abi.Pack("CANCEL_AUTHORIZATION_TYPEHASH")
}

// UnpackCANCELAUTHORIZATIONTYPEHASH is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xd9169487.
//
// Solidity: function CANCEL_AUTHORIZATION_TYPEHASH() view returns(bytes32)
func (testUSDC *TestUSDC) UnpackCANCELAUTHORIZATIONTYPEHASH(data []byte) ([32]byte, error) {
	out, err := testUSDC.abi.Unpack("CANCEL_AUTHORIZATION_TYPEHASH", data)
	if err != nil {
		return *new([32]byte), err
	}
	out0 := *abi.ConvertType(out[0], new([32]byte)).(*[32]byte)
	return out0, nil
}

// PackDOMAINSEPARATOR is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x3644e515.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function DOMAIN_SEPARATOR() view returns(bytes32)
func (testUSDC *TestUSDC) PackDOMAINSEPARATOR() []byte {
	enc, err := testUSDC.abi.Pack("DOMAIN_SEPARATOR")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackDOMAINSEPARATOR is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x3644e515.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function DOMAIN_SEPARATOR() view returns(bytes32)
func (testUSDC *TestUSDC) TryPackDOMAINSEPARATOR() ([]byte, error) {
	return testUSDC.abi.Pack("DOMAIN_SEPARATOR")
}

// UnpackDOMAINSEPARATOR is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x3644e515.
//
// Solidity: function DOMAIN_SEPARATOR() view returns(bytes32)
func (testUSDC *TestUSDC) UnpackDOMAINSEPARATOR(data []byte) ([32]byte, error) {
	out, err := testUSDC.abi.Unpack("DOMAIN_SEPARATOR", data)
	if err != nil {
		return *new([32]byte), err
	}
	out0 := *abi.ConvertType(out[0], new([32]byte)).(*[32]byte)
	return out0, nil
}

// PackPERMITTYPEHASH is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x30adf81f.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function PERMIT_TYPEHASH() view returns(bytes32)
func (testUSDC *TestUSDC) PackPERMITTYPEHASH() []byte {
	enc, err := testUSDC.abi.Pack("PERMIT_TYPEHASH")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackPERMITTYPEHASH is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x30adf81f.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function PERMIT_TYPEHASH() view returns(bytes32)
func (testUSDC *TestUSDC) TryPackPERMITTYPEHASH() ([]byte, error) {
	return testUSDC.abi.Pack("PERMIT_TYPEHASH")
}

// UnpackPERMITTYPEHASH is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x30adf81f.
//
// Solidity: function PERMIT_TYPEHASH() view returns(bytes32)
func (testUSDC *TestUSDC) UnpackPERMITTYPEHASH(data []byte) ([32]byte, error) {
	out, err := testUSDC.abi.Unpack("PERMIT_TYPEHASH", data)
	if err != nil {
		return *new([32]byte), err
	}
	out0 := *abi.ConvertType(out[0], new([32]byte)).(*[32]byte)
	return out0, nil
}

// PackRECEIVEWITHAUTHORIZATIONTYPEHASH is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x7f2eecc3.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function RECEIVE_WITH_AUTHORIZATION_TYPEHASH() view returns(bytes32)
func (testUSDC *TestUSDC) PackRECEIVEWITHAUTHORIZATIONTYPEHASH() []byte {
	enc, err := testUSDC.abi.Pack("RECEIVE_WITH_AUTHORIZATION_TYPEHASH")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackRECEIVEWITHAUTHORIZATIONTYPEHASH is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x7f2eecc3.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function RECEIVE_WITH_AUTHORIZATION_TYPEHASH() view returns(bytes32)
func (testUSDC *TestUSDC) TryPackRECEIVEWITHAUTHORIZATIONTYPEHASH() ([]byte, error) {
	return testUSDC.abi.Pack("RECEIVE_WITH_AUTHORIZATION_TYPEHASH")
}

// UnpackRECEIVEWITHAUTHORIZATIONTYPEHASH is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x7f2eecc3.
//
// Solidity: function RECEIVE_WITH_AUTHORIZATION_TYPEHASH() view returns(bytes32)
func (testUSDC *TestUSDC) UnpackRECEIVEWITHAUTHORIZATIONTYPEHASH(data []byte) ([32]byte, error) {
	out, err := testUSDC.abi.Unpack("RECEIVE_WITH_AUTHORIZATION_TYPEHASH", data)
	if err != nil {
		return *new([32]byte), err
	}
	out0 := *abi.ConvertType(out[0], new([32]byte)).(*[32]byte)
	return out0, nil
}

// PackTRANSFERWITHAUTHORIZATIONTYPEHASH is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xa0cc6a68.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function TRANSFER_WITH_AUTHORIZATION_TYPEHASH() view returns(bytes32)
func (testUSDC *TestUSDC) PackTRANSFERWITHAUTHORIZATIONTYPEHASH() []byte {
	enc, err := testUSDC.abi.Pack("TRANSFER_WITH_AUTHORIZATION_TYPEHASH")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackTRANSFERWITHAUTHORIZATIONTYPEHASH is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xa0cc6a68.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function TRANSFER_WITH_AUTHORIZATION_TYPEHASH() view returns(bytes32)
func (testUSDC *TestUSDC) TryPackTRANSFERWITHAUTHORIZATIONTYPEHASH() ([]byte, error) {
	return testUSDC.abi.Pack("TRANSFER_WITH_AUTHORIZATION_TYPEHASH")
}

// UnpackTRANSFERWITHAUTHORIZATIONTYPEHASH is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xa0cc6a68.
//
// Solidity: function TRANSFER_WITH_AUTHORIZATION_TYPEHASH() view returns(bytes32)
func (testUSDC *TestUSDC) UnpackTRANSFERWITHAUTHORIZATIONTYPEHASH(data []byte) ([32]byte, error) {
	out, err := testUSDC.abi.Unpack("TRANSFER_WITH_AUTHORIZATION_TYPEHASH", data)
	if err != nil {
		return *new([32]byte), err
	}
	out0 := *abi.ConvertType(out[0], new([32]byte)).(*[32]byte)
	return out0, nil
}

// PackAllowance is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xdd62ed3e.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function allowance(address owner, address spender) view returns(uint256)
func (testUSDC *TestUSDC) PackAllowance(owner common.Address, spender common.Address) []byte {
	enc, err := testUSDC.abi.Pack("allowance", owner, spender)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackAllowance is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xdd62ed3e.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function allowance(address owner, address spender) view returns(uint256)
func (testUSDC *TestUSDC) TryPackAllowance(owner common.Address, spender common.Address) ([]byte, error) {
	return testUSDC.abi.Pack("allowance", owner, spender)
}

// UnpackAllowance is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xdd62ed3e.
//
// Solidity: function allowance(address owner, address spender) view returns(uint256)
func (testUSDC *TestUSDC) UnpackAllowance(data []byte) (*big.Int, error) {
	out, err := testUSDC.abi.Unpack("allowance", data)
	if err != nil {
		return new(big.Int), err
	}
	out0 := abi.ConvertType(out[0], new(big.Int)).(*big.Int)
	return out0, nil
}

// PackApprove is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x095ea7b3.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function approve(address spender, uint256 value) returns(bool)
func (testUSDC *TestUSDC) PackApprove(spender common.Address, value *big.Int) []byte {
	enc, err := testUSDC.abi.Pack("approve", spender, value)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackApprove is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x095ea7b3.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function approve(address spender, uint256 value) returns(bool)
func (testUSDC *TestUSDC) TryPackApprove(spender common.Address, value *big.Int) ([]byte, error) {
	return testUSDC.abi.Pack("approve", spender, value)
}

// UnpackApprove is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x095ea7b3.
//
// Solidity: function approve(address spender, uint256 value) returns(bool)
func (testUSDC *TestUSDC) UnpackApprove(data []byte) (bool, error) {
	out, err := testUSDC.abi.Unpack("approve", data)
	if err != nil {
		return *new(bool), err
	}
	out0 := *abi.ConvertType(out[0], new(bool)).(*bool)
	return out0, nil
}

// PackAuthorizationState is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xe94a0102.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function authorizationState(address authorizer, bytes32 nonce) view returns(bool)
func (testUSDC *TestUSDC) PackAuthorizationState(authorizer common.Address, nonce [32]byte) []byte {
	enc, err := testUSDC.abi.Pack("authorizationState", authorizer, nonce)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackAuthorizationState is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xe94a0102.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function authorizationState(address authorizer, bytes32 nonce) view returns(bool)
func (testUSDC *TestUSDC) TryPackAuthorizationState(authorizer common.Address, nonce [32]byte) ([]byte, error) {
	return testUSDC.abi.Pack("authorizationState", authorizer, nonce)
}

// UnpackAuthorizationState is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xe94a0102.
//
// Solidity: function authorizationState(address authorizer, bytes32 nonce) view returns(bool)
func (testUSDC *TestUSDC) UnpackAuthorizationState(data []byte) (bool, error) {
	out, err := testUSDC.abi.Unpack("authorizationState", data)
	if err != nil {
		return *new(bool), err
	}
	out0 := *abi.ConvertType(out[0], new(bool)).(*bool)
	return out0, nil
}

// PackBalanceOf is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x70a08231.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function balanceOf(address account) view returns(uint256)
func (testUSDC *TestUSDC) PackBalanceOf(account common.Address) []byte {
	enc, err := testUSDC.abi.Pack("balanceOf", account)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackBalanceOf is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x70a08231.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function balanceOf(address account) view returns(uint256)
func (testUSDC *TestUSDC) TryPackBalanceOf(account common.Address) ([]byte, error) {
	return testUSDC.abi.Pack("balanceOf", account)
}

// UnpackBalanceOf is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x70a08231.
//
// Solidity: function balanceOf(address account) view returns(uint256)
func (testUSDC *TestUSDC) UnpackBalanceOf(data []byte) (*big.Int, error) {
	out, err := testUSDC.abi.Unpack("balanceOf", data)
	if err != nil {
		return new(big.Int), err
	}
	out0 := abi.ConvertType(out[0], new(big.Int)).(*big.Int)
	return out0, nil
}

// PackCancelAuthorization is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x5a049a70.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) returns()
func (testUSDC *TestUSDC) PackCancelAuthorization(authorizer common.Address, nonce [32]byte, v uint8, r [32]byte, s [32]byte) []byte {
	enc, err := testUSDC.abi.Pack("cancelAuthorization", authorizer, nonce, v, r, s)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackCancelAuthorization is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x5a049a70.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) returns()
func (testUSDC *TestUSDC) TryPackCancelAuthorization(authorizer common.Address, nonce [32]byte, v uint8, r [32]byte, s [32]byte) ([]byte, error) {
	return testUSDC.abi.Pack("cancelAuthorization", authorizer, nonce, v, r, s)
}

// PackCancelAuthorization0 is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xb7b72899.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature) returns()
func (testUSDC *TestUSDC) PackCancelAuthorization0(authorizer common.Address, nonce [32]byte, signature []byte) []byte {
	enc, err := testUSDC.abi.Pack("cancelAuthorization0", authorizer, nonce, signature)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackCancelAuthorization0 is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xb7b72899.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature) returns()
func (testUSDC *TestUSDC) TryPackCancelAuthorization0(authorizer common.Address, nonce [32]byte, signature []byte) ([]byte, error) {
	return testUSDC.abi.Pack("cancelAuthorization0", authorizer, nonce, signature)
}

// PackDecimals is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x313ce567.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function decimals() pure returns(uint8)
func (testUSDC *TestUSDC) PackDecimals() []byte {
	enc, err := testUSDC.abi.Pack("decimals")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackDecimals is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x313ce567.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function decimals() pure returns(uint8)
func (testUSDC *TestUSDC) TryPackDecimals() ([]byte, error) {
	return testUSDC.abi.Pack("decimals")
}

// UnpackDecimals is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x313ce567.
//
// Solidity: function decimals() pure returns(uint8)
func (testUSDC *TestUSDC) UnpackDecimals(data []byte) (uint8, error) {
	out, err := testUSDC.abi.Unpack("decimals", data)
	if err != nil {
		return *new(uint8), err
	}
	out0 := *abi.ConvertType(out[0], new(uint8)).(*uint8)
	return out0, nil
}

// PackEip712Domain is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x84b0196e.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function eip712Domain() view returns(bytes1 fields, string name, string version, uint256 chainId, address verifyingContract, bytes32 salt, uint256[] extensions)
func (testUSDC *TestUSDC) PackEip712Domain() []byte {
	enc, err := testUSDC.abi.Pack("eip712Domain")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackEip712Domain is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x84b0196e.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function eip712Domain() view returns(bytes1 fields, string name, string version, uint256 chainId, address verifyingContract, bytes32 salt, uint256[] extensions)
func (testUSDC *TestUSDC) TryPackEip712Domain() ([]byte, error) {
	return testUSDC.abi.Pack("eip712Domain")
}

// Eip712DomainOutput serves as a container for the return parameters of contract
// method Eip712Domain.
type Eip712DomainOutput struct {
	Fields            [1]byte
	Name              string
	Version           string
	ChainId           *big.Int
	VerifyingContract common.Address
	Salt              [32]byte
	Extensions        []*big.Int
}

// UnpackEip712Domain is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x84b0196e.
//
// Solidity: function eip712Domain() view returns(bytes1 fields, string name, string version, uint256 chainId, address verifyingContract, bytes32 salt, uint256[] extensions)
func (testUSDC *TestUSDC) UnpackEip712Domain(data []byte) (Eip712DomainOutput, error) {
	out, err := testUSDC.abi.Unpack("eip712Domain", data)
	outstruct := new(Eip712DomainOutput)
	if err != nil {
		return *outstruct, err
	}
	outstruct.Fields = *abi.ConvertType(out[0], new([1]byte)).(*[1]byte)
	outstruct.Name = *abi.ConvertType(out[1], new(string)).(*string)
	outstruct.Version = *abi.ConvertType(out[2], new(string)).(*string)
	outstruct.ChainId = abi.ConvertType(out[3], new(big.Int)).(*big.Int)
	outstruct.VerifyingContract = *abi.ConvertType(out[4], new(common.Address)).(*common.Address)
	outstruct.Salt = *abi.ConvertType(out[5], new([32]byte)).(*[32]byte)
	outstruct.Extensions = *abi.ConvertType(out[6], new([]*big.Int)).(*[]*big.Int)
	return *outstruct, nil
}

// PackMint is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x40c10f19.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function mint(address to, uint256 amount) returns()
func (testUSDC *TestUSDC) PackMint(to common.Address, amount *big.Int) []byte {
	enc, err := testUSDC.abi.Pack("mint", to, amount)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackMint is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x40c10f19.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function mint(address to, uint256 amount) returns()
func (testUSDC *TestUSDC) TryPackMint(to common.Address, amount *big.Int) ([]byte, error) {
	return testUSDC.abi.Pack("mint", to, amount)
}

// PackName is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x06fdde03.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function name() view returns(string)
func (testUSDC *TestUSDC) PackName() []byte {
	enc, err := testUSDC.abi.Pack("name")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackName is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x06fdde03.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function name() view returns(string)
func (testUSDC *TestUSDC) TryPackName() ([]byte, error) {
	return testUSDC.abi.Pack("name")
}

// UnpackName is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x06fdde03.
//
// Solidity: function name() view returns(string)
func (testUSDC *TestUSDC) UnpackName(data []byte) (string, error) {
	out, err := testUSDC.abi.Unpack("name", data)
	if err != nil {
		return *new(string), err
	}
	out0 := *abi.ConvertType(out[0], new(string)).(*string)
	return out0, nil
}

// PackNonces is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x7ecebe00.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function nonces(address owner) view returns(uint256)
func (testUSDC *TestUSDC) PackNonces(owner common.Address) []byte {
	enc, err := testUSDC.abi.Pack("nonces", owner)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackNonces is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x7ecebe00.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function nonces(address owner) view returns(uint256)
func (testUSDC *TestUSDC) TryPackNonces(owner common.Address) ([]byte, error) {
	return testUSDC.abi.Pack("nonces", owner)
}

// UnpackNonces is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x7ecebe00.
//
// Solidity: function nonces(address owner) view returns(uint256)
func (testUSDC *TestUSDC) UnpackNonces(data []byte) (*big.Int, error) {
	out, err := testUSDC.abi.Unpack("nonces", data)
	if err != nil {
		return new(big.Int), err
	}
	out0 := abi.ConvertType(out[0], new(big.Int)).(*big.Int)
	return out0, nil
}

// PackOwner is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x8da5cb5b.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function owner() view returns(address)
func (testUSDC *TestUSDC) PackOwner() []byte {
	enc, err := testUSDC.abi.Pack("owner")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackOwner is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x8da5cb5b.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function owner() view returns(address)
func (testUSDC *TestUSDC) TryPackOwner() ([]byte, error) {
	return testUSDC.abi.Pack("owner")
}

// UnpackOwner is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x8da5cb5b.
//
// Solidity: function owner() view returns(address)
func (testUSDC *TestUSDC) UnpackOwner(data []byte) (common.Address, error) {
	out, err := testUSDC.abi.Unpack("owner", data)
	if err != nil {
		return *new(common.Address), err
	}
	out0 := *abi.ConvertType(out[0], new(common.Address)).(*common.Address)
	return out0, nil
}

// PackPermit is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x9fd5a6cf.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function permit(address owner, address spender, uint256 value, uint256 deadline, bytes signature) returns()
func (testUSDC *TestUSDC) PackPermit(owner common.Address, spender common.Address, value *big.Int, deadline *big.Int, signature []byte) []byte {
	enc, err := testUSDC.abi.Pack("permit", owner, spender, value, deadline, signature)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackPermit is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x9fd5a6cf.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function permit(address owner, address spender, uint256 value, uint256 deadline, bytes signature) returns()
func (testUSDC *TestUSDC) TryPackPermit(owner common.Address, spender common.Address, value *big.Int, deadline *big.Int, signature []byte) ([]byte, error) {
	return testUSDC.abi.Pack("permit", owner, spender, value, deadline, signature)
}

// PackPermit0 is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xd505accf.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s) returns()
func (testUSDC *TestUSDC) PackPermit0(owner common.Address, spender common.Address, value *big.Int, deadline *big.Int, v uint8, r [32]byte, s [32]byte) []byte {
	enc, err := testUSDC.abi.Pack("permit0", owner, spender, value, deadline, v, r, s)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackPermit0 is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xd505accf.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s) returns()
func (testUSDC *TestUSDC) TryPackPermit0(owner common.Address, spender common.Address, value *big.Int, deadline *big.Int, v uint8, r [32]byte, s [32]byte) ([]byte, error) {
	return testUSDC.abi.Pack("permit0", owner, spender, value, deadline, v, r, s)
}

// PackReceiveWithAuthorization is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x88b7ab63.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature) returns()
func (testUSDC *TestUSDC) PackReceiveWithAuthorization(from common.Address, to common.Address, value *big.Int, validAfter *big.Int, validBefore *big.Int, nonce [32]byte, signature []byte) []byte {
	enc, err := testUSDC.abi.Pack("receiveWithAuthorization", from, to, value, validAfter, validBefore, nonce, signature)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackReceiveWithAuthorization is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x88b7ab63.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature) returns()
func (testUSDC *TestUSDC) TryPackReceiveWithAuthorization(from common.Address, to common.Address, value *big.Int, validAfter *big.Int, validBefore *big.Int, nonce [32]byte, signature []byte) ([]byte, error) {
	return testUSDC.abi.Pack("receiveWithAuthorization", from, to, value, validAfter, validBefore, nonce, signature)
}

// PackReceiveWithAuthorization0 is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xef55bec6.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) returns()
func (testUSDC *TestUSDC) PackReceiveWithAuthorization0(from common.Address, to common.Address, value *big.Int, validAfter *big.Int, validBefore *big.Int, nonce [32]byte, v uint8, r [32]byte, s [32]byte) []byte {
	enc, err := testUSDC.abi.Pack("receiveWithAuthorization0", from, to, value, validAfter, validBefore, nonce, v, r, s)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackReceiveWithAuthorization0 is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xef55bec6.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) returns()
func (testUSDC *TestUSDC) TryPackReceiveWithAuthorization0(from common.Address, to common.Address, value *big.Int, validAfter *big.Int, validBefore *big.Int, nonce [32]byte, v uint8, r [32]byte, s [32]byte) ([]byte, error) {
	return testUSDC.abi.Pack("receiveWithAuthorization0", from, to, value, validAfter, validBefore, nonce, v, r, s)
}

// PackRenounceOwnership is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x715018a6.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function renounceOwnership() returns()
func (testUSDC *TestUSDC) PackRenounceOwnership() []byte {
	enc, err := testUSDC.abi.Pack("renounceOwnership")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackRenounceOwnership is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x715018a6.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function renounceOwnership() returns()
func (testUSDC *TestUSDC) TryPackRenounceOwnership() ([]byte, error) {
	return testUSDC.abi.Pack("renounceOwnership")
}

// PackSymbol is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x95d89b41.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function symbol() view returns(string)
func (testUSDC *TestUSDC) PackSymbol() []byte {
	enc, err := testUSDC.abi.Pack("symbol")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackSymbol is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x95d89b41.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function symbol() view returns(string)
func (testUSDC *TestUSDC) TryPackSymbol() ([]byte, error) {
	return testUSDC.abi.Pack("symbol")
}

// UnpackSymbol is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x95d89b41.
//
// Solidity: function symbol() view returns(string)
func (testUSDC *TestUSDC) UnpackSymbol(data []byte) (string, error) {
	out, err := testUSDC.abi.Unpack("symbol", data)
	if err != nil {
		return *new(string), err
	}
	out0 := *abi.ConvertType(out[0], new(string)).(*string)
	return out0, nil
}

// PackTotalSupply is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x18160ddd.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function totalSupply() view returns(uint256)
func (testUSDC *TestUSDC) PackTotalSupply() []byte {
	enc, err := testUSDC.abi.Pack("totalSupply")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackTotalSupply is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x18160ddd.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function totalSupply() view returns(uint256)
func (testUSDC *TestUSDC) TryPackTotalSupply() ([]byte, error) {
	return testUSDC.abi.Pack("totalSupply")
}

// UnpackTotalSupply is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x18160ddd.
//
// Solidity: function totalSupply() view returns(uint256)
func (testUSDC *TestUSDC) UnpackTotalSupply(data []byte) (*big.Int, error) {
	out, err := testUSDC.abi.Unpack("totalSupply", data)
	if err != nil {
		return new(big.Int), err
	}
	out0 := abi.ConvertType(out[0], new(big.Int)).(*big.Int)
	return out0, nil
}

// PackTransfer is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xa9059cbb.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function transfer(address to, uint256 value) returns(bool)
func (testUSDC *TestUSDC) PackTransfer(to common.Address, value *big.Int) []byte {
	enc, err := testUSDC.abi.Pack("transfer", to, value)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackTransfer is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xa9059cbb.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function transfer(address to, uint256 value) returns(bool)
func (testUSDC *TestUSDC) TryPackTransfer(to common.Address, value *big.Int) ([]byte, error) {
	return testUSDC.abi.Pack("transfer", to, value)
}

// UnpackTransfer is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xa9059cbb.
//
// Solidity: function transfer(address to, uint256 value) returns(bool)
func (testUSDC *TestUSDC) UnpackTransfer(data []byte) (bool, error) {
	out, err := testUSDC.abi.Unpack("transfer", data)
	if err != nil {
		return *new(bool), err
	}
	out0 := *abi.ConvertType(out[0], new(bool)).(*bool)
	return out0, nil
}

// PackTransferFrom is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x23b872dd.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function transferFrom(address from, address to, uint256 value) returns(bool)
func (testUSDC *TestUSDC) PackTransferFrom(from common.Address, to common.Address, value *big.Int) []byte {
	enc, err := testUSDC.abi.Pack("transferFrom", from, to, value)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackTransferFrom is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x23b872dd.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function transferFrom(address from, address to, uint256 value) returns(bool)
func (testUSDC *TestUSDC) TryPackTransferFrom(from common.Address, to common.Address, value *big.Int) ([]byte, error) {
	return testUSDC.abi.Pack("transferFrom", from, to, value)
}

// UnpackTransferFrom is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x23b872dd.
//
// Solidity: function transferFrom(address from, address to, uint256 value) returns(bool)
func (testUSDC *TestUSDC) UnpackTransferFrom(data []byte) (bool, error) {
	out, err := testUSDC.abi.Unpack("transferFrom", data)
	if err != nil {
		return *new(bool), err
	}
	out0 := *abi.ConvertType(out[0], new(bool)).(*bool)
	return out0, nil
}

// PackTransferOwnership is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xf2fde38b.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function transferOwnership(address newOwner) returns()
func (testUSDC *TestUSDC) PackTransferOwnership(newOwner common.Address) []byte {
	enc, err := testUSDC.abi.Pack("transferOwnership", newOwner)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackTransferOwnership is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xf2fde38b.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function transferOwnership(address newOwner) returns()
func (testUSDC *TestUSDC) TryPackTransferOwnership(newOwner common.Address) ([]byte, error) {
	return testUSDC.abi.Pack("transferOwnership", newOwner)
}

// PackTransferWithAuthorization is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xcf092995.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature) returns()
func (testUSDC *TestUSDC) PackTransferWithAuthorization(from common.Address, to common.Address, value *big.Int, validAfter *big.Int, validBefore *big.Int, nonce [32]byte, signature []byte) []byte {
	enc, err := testUSDC.abi.Pack("transferWithAuthorization", from, to, value, validAfter, validBefore, nonce, signature)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackTransferWithAuthorization is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xcf092995.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature) returns()
func (testUSDC *TestUSDC) TryPackTransferWithAuthorization(from common.Address, to common.Address, value *big.Int, validAfter *big.Int, validBefore *big.Int, nonce [32]byte, signature []byte) ([]byte, error) {
	return testUSDC.abi.Pack("transferWithAuthorization", from, to, value, validAfter, validBefore, nonce, signature)
}

// PackTransferWithAuthorization0 is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xe3ee160e.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) returns()
func (testUSDC *TestUSDC) PackTransferWithAuthorization0(from common.Address, to common.Address, value *big.Int, validAfter *big.Int, validBefore *big.Int, nonce [32]byte, v uint8, r [32]byte, s [32]byte) []byte {
	enc, err := testUSDC.abi.Pack("transferWithAuthorization0", from, to, value, validAfter, validBefore, nonce, v, r, s)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackTransferWithAuthorization0 is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xe3ee160e.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) returns()
func (testUSDC *TestUSDC) TryPackTransferWithAuthorization0(from common.Address, to common.Address, value *big.Int, validAfter *big.Int, validBefore *big.Int, nonce [32]byte, v uint8, r [32]byte, s [32]byte) ([]byte, error) {
	return testUSDC.abi.Pack("transferWithAuthorization0", from, to, value, validAfter, validBefore, nonce, v, r, s)
}

// PackVersion is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x54fd4d50.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function version() pure returns(string)
func (testUSDC *TestUSDC) PackVersion() []byte {
	enc, err := testUSDC.abi.Pack("version")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackVersion is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x54fd4d50.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function version() pure returns(string)
func (testUSDC *TestUSDC) TryPackVersion() ([]byte, error) {
	return testUSDC.abi.Pack("version")
}

// UnpackVersion is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x54fd4d50.
//
// Solidity: function version() pure returns(string)
func (testUSDC *TestUSDC) UnpackVersion(data []byte) (string, error) {
	out, err := testUSDC.abi.Unpack("version", data)
	if err != nil {
		return *new(string), err
	}
	out0 := *abi.ConvertType(out[0], new(string)).(*string)
	return out0, nil
}

// TestUSDCApproval represents a Approval event raised by the TestUSDC contract.
type TestUSDCApproval struct {
	Owner   common.Address
	Spender common.Address
	Value   *big.Int
	Raw     *types.Log // Blockchain specific contextual infos
}

const TestUSDCApprovalEventName = "Approval"

// ContractEventName returns the user-defined event name.
func (TestUSDCApproval) ContractEventName() string {
	return TestUSDCApprovalEventName
}

// UnpackApprovalEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event Approval(address indexed owner, address indexed spender, uint256 value)
func (testUSDC *TestUSDC) UnpackApprovalEvent(log *types.Log) (*TestUSDCApproval, error) {
	event := "Approval"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != testUSDC.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(TestUSDCApproval)
	if len(log.Data) > 0 {
		if err := testUSDC.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range testUSDC.abi.Events[event].Inputs {
		if arg.Indexed {
			indexed = append(indexed, arg)
		}
	}
	if err := abi.ParseTopics(out, indexed, log.Topics[1:]); err != nil {
		return nil, err
	}
	out.Raw = log
	return out, nil
}

// TestUSDCAuthorizationCanceled represents a AuthorizationCanceled event raised by the TestUSDC contract.
type TestUSDCAuthorizationCanceled struct {
	Authorizer common.Address
	Nonce      [32]byte
	Raw        *types.Log // Blockchain specific contextual infos
}

const TestUSDCAuthorizationCanceledEventName = "AuthorizationCanceled"

// ContractEventName returns the user-defined event name.
func (TestUSDCAuthorizationCanceled) ContractEventName() string {
	return TestUSDCAuthorizationCanceledEventName
}

// UnpackAuthorizationCanceledEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)
func (testUSDC *TestUSDC) UnpackAuthorizationCanceledEvent(log *types.Log) (*TestUSDCAuthorizationCanceled, error) {
	event := "AuthorizationCanceled"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != testUSDC.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(TestUSDCAuthorizationCanceled)
	if len(log.Data) > 0 {
		if err := testUSDC.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range testUSDC.abi.Events[event].Inputs {
		if arg.Indexed {
			indexed = append(indexed, arg)
		}
	}
	if err := abi.ParseTopics(out, indexed, log.Topics[1:]); err != nil {
		return nil, err
	}
	out.Raw = log
	return out, nil
}

// TestUSDCAuthorizationUsed represents a AuthorizationUsed event raised by the TestUSDC contract.
type TestUSDCAuthorizationUsed struct {
	Authorizer common.Address
	Nonce      [32]byte
	Raw        *types.Log // Blockchain specific contextual infos
}

const TestUSDCAuthorizationUsedEventName = "AuthorizationUsed"

// ContractEventName returns the user-defined event name.
func (TestUSDCAuthorizationUsed) ContractEventName() string {
	return TestUSDCAuthorizationUsedEventName
}

// UnpackAuthorizationUsedEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)
func (testUSDC *TestUSDC) UnpackAuthorizationUsedEvent(log *types.Log) (*TestUSDCAuthorizationUsed, error) {
	event := "AuthorizationUsed"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != testUSDC.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(TestUSDCAuthorizationUsed)
	if len(log.Data) > 0 {
		if err := testUSDC.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range testUSDC.abi.Events[event].Inputs {
		if arg.Indexed {
			indexed = append(indexed, arg)
		}
	}
	if err := abi.ParseTopics(out, indexed, log.Topics[1:]); err != nil {
		return nil, err
	}
	out.Raw = log
	return out, nil
}

// TestUSDCEIP712DomainChanged represents a EIP712DomainChanged event raised by the TestUSDC contract.
type TestUSDCEIP712DomainChanged struct {
	Raw *types.Log // Blockchain specific contextual infos
}

const TestUSDCEIP712DomainChangedEventName = "EIP712DomainChanged"

// ContractEventName returns the user-defined event name.
func (TestUSDCEIP712DomainChanged) ContractEventName() string {
	return TestUSDCEIP712DomainChangedEventName
}

// UnpackEIP712DomainChangedEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event EIP712DomainChanged()
func (testUSDC *TestUSDC) UnpackEIP712DomainChangedEvent(log *types.Log) (*TestUSDCEIP712DomainChanged, error) {
	event := "EIP712DomainChanged"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != testUSDC.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(TestUSDCEIP712DomainChanged)
	if len(log.Data) > 0 {
		if err := testUSDC.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range testUSDC.abi.Events[event].Inputs {
		if arg.Indexed {
			indexed = append(indexed, arg)
		}
	}
	if err := abi.ParseTopics(out, indexed, log.Topics[1:]); err != nil {
		return nil, err
	}
	out.Raw = log
	return out, nil
}

// TestUSDCOwnershipTransferred represents a OwnershipTransferred event raised by the TestUSDC contract.
type TestUSDCOwnershipTransferred struct {
	PreviousOwner common.Address
	NewOwner      common.Address
	Raw           *types.Log // Blockchain specific contextual infos
}

const TestUSDCOwnershipTransferredEventName = "OwnershipTransferred"

// ContractEventName returns the user-defined event name.
func (TestUSDCOwnershipTransferred) ContractEventName() string {
	return TestUSDCOwnershipTransferredEventName
}

// UnpackOwnershipTransferredEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event OwnershipTransferred(address indexed previousOwner, address indexed newOwner)
func (testUSDC *TestUSDC) UnpackOwnershipTransferredEvent(log *types.Log) (*TestUSDCOwnershipTransferred, error) {
	event := "OwnershipTransferred"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != testUSDC.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(TestUSDCOwnershipTransferred)
	if len(log.Data) > 0 {
		if err := testUSDC.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range testUSDC.abi.Events[event].Inputs {
		if arg.Indexed {
			indexed = append(indexed, arg)
		}
	}
	if err := abi.ParseTopics(out, indexed, log.Topics[1:]); err != nil {
		return nil, err
	}
	out.Raw = log
	return out, nil
}

// TestUSDCTransfer represents a Transfer event raised by the TestUSDC contract.
type TestUSDCTransfer struct {
	From  common.Address
	To    common.Address
	Value *big.Int
	Raw   *types.Log // Blockchain specific contextual infos
}

const TestUSDCTransferEventName = "Transfer"

// ContractEventName returns the user-defined event name.
func (TestUSDCTransfer) ContractEventName() string {
	return TestUSDCTransferEventName
}

// UnpackTransferEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event Transfer(address indexed from, address indexed to, uint256 value)
func (testUSDC *TestUSDC) UnpackTransferEvent(log *types.Log) (*TestUSDCTransfer, error) {
	event := "Transfer"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != testUSDC.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(TestUSDCTransfer)
	if len(log.Data) > 0 {
		if err := testUSDC.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range testUSDC.abi.Events[event].Inputs {
		if arg.Indexed {
			indexed = append(indexed, arg)
		}
	}
	if err := abi.ParseTopics(out, indexed, log.Topics[1:]); err != nil {
		return nil, err
	}
	out.Raw = log
	return out, nil
}

// UnpackError attempts to decode the provided error data using user-defined
// error definitions.
func (testUSDC *TestUSDC) UnpackError(raw []byte) (any, error) {
	if bytes.Equal(raw[:4], testUSDC.abi.Errors["AuthorizationExpired"].ID.Bytes()[:4]) {
		return testUSDC.UnpackAuthorizationExpiredError(raw[4:])
	}
	if bytes.Equal(raw[:4], testUSDC.abi.Errors["AuthorizationNotYetValid"].ID.Bytes()[:4]) {
		return testUSDC.UnpackAuthorizationNotYetValidError(raw[4:])
	}
	if bytes.Equal(raw[:4], testUSDC.abi.Errors["AuthorizationUsedOrCanceled"].ID.Bytes()[:4]) {
		return testUSDC.UnpackAuthorizationUsedOrCanceledError(raw[4:])
	}
	if bytes.Equal(raw[:4], testUSDC.abi.Errors["CallerMustBePayee"].ID.Bytes()[:4]) {
		return testUSDC.UnpackCallerMustBePayeeError(raw[4:])
	}
	if bytes.Equal(raw[:4], testUSDC.abi.Errors["ERC20InsufficientAllowance"].ID.Bytes()[:4]) {
		return testUSDC.UnpackERC20InsufficientAllowanceError(raw[4:])
	}
	if bytes.Equal(raw[:4], testUSDC.abi.Errors["ERC20InsufficientBalance"].ID.Bytes()[:4]) {
		return testUSDC.UnpackERC20InsufficientBalanceError(raw[4:])
	}
	if bytes.Equal(raw[:4], testUSDC.abi.Errors["ERC20InvalidApprover"].ID.Bytes()[:4]) {
		return testUSDC.UnpackERC20InvalidApproverError(raw[4:])
	}
	if bytes.Equal(raw[:4], testUSDC.abi.Errors["ERC20InvalidReceiver"].ID.Bytes()[:4]) {
		return testUSDC.UnpackERC20InvalidReceiverError(raw[4:])
	}
	if bytes.Equal(raw[:4], testUSDC.abi.Errors["ERC20InvalidSender"].ID.Bytes()[:4]) {
		return testUSDC.UnpackERC20InvalidSenderError(raw[4:])
	}
	if bytes.Equal(raw[:4], testUSDC.abi.Errors["ERC20InvalidSpender"].ID.Bytes()[:4]) {
		return testUSDC.UnpackERC20InvalidSpenderError(raw[4:])
	}
	if bytes.Equal(raw[:4], testUSDC.abi.Errors["InvalidAccountNonce"].ID.Bytes()[:4]) {
		return testUSDC.UnpackInvalidAccountNonceError(raw[4:])
	}
	if bytes.Equal(raw[:4], testUSDC.abi.Errors["InvalidShortString"].ID.Bytes()[:4]) {
		return testUSDC.UnpackInvalidShortStringError(raw[4:])
	}
	if bytes.Equal(raw[:4], testUSDC.abi.Errors["InvalidSignature"].ID.Bytes()[:4]) {
		return testUSDC.UnpackInvalidSignatureError(raw[4:])
	}
	if bytes.Equal(raw[:4], testUSDC.abi.Errors["OwnableInvalidOwner"].ID.Bytes()[:4]) {
		return testUSDC.UnpackOwnableInvalidOwnerError(raw[4:])
	}
	if bytes.Equal(raw[:4], testUSDC.abi.Errors["OwnableUnauthorizedAccount"].ID.Bytes()[:4]) {
		return testUSDC.UnpackOwnableUnauthorizedAccountError(raw[4:])
	}
	if bytes.Equal(raw[:4], testUSDC.abi.Errors["PermitExpired"].ID.Bytes()[:4]) {
		return testUSDC.UnpackPermitExpiredError(raw[4:])
	}
	if bytes.Equal(raw[:4], testUSDC.abi.Errors["StringTooLong"].ID.Bytes()[:4]) {
		return testUSDC.UnpackStringTooLongError(raw[4:])
	}
	return nil, errors.New("Unknown error")
}

// TestUSDCAuthorizationExpired represents a AuthorizationExpired error raised by the TestUSDC contract.
type TestUSDCAuthorizationExpired struct {
	ValidBefore *big.Int
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error AuthorizationExpired(uint256 validBefore)
func TestUSDCAuthorizationExpiredErrorID() common.Hash {
	return common.HexToHash("0x3d91b05fdcd2d1cf4f2afc5066ced64e8f51b3c6231d2520419fdf3611015311")
}

// UnpackAuthorizationExpiredError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error AuthorizationExpired(uint256 validBefore)
func (testUSDC *TestUSDC) UnpackAuthorizationExpiredError(raw []byte) (*TestUSDCAuthorizationExpired, error) {
	out := new(TestUSDCAuthorizationExpired)
	if err := testUSDC.abi.UnpackIntoInterface(out, "AuthorizationExpired", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// TestUSDCAuthorizationNotYetValid represents a AuthorizationNotYetValid error raised by the TestUSDC contract.
type TestUSDCAuthorizationNotYetValid struct {
	ValidAfter *big.Int
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error AuthorizationNotYetValid(uint256 validAfter)
func TestUSDCAuthorizationNotYetValidErrorID() common.Hash {
	return common.HexToHash("0x7a4df07913fa2cec8ed6078f075884f9382e467bee96d3361aa5b2790d69573b")
}

// UnpackAuthorizationNotYetValidError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error AuthorizationNotYetValid(uint256 validAfter)
func (testUSDC *TestUSDC) UnpackAuthorizationNotYetValidError(raw []byte) (*TestUSDCAuthorizationNotYetValid, error) {
	out := new(TestUSDCAuthorizationNotYetValid)
	if err := testUSDC.abi.UnpackIntoInterface(out, "AuthorizationNotYetValid", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// TestUSDCAuthorizationUsedOrCanceled represents a AuthorizationUsedOrCanceled error raised by the TestUSDC contract.
type TestUSDCAuthorizationUsedOrCanceled struct {
	Authorizer common.Address
	Nonce      [32]byte
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error AuthorizationUsedOrCanceled(address authorizer, bytes32 nonce)
func TestUSDCAuthorizationUsedOrCanceledErrorID() common.Hash {
	return common.HexToHash("0x8ef82f7f1bfa895e16bf92f70abe253e4ff843f7d7ef855b69b61792cb510759")
}

// UnpackAuthorizationUsedOrCanceledError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error AuthorizationUsedOrCanceled(address authorizer, bytes32 nonce)
func (testUSDC *TestUSDC) UnpackAuthorizationUsedOrCanceledError(raw []byte) (*TestUSDCAuthorizationUsedOrCanceled, error) {
	out := new(TestUSDCAuthorizationUsedOrCanceled)
	if err := testUSDC.abi.UnpackIntoInterface(out, "AuthorizationUsedOrCanceled", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// TestUSDCCallerMustBePayee represents a CallerMustBePayee error raised by the TestUSDC contract.
type TestUSDCCallerMustBePayee struct {
	Caller common.Address
	Payee  common.Address
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error CallerMustBePayee(address caller, address payee)
func TestUSDCCallerMustBePayeeErrorID() common.Hash {
	return common.HexToHash("0x1c5939f31210844d30e56777aa20aeb2885a4d01d2a8f4ac198ee1145de83799")
}

// UnpackCallerMustBePayeeError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error CallerMustBePayee(address caller, address payee)
func (testUSDC *TestUSDC) UnpackCallerMustBePayeeError(raw []byte) (*TestUSDCCallerMustBePayee, error) {
	out := new(TestUSDCCallerMustBePayee)
	if err := testUSDC.abi.UnpackIntoInterface(out, "CallerMustBePayee", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// TestUSDCERC20InsufficientAllowance represents a ERC20InsufficientAllowance error raised by the TestUSDC contract.
type TestUSDCERC20InsufficientAllowance struct {
	Spender   common.Address
	Allowance *big.Int
	Needed    *big.Int
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error ERC20InsufficientAllowance(address spender, uint256 allowance, uint256 needed)
func TestUSDCERC20InsufficientAllowanceErrorID() common.Hash {
	return common.HexToHash("0xfb8f41b23e99d2101d86da76cdfa87dd51c82ed07d3cb62cbc473e469dbc75c3")
}

// UnpackERC20InsufficientAllowanceError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error ERC20InsufficientAllowance(address spender, uint256 allowance, uint256 needed)
func (testUSDC *TestUSDC) UnpackERC20InsufficientAllowanceError(raw []byte) (*TestUSDCERC20InsufficientAllowance, error) {
	out := new(TestUSDCERC20InsufficientAllowance)
	if err := testUSDC.abi.UnpackIntoInterface(out, "ERC20InsufficientAllowance", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// TestUSDCERC20InsufficientBalance represents a ERC20InsufficientBalance error raised by the TestUSDC contract.
type TestUSDCERC20InsufficientBalance struct {
	Sender  common.Address
	Balance *big.Int
	Needed  *big.Int
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)
func TestUSDCERC20InsufficientBalanceErrorID() common.Hash {
	return common.HexToHash("0xe450d38cd8d9f7d95077d567d60ed49c7254716e6ad08fc9872816c97e0ffec6")
}

// UnpackERC20InsufficientBalanceError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)
func (testUSDC *TestUSDC) UnpackERC20InsufficientBalanceError(raw []byte) (*TestUSDCERC20InsufficientBalance, error) {
	out := new(TestUSDCERC20InsufficientBalance)
	if err := testUSDC.abi.UnpackIntoInterface(out, "ERC20InsufficientBalance", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// TestUSDCERC20InvalidApprover represents a ERC20InvalidApprover error raised by the TestUSDC contract.
type TestUSDCERC20InvalidApprover struct {
	Approver common.Address
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error ERC20InvalidApprover(address approver)
func TestUSDCERC20InvalidApproverErrorID() common.Hash {
	return common.HexToHash("0xe602df05cc75712490294c6c104ab7c17f4030363910a7a2626411c6d3118847")
}

// UnpackERC20InvalidApproverError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error ERC20InvalidApprover(address approver)
func (testUSDC *TestUSDC) UnpackERC20InvalidApproverError(raw []byte) (*TestUSDCERC20InvalidApprover, error) {
	out := new(TestUSDCERC20InvalidApprover)
	if err := testUSDC.abi.UnpackIntoInterface(out, "ERC20InvalidApprover", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// TestUSDCERC20InvalidReceiver represents a ERC20InvalidReceiver error raised by the TestUSDC contract.
type TestUSDCERC20InvalidReceiver struct {
	Receiver common.Address
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error ERC20InvalidReceiver(address receiver)
func TestUSDCERC20InvalidReceiverErrorID() common.Hash {
	return common.HexToHash("0xec442f055133b72f3b2f9f0bb351c406b178527de2040a7d1feb4e058771f613")
}

// UnpackERC20InvalidReceiverError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error ERC20InvalidReceiver(address receiver)
func (testUSDC *TestUSDC) UnpackERC20InvalidReceiverError(raw []byte) (*TestUSDCERC20InvalidReceiver, error) {
	out := new(TestUSDCERC20InvalidReceiver)
	if err := testUSDC.abi.UnpackIntoInterface(out, "ERC20InvalidReceiver", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// TestUSDCERC20InvalidSender represents a ERC20InvalidSender error raised by the TestUSDC contract.
type TestUSDCERC20InvalidSender struct {
	Sender common.Address
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error ERC20InvalidSender(address sender)
func TestUSDCERC20InvalidSenderErrorID() common.Hash {
	return common.HexToHash("0x96c6fd1edd0cd6ef7ff0ecc0facdf53148dc0048b57fe58af65755250a7a96bd")
}

// UnpackERC20InvalidSenderError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error ERC20InvalidSender(address sender)
func (testUSDC *TestUSDC) UnpackERC20InvalidSenderError(raw []byte) (*TestUSDCERC20InvalidSender, error) {
	out := new(TestUSDCERC20InvalidSender)
	if err := testUSDC.abi.UnpackIntoInterface(out, "ERC20InvalidSender", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// TestUSDCERC20InvalidSpender represents a ERC20InvalidSpender error raised by the TestUSDC contract.
type TestUSDCERC20InvalidSpender struct {
	Spender common.Address
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error ERC20InvalidSpender(address spender)
func TestUSDCERC20InvalidSpenderErrorID() common.Hash {
	return common.HexToHash("0x94280d62c347d8d9f4d59a76ea321452406db88df38e0c9da304f58b57b373a2")
}

// UnpackERC20InvalidSpenderError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error ERC20InvalidSpender(address spender)
func (testUSDC *TestUSDC) UnpackERC20InvalidSpenderError(raw []byte) (*TestUSDCERC20InvalidSpender, error) {
	out := new(TestUSDCERC20InvalidSpender)
	if err := testUSDC.abi.UnpackIntoInterface(out, "ERC20InvalidSpender", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// TestUSDCInvalidAccountNonce represents a InvalidAccountNonce error raised by the TestUSDC contract.
type TestUSDCInvalidAccountNonce struct {
	Account      common.Address
	CurrentNonce *big.Int
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error InvalidAccountNonce(address account, uint256 currentNonce)
func TestUSDCInvalidAccountNonceErrorID() common.Hash {
	return common.HexToHash("0x752d88c0de02638abf10e8e31861e4c68dc1f3a1e7d840e580683f2c282bfc7a")
}

// UnpackInvalidAccountNonceError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error InvalidAccountNonce(address account, uint256 currentNonce)
func (testUSDC *TestUSDC) UnpackInvalidAccountNonceError(raw []byte) (*TestUSDCInvalidAccountNonce, error) {
	out := new(TestUSDCInvalidAccountNonce)
	if err := testUSDC.abi.UnpackIntoInterface(out, "InvalidAccountNonce", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// TestUSDCInvalidShortString represents a InvalidShortString error raised by the TestUSDC contract.
type TestUSDCInvalidShortString struct {
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error InvalidShortString()
func TestUSDCInvalidShortStringErrorID() common.Hash {
	return common.HexToHash("0xb3512b0c6163e5f0bafab72bb631b9d58cd7a731b082f910338aa21c83d5c274")
}

// UnpackInvalidShortStringError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error InvalidShortString()
func (testUSDC *TestUSDC) UnpackInvalidShortStringError(raw []byte) (*TestUSDCInvalidShortString, error) {
	out := new(TestUSDCInvalidShortString)
	if err := testUSDC.abi.UnpackIntoInterface(out, "InvalidShortString", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// TestUSDCInvalidSignature represents a InvalidSignature error raised by the TestUSDC contract.
type TestUSDCInvalidSignature struct {
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error InvalidSignature()
func TestUSDCInvalidSignatureErrorID() common.Hash {
	return common.HexToHash("0x8baa579fce362245063d36f11747a89dd489c54795634fc673cc0e0db51fedc5")
}

// UnpackInvalidSignatureError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error InvalidSignature()
func (testUSDC *TestUSDC) UnpackInvalidSignatureError(raw []byte) (*TestUSDCInvalidSignature, error) {
	out := new(TestUSDCInvalidSignature)
	if err := testUSDC.abi.UnpackIntoInterface(out, "InvalidSignature", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// TestUSDCOwnableInvalidOwner represents a OwnableInvalidOwner error raised by the TestUSDC contract.
type TestUSDCOwnableInvalidOwner struct {
	Owner common.Address
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error OwnableInvalidOwner(address owner)
func TestUSDCOwnableInvalidOwnerErrorID() common.Hash {
	return common.HexToHash("0x1e4fbdf7f3ef8bcaa855599e3abf48b232380f183f08f6f813d9ffa5bd585188")
}

// UnpackOwnableInvalidOwnerError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error OwnableInvalidOwner(address owner)
func (testUSDC *TestUSDC) UnpackOwnableInvalidOwnerError(raw []byte) (*TestUSDCOwnableInvalidOwner, error) {
	out := new(TestUSDCOwnableInvalidOwner)
	if err := testUSDC.abi.UnpackIntoInterface(out, "OwnableInvalidOwner", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// TestUSDCOwnableUnauthorizedAccount represents a OwnableUnauthorizedAccount error raised by the TestUSDC contract.
type TestUSDCOwnableUnauthorizedAccount struct {
	Account common.Address
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error OwnableUnauthorizedAccount(address account)
func TestUSDCOwnableUnauthorizedAccountErrorID() common.Hash {
	return common.HexToHash("0x118cdaa7a341953d1887a2245fd6665d741c67c8c50581daa59e1d03373fa188")
}

// UnpackOwnableUnauthorizedAccountError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error OwnableUnauthorizedAccount(address account)
func (testUSDC *TestUSDC) UnpackOwnableUnauthorizedAccountError(raw []byte) (*TestUSDCOwnableUnauthorizedAccount, error) {
	out := new(TestUSDCOwnableUnauthorizedAccount)
	if err := testUSDC.abi.UnpackIntoInterface(out, "OwnableUnauthorizedAccount", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// TestUSDCPermitExpired represents a PermitExpired error raised by the TestUSDC contract.
type TestUSDCPermitExpired struct {
	Deadline *big.Int
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error PermitExpired(uint256 deadline)
func TestUSDCPermitExpiredErrorID() common.Hash {
	return common.HexToHash("0x9e96b26fa430cdb94aa7d06991102a0577730e9f5f52f05b4f010c56a086c2ad")
}

// UnpackPermitExpiredError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error PermitExpired(uint256 deadline)
func (testUSDC *TestUSDC) UnpackPermitExpiredError(raw []byte) (*TestUSDCPermitExpired, error) {
	out := new(TestUSDCPermitExpired)
	if err := testUSDC.abi.UnpackIntoInterface(out, "PermitExpired", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// TestUSDCStringTooLong represents a StringTooLong error raised by the TestUSDC contract.
type TestUSDCStringTooLong struct {
	Str string
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error StringTooLong(string str)
func TestUSDCStringTooLongErrorID() common.Hash {
	return common.HexToHash("0x305a27a93f8e33b7392df0a0f91d6fc63847395853c45991eec52dbf24d72381")
}

// UnpackStringTooLongError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error StringTooLong(string str)
func (testUSDC *TestUSDC) UnpackStringTooLongError(raw []byte) (*TestUSDCStringTooLong, error) {
	out := new(TestUSDCStringTooLong)
	if err := testUSDC.abi.UnpackIntoInterface(out, "StringTooLong", raw); err != nil {
		return nil, err
	}
	return out, nil
}
