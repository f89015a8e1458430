// Code generated via abigen V2 - DO NOT EDIT.
// This file is a generated binding and any manual changes will be lost.

package hostile

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

// DisperseMetaData contains all meta data concerning the Disperse contract.
var DisperseMetaData = bind.MetaData{
	ABI: "[{\"inputs\":[{\"internalType\":\"contractIERC20\",\"name\":\"token\",\"type\":\"address\"},{\"internalType\":\"address[]\",\"name\":\"to\",\"type\":\"address[]\"},{\"internalType\":\"uint256[]\",\"name\":\"amounts\",\"type\":\"uint256[]\"}],\"name\":\"disperse\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"contractIERC20\",\"name\":\"token\",\"type\":\"address\"},{\"internalType\":\"address[]\",\"name\":\"to\",\"type\":\"address[]\"},{\"internalType\":\"uint256[]\",\"name\":\"amounts\",\"type\":\"uint256[]\"}],\"name\":\"disperseThroughMe\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"}]",
	ID:  "Disperse",
	Bin: "0x6080604052348015600e575f5ffd5b506104828061001c5f395ff3fe608060405234801561000f575f5ffd5b5060043610610034575f3560e01c8063bd96a7d714610038578063c87b1ae31461004d575b5f5ffd5b61004b610046366004610386565b610060565b005b61004b61005b366004610386565b610227565b5f805b828110156100995783838281811061007d5761007d610408565b905060200201358261008f919061041c565b9150600101610063565b506040517f23b872dd000000000000000000000000000000000000000000000000000000008152336004820152306024820152604481018290526001600160a01b038716906323b872dd906064016020604051808303815f875af1158015610103573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906101279190610441565b61012f575f5ffd5b5f5b8481101561021e57866001600160a01b031663a9059cbb87878481811061015a5761015a610408565b905060200201602081019061016f9190610467565b86868581811061018157610181610408565b6040517fffffffff0000000000000000000000000000000000000000000000000000000060e087901b1681526001600160a01b03909416600485015260200291909101356024830152506044016020604051808303815f875af11580156101ea573d5f5f3e3d5ffd5b505050506040513d601f19601f8201168201806040525081019061020e9190610441565b610216575f5ffd5b600101610131565b50505050505050565b5f5b8381101561031f57856001600160a01b03166323b872dd3387878581811061025357610253610408565b90506020020160208101906102689190610467565b86868681811061027a5761027a610408565b6040517fffffffff0000000000000000000000000000000000000000000000000000000060e088901b1681526001600160a01b039586166004820152949093166024850152506020909102013560448201526064016020604051808303815f875af11580156102eb573d5f5f3e3d5ffd5b505050506040513d601f19601f8201168201806040525081019061030f9190610441565b610317575f5ffd5b600101610229565b505050505050565b6001600160a01b038116811461033b575f5ffd5b50565b5f5f83601f84011261034e575f5ffd5b50813567ffffffffffffffff811115610365575f5ffd5b6020830191508360208260051b850101111561037f575f5ffd5b9250929050565b5f5f5f5f5f6060868803121561039a575f5ffd5b85356103a581610327565b9450602086013567ffffffffffffffff8111156103c0575f5ffd5b6103cc8882890161033e565b909550935050604086013567ffffffffffffffff8111156103eb575f5ffd5b6103f78882890161033e565b969995985093965092949392505050565b634e487b7160e01b5f52603260045260245ffd5b8082018082111561043b57634e487b7160e01b5f52601160045260245ffd5b92915050565b5f60208284031215610451575f5ffd5b81518015158114610460575f5ffd5b9392505050565b5f60208284031215610477575f5ffd5b81356104608161032756",
}

// Disperse is an auto generated Go binding around an Ethereum contract.
type Disperse struct {
	abi abi.ABI
}

// GetABI returns the ABI associated with this contract binding.
func (c *Disperse) GetABI() abi.ABI {
	return c.abi
}

// NewDisperse creates a new instance of Disperse.
func NewDisperse() *Disperse {
	parsed, err := DisperseMetaData.ParseABI()
	if err != nil {
		panic(errors.New("invalid ABI: " + err.Error()))
	}
	return &Disperse{abi: *parsed}
}

// Instance creates a wrapper for a deployed contract instance at the given address.
// Use this to create the instance object passed to abigen v2 library functions Call, Transact, etc.
func (c *Disperse) Instance(backend bind.ContractBackend, addr common.Address) *bind.BoundContract {
	return bind.NewBoundContract(addr, c.abi, backend, backend, backend)
}

// PackDisperse is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xc87b1ae3.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function disperse(address token, address[] to, uint256[] amounts) returns()
func (disperse *Disperse) PackDisperse(token common.Address, to []common.Address, amounts []*big.Int) []byte {
	enc, err := disperse.abi.Pack("disperse", token, to, amounts)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackDisperse is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xc87b1ae3.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function disperse(address token, address[] to, uint256[] amounts) returns()
func (disperse *Disperse) TryPackDisperse(token common.Address, to []common.Address, amounts []*big.Int) ([]byte, error) {
	return disperse.abi.Pack("disperse", token, to, amounts)
}

// PackDisperseThroughMe is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xbd96a7d7.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function disperseThroughMe(address token, address[] to, uint256[] amounts) returns()
func (disperse *Disperse) PackDisperseThroughMe(token common.Address, to []common.Address, amounts []*big.Int) []byte {
	enc, err := disperse.abi.Pack("disperseThroughMe", token, to, amounts)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackDisperseThroughMe is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xbd96a7d7.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function disperseThroughMe(address token, address[] to, uint256[] amounts) returns()
func (disperse *Disperse) TryPackDisperseThroughMe(token common.Address, to []common.Address, amounts []*big.Int) ([]byte, error) {
	return disperse.abi.Pack("disperseThroughMe", token, to, amounts)
}

// DrainerMetaData contains all meta data concerning the Drainer contract.
var DrainerMetaData = bind.MetaData{
	ABI: "[{\"inputs\":[{\"internalType\":\"contractIERC20\",\"name\":\"token\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"amount\",\"type\":\"uint256\"}],\"name\":\"drain\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"}]",
	ID:  "Drainer",
	Bin: "0x6080604052348015600e575f5ffd5b506101868061001c5f395ff3fe608060405234801561000f575f5ffd5b5060043610610029575f3560e01c8063496d38cf1461002d575b5f5ffd5b61004061003b366004610112565b610042565b005b6040517f23b872dd00000000000000000000000000000000000000000000000000000000815273ffffffffffffffffffffffffffffffffffffffff84811660048301528381166024830152604482018390528516906323b872dd906064016020604051808303815f875af11580156100bc573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906100e09190610160565b6100e8575f5ffd5b50505050565b73ffffffffffffffffffffffffffffffffffffffff8116811461010f575f5ffd5b50565b5f5f5f5f60808587031215610125575f5ffd5b8435610130816100ee565b93506020850135610140816100ee565b92506040850135610150816100ee565b9396929550929360600135925050565b5f60208284031215610170575f5ffd5b8151801515811461017f575f5ffd5b939250505056",
}

// Drainer is an auto generated Go binding around an Ethereum contract.
type Drainer struct {
	abi abi.ABI
}

// GetABI returns the ABI associated with this contract binding.
func (c *Drainer) GetABI() abi.ABI {
	return c.abi
}

// NewDrainer creates a new instance of Drainer.
func NewDrainer() *Drainer {
	parsed, err := DrainerMetaData.ParseABI()
	if err != nil {
		panic(errors.New("invalid ABI: " + err.Error()))
	}
	return &Drainer{abi: *parsed}
}

// Instance creates a wrapper for a deployed contract instance at the given address.
// Use this to create the instance object passed to abigen v2 library functions Call, Transact, etc.
func (c *Drainer) Instance(backend bind.ContractBackend, addr common.Address) *bind.BoundContract {
	return bind.NewBoundContract(addr, c.abi, backend, backend, backend)
}

// PackDrain is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x496d38cf.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function drain(address token, address from, address to, uint256 amount) returns()
func (drainer *Drainer) PackDrain(token common.Address, from common.Address, to common.Address, amount *big.Int) []byte {
	enc, err := drainer.abi.Pack("drain", token, from, to, amount)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackDrain is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x496d38cf.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function drain(address token, address from, address to, uint256 amount) returns()
func (drainer *Drainer) TryPackDrain(token common.Address, from common.Address, to common.Address, amount *big.Int) ([]byte, error) {
	return drainer.abi.Pack("drain", token, from, to, amount)
}

// FakeTokenMetaData contains all meta data concerning the FakeToken contract.
var FakeTokenMetaData = bind.MetaData{
	ABI: "[{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"Approval\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"Transfer\",\"type\":\"event\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"name\":\"allowance\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"pure\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"name\":\"approve\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"pure\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"holder\",\"type\":\"address\"}],\"name\":\"balanceOf\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"decimals\",\"outputs\":[{\"internalType\":\"uint8\",\"name\":\"\",\"type\":\"uint8\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"count\",\"type\":\"uint256\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"firstAmount\",\"type\":\"uint256\"}],\"name\":\"emitBulk\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address[]\",\"name\":\"to\",\"type\":\"address[]\"},{\"internalType\":\"uint256\",\"name\":\"amount\",\"type\":\"uint256\"}],\"name\":\"emitMany\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"name\",\"outputs\":[{\"internalType\":\"string\",\"name\":\"\",\"type\":\"string\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"pretend\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"symbol\",\"outputs\":[{\"internalType\":\"string\",\"name\":\"\",\"type\":\"string\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"totalSupply\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"transfer\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"transferFrom\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"},{\"internalType\":\"bytes32\",\"name\":\"\",\"type\":\"bytes32\"},{\"internalType\":\"uint8\",\"name\":\"\",\"type\":\"uint8\"},{\"internalType\":\"bytes32\",\"name\":\"\",\"type\":\"bytes32\"},{\"internalType\":\"bytes32\",\"name\":\"\",\"type\":\"bytes32\"}],\"name\":\"transferWithAuthorization\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"}]",
	ID:  "FakeToken",
	Bin: "0x6080604052348015600e575f5ffd5b5061066c8061001c5f395ff3fe608060405234801561000f575f5ffd5b50600436106100da575f3560e01c80637a86534711610088578063b2a42cef11610063578063b2a42cef14610218578063dd62ed3e1461022b578063e3ee160e14610241578063f48aa5e914610254575f5ffd5b80637a865347146101b457806395d89b41146101c9578063a9059cbb14610205575f5ffd5b806323b872dd116100b857806323b872dd14610168578063313ce5671461017b57806370a0823114610195575f5ffd5b806306fdde03146100de578063095ea7b31461013057806318160ddd14610153575b5f5ffd5b61011a6040518060400160405280600881526020017f55534420436f696e00000000000000000000000000000000000000000000000081525081565b604051610127919061041d565b60405180910390f35b61014361013e36600461046d565b610265565b6040519015158152602001610127565b61015a5f81565b604051908152602001610127565b610143610176366004610495565b61026e565b610183600681565b60405160ff9091168152602001610127565b61015a6101a33660046104cf565b5f6020819052908152604090205481565b6101c76101c23660046104ef565b610284565b005b61011a6040518060400160405280600481526020017f555344430000000000000000000000000000000000000000000000000000000081525081565b61014361021336600461046d565b61030f565b6101c7610226366004610564565b610324565b61015a610239366004610586565b5f1992915050565b6101c761024f3660046105b7565b61037d565b6101c76001805460ff191681179055565b60015b92915050565b5f61027a848484610393565b5060019392505050565b5f5b82811015610309578383828181106102a0576102a0610639565b90506020020160208101906102b591906104cf565b6001600160a01b0316336001600160a01b03167fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef846040516102f991815260200190565b60405180910390a3600101610286565b50505050565b5f61031b338484610393565b50600192915050565b5f5b83811015610309576001600160a01b038316337fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef610364848661064d565b60405190815260200160405180910390a3600101610326565b610388898989610393565b505050505050505050565b60015460ff16156103cb576001600160a01b0382165f90815260208190526040812080548392906103c590849061064d565b90915550505b816001600160a01b0316836001600160a01b03167fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef8360405161041091815260200190565b60405180910390a3505050565b602081525f82518060208401528060208501604085015e5f604082850101526040601f19601f83011684010191505092915050565b80356001600160a01b0381168114610468575f5ffd5b919050565b5f5f6040838503121561047e575f5ffd5b61048783610452565b946020939093013593505050565b5f5f5f606084860312156104a7575f5ffd5b6104b084610452565b92506104be60208501610452565b929592945050506040919091013590565b5f602082840312156104df575f5ffd5b6104e882610452565b9392505050565b5f5f5f60408486031215610501575f5ffd5b833567ffffffffffffffff811115610517575f5ffd5b8401601f81018613610527575f5ffd5b803567ffffffffffffffff81111561053d575f5ffd5b8660208260051b8401011115610551575f5ffd5b6020918201979096509401359392505050565b5f5f5f60608486031215610576575f5ffd5b833592506104be60208501610452565b5f5f60408385031215610597575f5ffd5b6105a083610452565b91506105ae60208401610452565b90509250929050565b5f5f5f5f5f5f5f5f5f6101208a8c0312156105d0575f5ffd5b6105d98a610452565b98506105e760208b01610452565b975060408a0135965060608a0135955060808a0135945060a08a0135935060c08a013560ff81168114610618575f5ffd5b989b979a50959894979396929550929360e081013593506101000135919050565b634e487b7160e01b5f52603260045260245ffd5b8082018082111561026857634e487b7160e01b5f52601160045260245ffd",
}

// FakeToken is an auto generated Go binding around an Ethereum contract.
type FakeToken struct {
	abi abi.ABI
}

// GetABI returns the ABI associated with this contract binding.
func (c *FakeToken) GetABI() abi.ABI {
	return c.abi
}

// NewFakeToken creates a new instance of FakeToken.
func NewFakeToken() *FakeToken {
	parsed, err := FakeTokenMetaData.ParseABI()
	if err != nil {
		panic(errors.New("invalid ABI: " + err.Error()))
	}
	return &FakeToken{abi: *parsed}
}

// Instance creates a wrapper for a deployed contract instance at the given address.
// Use this to create the instance object passed to abigen v2 library functions Call, Transact, etc.
func (c *FakeToken) Instance(backend bind.ContractBackend, addr common.Address) *bind.BoundContract {
	return bind.NewBoundContract(addr, c.abi, backend, backend, backend)
}

// PackAllowance is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xdd62ed3e.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function allowance(address , address ) pure returns(uint256)
func (fakeToken *FakeToken) PackAllowance(arg0 common.Address, arg1 common.Address) []byte {
	enc, err := fakeToken.abi.Pack("allowance", arg0, arg1)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackAllowance is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xdd62ed3e.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function allowance(address , address ) pure returns(uint256)
func (fakeToken *FakeToken) TryPackAllowance(arg0 common.Address, arg1 common.Address) ([]byte, error) {
	return fakeToken.abi.Pack("allowance", arg0, arg1)
}

// UnpackAllowance is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xdd62ed3e.
//
// Solidity: function allowance(address , address ) pure returns(uint256)
func (fakeToken *FakeToken) UnpackAllowance(data []byte) (*big.Int, error) {
	out, err := fakeToken.abi.Unpack("allowance", data)
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
// Solidity: function approve(address , uint256 ) pure returns(bool)
func (fakeToken *FakeToken) PackApprove(arg0 common.Address, arg1 *big.Int) []byte {
	enc, err := fakeToken.abi.Pack("approve", arg0, arg1)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackApprove is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x095ea7b3.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function approve(address , uint256 ) pure returns(bool)
func (fakeToken *FakeToken) TryPackApprove(arg0 common.Address, arg1 *big.Int) ([]byte, error) {
	return fakeToken.abi.Pack("approve", arg0, arg1)
}

// UnpackApprove is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x095ea7b3.
//
// Solidity: function approve(address , uint256 ) pure returns(bool)
func (fakeToken *FakeToken) UnpackApprove(data []byte) (bool, error) {
	out, err := fakeToken.abi.Unpack("approve", data)
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
// Solidity: function balanceOf(address holder) view returns(uint256)
func (fakeToken *FakeToken) PackBalanceOf(holder common.Address) []byte {
	enc, err := fakeToken.abi.Pack("balanceOf", holder)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackBalanceOf is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x70a08231.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function balanceOf(address holder) view returns(uint256)
func (fakeToken *FakeToken) TryPackBalanceOf(holder common.Address) ([]byte, error) {
	return fakeToken.abi.Pack("balanceOf", holder)
}

// UnpackBalanceOf is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x70a08231.
//
// Solidity: function balanceOf(address holder) view returns(uint256)
func (fakeToken *FakeToken) UnpackBalanceOf(data []byte) (*big.Int, error) {
	out, err := fakeToken.abi.Unpack("balanceOf", data)
	if err != nil {
		return new(big.Int), err
	}
	out0 := abi.ConvertType(out[0], new(big.Int)).(*big.Int)
	return out0, nil
}

// PackDecimals is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x313ce567.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function decimals() view returns(uint8)
func (fakeToken *FakeToken) PackDecimals() []byte {
	enc, err := fakeToken.abi.Pack("decimals")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackDecimals is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x313ce567.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function decimals() view returns(uint8)
func (fakeToken *FakeToken) TryPackDecimals() ([]byte, error) {
	return fakeToken.abi.Pack("decimals")
}

// UnpackDecimals is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x313ce567.
//
// Solidity: function decimals() view returns(uint8)
func (fakeToken *FakeToken) UnpackDecimals(data []byte) (uint8, error) {
	out, err := fakeToken.abi.Unpack("decimals", data)
	if err != nil {
		return *new(uint8), err
	}
	out0 := *abi.ConvertType(out[0], new(uint8)).(*uint8)
	return out0, nil
}

// PackEmitBulk is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xb2a42cef.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function emitBulk(uint256 count, address to, uint256 firstAmount) returns()
func (fakeToken *FakeToken) PackEmitBulk(count *big.Int, to common.Address, firstAmount *big.Int) []byte {
	enc, err := fakeToken.abi.Pack("emitBulk", count, to, firstAmount)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackEmitBulk is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xb2a42cef.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function emitBulk(uint256 count, address to, uint256 firstAmount) returns()
func (fakeToken *FakeToken) TryPackEmitBulk(count *big.Int, to common.Address, firstAmount *big.Int) ([]byte, error) {
	return fakeToken.abi.Pack("emitBulk", count, to, firstAmount)
}

// PackEmitMany is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x7a865347.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function emitMany(address[] to, uint256 amount) returns()
func (fakeToken *FakeToken) PackEmitMany(to []common.Address, amount *big.Int) []byte {
	enc, err := fakeToken.abi.Pack("emitMany", to, amount)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackEmitMany is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x7a865347.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function emitMany(address[] to, uint256 amount) returns()
func (fakeToken *FakeToken) TryPackEmitMany(to []common.Address, amount *big.Int) ([]byte, error) {
	return fakeToken.abi.Pack("emitMany", to, amount)
}

// PackName is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x06fdde03.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function name() view returns(string)
func (fakeToken *FakeToken) PackName() []byte {
	enc, err := fakeToken.abi.Pack("name")
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
func (fakeToken *FakeToken) TryPackName() ([]byte, error) {
	return fakeToken.abi.Pack("name")
}

// UnpackName is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x06fdde03.
//
// Solidity: function name() view returns(string)
func (fakeToken *FakeToken) UnpackName(data []byte) (string, error) {
	out, err := fakeToken.abi.Unpack("name", data)
	if err != nil {
		return *new(string), err
	}
	out0 := *abi.ConvertType(out[0], new(string)).(*string)
	return out0, nil
}

// PackPretend is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xf48aa5e9.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function pretend() returns()
func (fakeToken *FakeToken) PackPretend() []byte {
	enc, err := fakeToken.abi.Pack("pretend")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackPretend is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xf48aa5e9.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function pretend() returns()
func (fakeToken *FakeToken) TryPackPretend() ([]byte, error) {
	return fakeToken.abi.Pack("pretend")
}

// PackSymbol is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x95d89b41.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function symbol() view returns(string)
func (fakeToken *FakeToken) PackSymbol() []byte {
	enc, err := fakeToken.abi.Pack("symbol")
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
func (fakeToken *FakeToken) TryPackSymbol() ([]byte, error) {
	return fakeToken.abi.Pack("symbol")
}

// UnpackSymbol is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x95d89b41.
//
// Solidity: function symbol() view returns(string)
func (fakeToken *FakeToken) UnpackSymbol(data []byte) (string, error) {
	out, err := fakeToken.abi.Unpack("symbol", data)
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
func (fakeToken *FakeToken) PackTotalSupply() []byte {
	enc, err := fakeToken.abi.Pack("totalSupply")
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
func (fakeToken *FakeToken) TryPackTotalSupply() ([]byte, error) {
	return fakeToken.abi.Pack("totalSupply")
}

// UnpackTotalSupply is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x18160ddd.
//
// Solidity: function totalSupply() view returns(uint256)
func (fakeToken *FakeToken) UnpackTotalSupply(data []byte) (*big.Int, error) {
	out, err := fakeToken.abi.Unpack("totalSupply", data)
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
func (fakeToken *FakeToken) PackTransfer(to common.Address, value *big.Int) []byte {
	enc, err := fakeToken.abi.Pack("transfer", to, value)
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
func (fakeToken *FakeToken) TryPackTransfer(to common.Address, value *big.Int) ([]byte, error) {
	return fakeToken.abi.Pack("transfer", to, value)
}

// UnpackTransfer is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xa9059cbb.
//
// Solidity: function transfer(address to, uint256 value) returns(bool)
func (fakeToken *FakeToken) UnpackTransfer(data []byte) (bool, error) {
	out, err := fakeToken.abi.Unpack("transfer", data)
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
func (fakeToken *FakeToken) PackTransferFrom(from common.Address, to common.Address, value *big.Int) []byte {
	enc, err := fakeToken.abi.Pack("transferFrom", from, to, value)
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
func (fakeToken *FakeToken) TryPackTransferFrom(from common.Address, to common.Address, value *big.Int) ([]byte, error) {
	return fakeToken.abi.Pack("transferFrom", from, to, value)
}

// UnpackTransferFrom is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x23b872dd.
//
// Solidity: function transferFrom(address from, address to, uint256 value) returns(bool)
func (fakeToken *FakeToken) UnpackTransferFrom(data []byte) (bool, error) {
	out, err := fakeToken.abi.Unpack("transferFrom", data)
	if err != nil {
		return *new(bool), err
	}
	out0 := *abi.ConvertType(out[0], new(bool)).(*bool)
	return out0, nil
}

// PackTransferWithAuthorization is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xe3ee160e.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function transferWithAuthorization(address from, address to, uint256 value, uint256 , uint256 , bytes32 , uint8 , bytes32 , bytes32 ) returns()
func (fakeToken *FakeToken) PackTransferWithAuthorization(from common.Address, to common.Address, value *big.Int, arg3 *big.Int, arg4 *big.Int, arg5 [32]byte, arg6 uint8, arg7 [32]byte, arg8 [32]byte) []byte {
	enc, err := fakeToken.abi.Pack("transferWithAuthorization", from, to, value, arg3, arg4, arg5, arg6, arg7, arg8)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackTransferWithAuthorization is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xe3ee160e.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function transferWithAuthorization(address from, address to, uint256 value, uint256 , uint256 , bytes32 , uint8 , bytes32 , bytes32 ) returns()
func (fakeToken *FakeToken) TryPackTransferWithAuthorization(from common.Address, to common.Address, value *big.Int, arg3 *big.Int, arg4 *big.Int, arg5 [32]byte, arg6 uint8, arg7 [32]byte, arg8 [32]byte) ([]byte, error) {
	return fakeToken.abi.Pack("transferWithAuthorization", from, to, value, arg3, arg4, arg5, arg6, arg7, arg8)
}

// FakeTokenApproval represents a Approval event raised by the FakeToken contract.
type FakeTokenApproval struct {
	Owner   common.Address
	Spender common.Address
	Value   *big.Int
	Raw     *types.Log // Blockchain specific contextual infos
}

const FakeTokenApprovalEventName = "Approval"

// ContractEventName returns the user-defined event name.
func (FakeTokenApproval) ContractEventName() string {
	return FakeTokenApprovalEventName
}

// UnpackApprovalEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event Approval(address indexed owner, address indexed spender, uint256 value)
func (fakeToken *FakeToken) UnpackApprovalEvent(log *types.Log) (*FakeTokenApproval, error) {
	event := "Approval"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != fakeToken.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(FakeTokenApproval)
	if len(log.Data) > 0 {
		if err := fakeToken.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range fakeToken.abi.Events[event].Inputs {
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

// FakeTokenTransfer represents a Transfer event raised by the FakeToken contract.
type FakeTokenTransfer struct {
	From  common.Address
	To    common.Address
	Value *big.Int
	Raw   *types.Log // Blockchain specific contextual infos
}

const FakeTokenTransferEventName = "Transfer"

// ContractEventName returns the user-defined event name.
func (FakeTokenTransfer) ContractEventName() string {
	return FakeTokenTransferEventName
}

// UnpackTransferEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event Transfer(address indexed from, address indexed to, uint256 value)
func (fakeToken *FakeToken) UnpackTransferEvent(log *types.Log) (*FakeTokenTransfer, error) {
	event := "Transfer"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != fakeToken.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(FakeTokenTransfer)
	if len(log.Data) > 0 {
		if err := fakeToken.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range fakeToken.abi.Events[event].Inputs {
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

// FeeTokenMetaData contains all meta data concerning the FeeToken contract.
var FeeTokenMetaData = bind.MetaData{
	ABI: "[{\"inputs\":[{\"internalType\":\"address\",\"name\":\"holder\",\"type\":\"address\"}],\"stateMutability\":\"nonpayable\",\"type\":\"constructor\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"Approval\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"Transfer\",\"type\":\"event\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"holder\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"}],\"name\":\"allowance\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"approve\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"holder\",\"type\":\"address\"}],\"name\":\"balanceOf\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"enumFeeToken.Manner\",\"name\":\"manner_\",\"type\":\"uint8\"}],\"name\":\"behave\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"collector\",\"outputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"decimals\",\"outputs\":[{\"internalType\":\"uint8\",\"name\":\"\",\"type\":\"uint8\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"manner\",\"outputs\":[{\"internalType\":\"enumFeeToken.Manner\",\"name\":\"\",\"type\":\"uint8\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"name\",\"outputs\":[{\"internalType\":\"string\",\"name\":\"\",\"type\":\"string\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"symbol\",\"outputs\":[{\"internalType\":\"string\",\"name\":\"\",\"type\":\"string\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"transfer\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"transferFrom\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"}]",
	ID:  "FeeToken",
	Bin: "0x6080604052348015600e575f5ffd5b506040516107d83803806107d8833981016040819052602b916084565b6001600160a01b0381165f81815260016020908152604080832064e8d4a510009081905590519081527fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef910160405180910390a35060af565b5f602082840312156093575f5ffd5b81516001600160a01b038116811460a8575f5ffd5b9392505050565b61071c806100bc5f395ff3fe608060405234801561000f575f5ffd5b50600436106100c4575f3560e01c806370a082311161007d578063a9059cbb11610058578063a9059cbb14610209578063d8c8ac2d1461021c578063dd62ed3e14610235575f5ffd5b806370a082311461017f578063913e77ad146101ac57806395d89b41146101cd575f5ffd5b80631ed22158116100ad5780631ed221581461013d57806323b872dd14610152578063313ce56714610165575f5ffd5b806306fdde03146100c8578063095ea7b31461011a575b5f5ffd5b6101046040518060400160405280600381526020017f466565000000000000000000000000000000000000000000000000000000000081525081565b6040516101119190610568565b60405180910390f35b61012d6101283660046105b8565b61025f565b6040519015158152602001610111565b61015061014b3660046105e0565b6102cb565b005b61012d610160366004610605565b6102f1565b61016d600681565b60405160ff9091168152602001610111565b61019e61018d36600461063f565b60016020525f908152604090205481565b604051908152602001610111565b6101b5610fee81565b6040516001600160a01b039091168152602001610111565b6101046040518060400160405280600381526020017f464545000000000000000000000000000000000000000000000000000000000081525081565b61012d6102173660046105b8565b610340565b5f546102289060ff1681565b604051610111919061066c565b61019e610243366004610692565b600260209081525f928352604080842090915290825290205481565b335f8181526002602090815260408083206001600160a01b038716808552925280832085905551919290917f8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925906102b99086815260200190565b60405180910390a35060015b92915050565b5f805482919060ff191660018360028111156102e9576102e9610658565b021790555050565b6001600160a01b0383165f9081526002602090815260408083203384529091528120805483919083906103259084906106d7565b909155506103369050848484610355565b5060019392505050565b5f61034c338484610355565b50600192915050565b5f6103616064836106ea565b6001600160a01b0385165f9081526001602052604081208054929350849290919061038d9084906106d7565b9091555061039d905081836106d7565b6001600160a01b0384165f90815260016020526040812080549091906103c4908490610709565b90915550600190505f5460ff1660028111156103e2576103e2610658565b036104bc57610fee5f90815260016020527f89071b3a1e134ec084a931c4cc894de0e2a551e356a26ede09f9f03e4d2366d88054839290610424908490610709565b90915550506001600160a01b038084169085167fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef61046284866106d7565b60405190815260200160405180910390a3604051818152610fee906001600160a01b038616907fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef906020015b60405180910390a350505050565b826001600160a01b0316846001600160a01b03167fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef8460405161050191815260200190565b60405180910390a35f5f5460ff16600281111561052057610520610658565b03610562576040518181525f906001600160a01b038516907fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef906020016104ae565b50505050565b602081525f82518060208401528060208501604085015e5f604082850101526040601f19601f83011684010191505092915050565b80356001600160a01b03811681146105b3575f5ffd5b919050565b5f5f604083850312156105c9575f5ffd5b6105d28361059d565b946020939093013593505050565b5f602082840312156105f0575f5ffd5b8135600381106105fe575f5ffd5b9392505050565b5f5f5f60608486031215610617575f5ffd5b6106208461059d565b925061062e6020850161059d565b929592945050506040919091013590565b5f6020828403121561064f575f5ffd5b6105fe8261059d565b634e487b7160e01b5f52602160045260245ffd5b602081016003831061068c57634e487b7160e01b5f52602160045260245ffd5b91905290565b5f5f604083850312156106a3575f5ffd5b6106ac8361059d565b91506106ba6020840161059d565b90509250929050565b634e487b7160e01b5f52601160045260245ffd5b818103818111156102c5576102c56106c3565b5f8261070457634e487b7160e01b5f52601260045260245ffd5b500490565b808201808211156102c5576102c56106c356",
}

// FeeToken is an auto generated Go binding around an Ethereum contract.
type FeeToken struct {
	abi abi.ABI
}

// GetABI returns the ABI associated with this contract binding.
func (c *FeeToken) GetABI() abi.ABI {
	return c.abi
}

// NewFeeToken creates a new instance of FeeToken.
func NewFeeToken() *FeeToken {
	parsed, err := FeeTokenMetaData.ParseABI()
	if err != nil {
		panic(errors.New("invalid ABI: " + err.Error()))
	}
	return &FeeToken{abi: *parsed}
}

// Instance creates a wrapper for a deployed contract instance at the given address.
// Use this to create the instance object passed to abigen v2 library functions Call, Transact, etc.
func (c *FeeToken) Instance(backend bind.ContractBackend, addr common.Address) *bind.BoundContract {
	return bind.NewBoundContract(addr, c.abi, backend, backend, backend)
}

// PackConstructor is the Go binding used to pack the parameters required for
// contract deployment.
//
// Solidity: constructor(address holder) returns()
func (feeToken *FeeToken) PackConstructor(holder common.Address) []byte {
	enc, err := feeToken.abi.Pack("", holder)
	if err != nil {
		panic(err)
	}
	return enc
}

// PackAllowance is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xdd62ed3e.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function allowance(address holder, address spender) view returns(uint256)
func (feeToken *FeeToken) PackAllowance(holder common.Address, spender common.Address) []byte {
	enc, err := feeToken.abi.Pack("allowance", holder, spender)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackAllowance is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xdd62ed3e.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function allowance(address holder, address spender) view returns(uint256)
func (feeToken *FeeToken) TryPackAllowance(holder common.Address, spender common.Address) ([]byte, error) {
	return feeToken.abi.Pack("allowance", holder, spender)
}

// UnpackAllowance is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xdd62ed3e.
//
// Solidity: function allowance(address holder, address spender) view returns(uint256)
func (feeToken *FeeToken) UnpackAllowance(data []byte) (*big.Int, error) {
	out, err := feeToken.abi.Unpack("allowance", data)
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
func (feeToken *FeeToken) PackApprove(spender common.Address, value *big.Int) []byte {
	enc, err := feeToken.abi.Pack("approve", spender, value)
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
func (feeToken *FeeToken) TryPackApprove(spender common.Address, value *big.Int) ([]byte, error) {
	return feeToken.abi.Pack("approve", spender, value)
}

// UnpackApprove is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x095ea7b3.
//
// Solidity: function approve(address spender, uint256 value) returns(bool)
func (feeToken *FeeToken) UnpackApprove(data []byte) (bool, error) {
	out, err := feeToken.abi.Unpack("approve", data)
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
// Solidity: function balanceOf(address holder) view returns(uint256)
func (feeToken *FeeToken) PackBalanceOf(holder common.Address) []byte {
	enc, err := feeToken.abi.Pack("balanceOf", holder)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackBalanceOf is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x70a08231.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function balanceOf(address holder) view returns(uint256)
func (feeToken *FeeToken) TryPackBalanceOf(holder common.Address) ([]byte, error) {
	return feeToken.abi.Pack("balanceOf", holder)
}

// UnpackBalanceOf is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x70a08231.
//
// Solidity: function balanceOf(address holder) view returns(uint256)
func (feeToken *FeeToken) UnpackBalanceOf(data []byte) (*big.Int, error) {
	out, err := feeToken.abi.Unpack("balanceOf", data)
	if err != nil {
		return new(big.Int), err
	}
	out0 := abi.ConvertType(out[0], new(big.Int)).(*big.Int)
	return out0, nil
}

// PackBehave is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x1ed22158.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function behave(uint8 manner_) returns()
func (feeToken *FeeToken) PackBehave(manner uint8) []byte {
	enc, err := feeToken.abi.Pack("behave", manner)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackBehave is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x1ed22158.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function behave(uint8 manner_) returns()
func (feeToken *FeeToken) TryPackBehave(manner uint8) ([]byte, error) {
	return feeToken.abi.Pack("behave", manner)
}

// PackCollector is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x913e77ad.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function collector() view returns(address)
func (feeToken *FeeToken) PackCollector() []byte {
	enc, err := feeToken.abi.Pack("collector")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackCollector is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x913e77ad.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function collector() view returns(address)
func (feeToken *FeeToken) TryPackCollector() ([]byte, error) {
	return feeToken.abi.Pack("collector")
}

// UnpackCollector is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x913e77ad.
//
// Solidity: function collector() view returns(address)
func (feeToken *FeeToken) UnpackCollector(data []byte) (common.Address, error) {
	out, err := feeToken.abi.Unpack("collector", data)
	if err != nil {
		return *new(common.Address), err
	}
	out0 := *abi.ConvertType(out[0], new(common.Address)).(*common.Address)
	return out0, nil
}

// PackDecimals is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x313ce567.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function decimals() view returns(uint8)
func (feeToken *FeeToken) PackDecimals() []byte {
	enc, err := feeToken.abi.Pack("decimals")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackDecimals is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x313ce567.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function decimals() view returns(uint8)
func (feeToken *FeeToken) TryPackDecimals() ([]byte, error) {
	return feeToken.abi.Pack("decimals")
}

// UnpackDecimals is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x313ce567.
//
// Solidity: function decimals() view returns(uint8)
func (feeToken *FeeToken) UnpackDecimals(data []byte) (uint8, error) {
	out, err := feeToken.abi.Unpack("decimals", data)
	if err != nil {
		return *new(uint8), err
	}
	out0 := *abi.ConvertType(out[0], new(uint8)).(*uint8)
	return out0, nil
}

// PackManner is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xd8c8ac2d.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function manner() view returns(uint8)
func (feeToken *FeeToken) PackManner() []byte {
	enc, err := feeToken.abi.Pack("manner")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackManner is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xd8c8ac2d.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function manner() view returns(uint8)
func (feeToken *FeeToken) TryPackManner() ([]byte, error) {
	return feeToken.abi.Pack("manner")
}

// UnpackManner is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xd8c8ac2d.
//
// Solidity: function manner() view returns(uint8)
func (feeToken *FeeToken) UnpackManner(data []byte) (uint8, error) {
	out, err := feeToken.abi.Unpack("manner", data)
	if err != nil {
		return *new(uint8), err
	}
	out0 := *abi.ConvertType(out[0], new(uint8)).(*uint8)
	return out0, nil
}

// PackName is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x06fdde03.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function name() view returns(string)
func (feeToken *FeeToken) PackName() []byte {
	enc, err := feeToken.abi.Pack("name")
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
func (feeToken *FeeToken) TryPackName() ([]byte, error) {
	return feeToken.abi.Pack("name")
}

// UnpackName is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x06fdde03.
//
// Solidity: function name() view returns(string)
func (feeToken *FeeToken) UnpackName(data []byte) (string, error) {
	out, err := feeToken.abi.Unpack("name", data)
	if err != nil {
		return *new(string), err
	}
	out0 := *abi.ConvertType(out[0], new(string)).(*string)
	return out0, nil
}

// PackSymbol is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x95d89b41.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function symbol() view returns(string)
func (feeToken *FeeToken) PackSymbol() []byte {
	enc, err := feeToken.abi.Pack("symbol")
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
func (feeToken *FeeToken) TryPackSymbol() ([]byte, error) {
	return feeToken.abi.Pack("symbol")
}

// UnpackSymbol is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x95d89b41.
//
// Solidity: function symbol() view returns(string)
func (feeToken *FeeToken) UnpackSymbol(data []byte) (string, error) {
	out, err := feeToken.abi.Unpack("symbol", data)
	if err != nil {
		return *new(string), err
	}
	out0 := *abi.ConvertType(out[0], new(string)).(*string)
	return out0, nil
}

// PackTransfer is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xa9059cbb.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function transfer(address to, uint256 value) returns(bool)
func (feeToken *FeeToken) PackTransfer(to common.Address, value *big.Int) []byte {
	enc, err := feeToken.abi.Pack("transfer", to, value)
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
func (feeToken *FeeToken) TryPackTransfer(to common.Address, value *big.Int) ([]byte, error) {
	return feeToken.abi.Pack("transfer", to, value)
}

// UnpackTransfer is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xa9059cbb.
//
// Solidity: function transfer(address to, uint256 value) returns(bool)
func (feeToken *FeeToken) UnpackTransfer(data []byte) (bool, error) {
	out, err := feeToken.abi.Unpack("transfer", data)
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
func (feeToken *FeeToken) PackTransferFrom(from common.Address, to common.Address, value *big.Int) []byte {
	enc, err := feeToken.abi.Pack("transferFrom", from, to, value)
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
func (feeToken *FeeToken) TryPackTransferFrom(from common.Address, to common.Address, value *big.Int) ([]byte, error) {
	return feeToken.abi.Pack("transferFrom", from, to, value)
}

// UnpackTransferFrom is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x23b872dd.
//
// Solidity: function transferFrom(address from, address to, uint256 value) returns(bool)
func (feeToken *FeeToken) UnpackTransferFrom(data []byte) (bool, error) {
	out, err := feeToken.abi.Unpack("transferFrom", data)
	if err != nil {
		return *new(bool), err
	}
	out0 := *abi.ConvertType(out[0], new(bool)).(*bool)
	return out0, nil
}

// FeeTokenApproval represents a Approval event raised by the FeeToken contract.
type FeeTokenApproval struct {
	Owner   common.Address
	Spender common.Address
	Value   *big.Int
	Raw     *types.Log // Blockchain specific contextual infos
}

const FeeTokenApprovalEventName = "Approval"

// ContractEventName returns the user-defined event name.
func (FeeTokenApproval) ContractEventName() string {
	return FeeTokenApprovalEventName
}

// UnpackApprovalEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event Approval(address indexed owner, address indexed spender, uint256 value)
func (feeToken *FeeToken) UnpackApprovalEvent(log *types.Log) (*FeeTokenApproval, error) {
	event := "Approval"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != feeToken.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(FeeTokenApproval)
	if len(log.Data) > 0 {
		if err := feeToken.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range feeToken.abi.Events[event].Inputs {
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

// FeeTokenTransfer represents a Transfer event raised by the FeeToken contract.
type FeeTokenTransfer struct {
	From  common.Address
	To    common.Address
	Value *big.Int
	Raw   *types.Log // Blockchain specific contextual infos
}

const FeeTokenTransferEventName = "Transfer"

// ContractEventName returns the user-defined event name.
func (FeeTokenTransfer) ContractEventName() string {
	return FeeTokenTransferEventName
}

// UnpackTransferEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event Transfer(address indexed from, address indexed to, uint256 value)
func (feeToken *FeeToken) UnpackTransferEvent(log *types.Log) (*FeeTokenTransfer, error) {
	event := "Transfer"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != feeToken.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(FeeTokenTransfer)
	if len(log.Data) > 0 {
		if err := feeToken.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range feeToken.abi.Events[event].Inputs {
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

// LookalikeMetaData contains all meta data concerning the Lookalike contract.
var LookalikeMetaData = bind.MetaData{
	ABI: "[{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"authorizer\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"}],\"name\":\"AuthorizationUsed\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"bytes32\",\"name\":\"id\",\"type\":\"bytes32\"}],\"name\":\"Closed\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"bytes32\",\"name\":\"id\",\"type\":\"bytes32\"}],\"name\":\"Opened\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"bytes32\",\"name\":\"id\",\"type\":\"bytes32\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"payer\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"merchant\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"amount\",\"type\":\"uint256\"}],\"name\":\"Paid\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"Transfer\",\"type\":\"event\"},{\"inputs\":[{\"internalType\":\"bytes32\",\"name\":\"id\",\"type\":\"bytes32\"},{\"internalType\":\"contractIERC20\",\"name\":\"token\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"merchant\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"moved\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"told\",\"type\":\"uint256\"}],\"name\":\"embellish\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"bytes32\",\"name\":\"id\",\"type\":\"bytes32\"},{\"internalType\":\"address\",\"name\":\"payer\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"merchant\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"amount\",\"type\":\"uint256\"}],\"name\":\"tell\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"}]",
	ID:  "Lookalike",
	Bin: "0x6080604052348015600e575f5ffd5b506103388061001c5f395ff3fe608060405234801561000f575f5ffd5b5060043610610034575f3560e01c80633bfb278a14610038578063ab487c7c1461004d575b5f5ffd5b61004b61004636600461026d565b610060565b005b61004b61005b3660046102bb565b610118565b61006d8533858785610180565b6040517f23b872dd0000000000000000000000000000000000000000000000000000000081523360048201526001600160a01b038481166024830152604482018490528516906323b872dd906064016020604051808303815f875af11580156100d8573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906100fc9190610312565b610104575f5ffd5b6101118533858785610180565b5050505050565b60405185907fd087f17acc177540af5f382bc30c65363705b90855144d285a822536ee11fdd1905f90a261014f8585858585610180565b60405185907f7b6ac8bce3193cb9464e9070476bf8926e449f5f743f8c7578eea15265467d79905f90a25050505050565b60405185906001600160a01b038616907f98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5905f90a3826001600160a01b0316846001600160a01b03167fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef836040516101fa91815260200190565b60405180910390a3604080516001600160a01b03848116825260208201849052808616929087169188917f060bb954af967ecb7aa08a0072a7f8fe308ceee2f5d15f4a9d4a5275a5fe79e9910160405180910390a45050505050565b6001600160a01b038116811461026a575f5ffd5b50565b5f5f5f5f5f60a08688031215610281575f5ffd5b85359450602086013561029381610256565b935060408601356102a381610256565b94979396509394606081013594506080013592915050565b5f5f5f5f5f60a086880312156102cf575f5ffd5b8535945060208601356102e181610256565b935060408601356102f181610256565b9250606086013561030181610256565b949793965091946080013592915050565b5f60208284031215610322575f5ffd5b81518015158114610331575f5ffd5b939250505056",
}

// Lookalike is an auto generated Go binding around an Ethereum contract.
type Lookalike struct {
	abi abi.ABI
}

// GetABI returns the ABI associated with this contract binding.
func (c *Lookalike) GetABI() abi.ABI {
	return c.abi
}

// NewLookalike creates a new instance of Lookalike.
func NewLookalike() *Lookalike {
	parsed, err := LookalikeMetaData.ParseABI()
	if err != nil {
		panic(errors.New("invalid ABI: " + err.Error()))
	}
	return &Lookalike{abi: *parsed}
}

// Instance creates a wrapper for a deployed contract instance at the given address.
// Use this to create the instance object passed to abigen v2 library functions Call, Transact, etc.
func (c *Lookalike) Instance(backend bind.ContractBackend, addr common.Address) *bind.BoundContract {
	return bind.NewBoundContract(addr, c.abi, backend, backend, backend)
}

// PackEmbellish is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x3bfb278a.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function embellish(bytes32 id, address token, address merchant, uint256 moved, uint256 told) returns()
func (lookalike *Lookalike) PackEmbellish(id [32]byte, token common.Address, merchant common.Address, moved *big.Int, told *big.Int) []byte {
	enc, err := lookalike.abi.Pack("embellish", id, token, merchant, moved, told)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackEmbellish is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x3bfb278a.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function embellish(bytes32 id, address token, address merchant, uint256 moved, uint256 told) returns()
func (lookalike *Lookalike) TryPackEmbellish(id [32]byte, token common.Address, merchant common.Address, moved *big.Int, told *big.Int) ([]byte, error) {
	return lookalike.abi.Pack("embellish", id, token, merchant, moved, told)
}

// PackTell is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xab487c7c.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function tell(bytes32 id, address payer, address merchant, address token, uint256 amount) returns()
func (lookalike *Lookalike) PackTell(id [32]byte, payer common.Address, merchant common.Address, token common.Address, amount *big.Int) []byte {
	enc, err := lookalike.abi.Pack("tell", id, payer, merchant, token, amount)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackTell is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xab487c7c.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function tell(bytes32 id, address payer, address merchant, address token, uint256 amount) returns()
func (lookalike *Lookalike) TryPackTell(id [32]byte, payer common.Address, merchant common.Address, token common.Address, amount *big.Int) ([]byte, error) {
	return lookalike.abi.Pack("tell", id, payer, merchant, token, amount)
}

// LookalikeAuthorizationUsed represents a AuthorizationUsed event raised by the Lookalike contract.
type LookalikeAuthorizationUsed struct {
	Authorizer common.Address
	Nonce      [32]byte
	Raw        *types.Log // Blockchain specific contextual infos
}

const LookalikeAuthorizationUsedEventName = "AuthorizationUsed"

// ContractEventName returns the user-defined event name.
func (LookalikeAuthorizationUsed) ContractEventName() string {
	return LookalikeAuthorizationUsedEventName
}

// UnpackAuthorizationUsedEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)
func (lookalike *Lookalike) UnpackAuthorizationUsedEvent(log *types.Log) (*LookalikeAuthorizationUsed, error) {
	event := "AuthorizationUsed"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != lookalike.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(LookalikeAuthorizationUsed)
	if len(log.Data) > 0 {
		if err := lookalike.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range lookalike.abi.Events[event].Inputs {
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

// LookalikeClosed represents a Closed event raised by the Lookalike contract.
type LookalikeClosed struct {
	Id  [32]byte
	Raw *types.Log // Blockchain specific contextual infos
}

const LookalikeClosedEventName = "Closed"

// ContractEventName returns the user-defined event name.
func (LookalikeClosed) ContractEventName() string {
	return LookalikeClosedEventName
}

// UnpackClosedEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event Closed(bytes32 indexed id)
func (lookalike *Lookalike) UnpackClosedEvent(log *types.Log) (*LookalikeClosed, error) {
	event := "Closed"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != lookalike.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(LookalikeClosed)
	if len(log.Data) > 0 {
		if err := lookalike.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range lookalike.abi.Events[event].Inputs {
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

// LookalikeOpened represents a Opened event raised by the Lookalike contract.
type LookalikeOpened struct {
	Id  [32]byte
	Raw *types.Log // Blockchain specific contextual infos
}

const LookalikeOpenedEventName = "Opened"

// ContractEventName returns the user-defined event name.
func (LookalikeOpened) ContractEventName() string {
	return LookalikeOpenedEventName
}

// UnpackOpenedEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event Opened(bytes32 indexed id)
func (lookalike *Lookalike) UnpackOpenedEvent(log *types.Log) (*LookalikeOpened, error) {
	event := "Opened"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != lookalike.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(LookalikeOpened)
	if len(log.Data) > 0 {
		if err := lookalike.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range lookalike.abi.Events[event].Inputs {
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

// LookalikePaid represents a Paid event raised by the Lookalike contract.
type LookalikePaid struct {
	Id       [32]byte
	Payer    common.Address
	Merchant common.Address
	Token    common.Address
	Amount   *big.Int
	Raw      *types.Log // Blockchain specific contextual infos
}

const LookalikePaidEventName = "Paid"

// ContractEventName returns the user-defined event name.
func (LookalikePaid) ContractEventName() string {
	return LookalikePaidEventName
}

// UnpackPaidEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event Paid(bytes32 indexed id, address indexed payer, address indexed merchant, address token, uint256 amount)
func (lookalike *Lookalike) UnpackPaidEvent(log *types.Log) (*LookalikePaid, error) {
	event := "Paid"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != lookalike.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(LookalikePaid)
	if len(log.Data) > 0 {
		if err := lookalike.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range lookalike.abi.Events[event].Inputs {
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

// LookalikeTransfer represents a Transfer event raised by the Lookalike contract.
type LookalikeTransfer struct {
	From  common.Address
	To    common.Address
	Value *big.Int
	Raw   *types.Log // Blockchain specific contextual infos
}

const LookalikeTransferEventName = "Transfer"

// ContractEventName returns the user-defined event name.
func (LookalikeTransfer) ContractEventName() string {
	return LookalikeTransferEventName
}

// UnpackTransferEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event Transfer(address indexed from, address indexed to, uint256 value)
func (lookalike *Lookalike) UnpackTransferEvent(log *types.Log) (*LookalikeTransfer, error) {
	event := "Transfer"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != lookalike.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(LookalikeTransfer)
	if len(log.Data) > 0 {
		if err := lookalike.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range lookalike.abi.Events[event].Inputs {
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

// MerchantWalletMetaData contains all meta data concerning the MerchantWallet contract.
var MerchantWalletMetaData = bind.MetaData{
	ABI: "[{\"inputs\":[{\"internalType\":\"address\",\"name\":\"token\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validBefore\",\"type\":\"uint256\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"},{\"internalType\":\"bytes\",\"name\":\"signature\",\"type\":\"bytes\"},{\"internalType\":\"address\",\"name\":\"treasury\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"onward\",\"type\":\"uint256\"}],\"name\":\"collect\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"contractIERC20\",\"name\":\"token\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"amount\",\"type\":\"uint256\"}],\"name\":\"send\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"}]",
	ID:  "MerchantWallet",
	Bin: "0x6080604052348015600e575f5ffd5b506103a98061001c5f395ff3fe608060405234801561000f575f5ffd5b5060043610610034575f3560e01c80630779afe6146100385780638c9a61a11461004d575b5f5ffd5b61004b61004636600461020f565b610060565b005b61004b61005b36600461024d565b6100dd565b60405163a9059cbb60e01b81526001600160a01b0383811660048301526024820183905284169063a9059cbb906044016020604051808303815f875af11580156100ac573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906100d09190610317565b6100d8575f5ffd5b505050565b6040517f88b7ab630000000000000000000000000000000000000000000000000000000081526001600160a01b038a16906388b7ab6390610130908b9030908c905f908d908d908d908d9060040161033d565b5f604051808303815f87803b158015610147575f5ffd5b505af1158015610159573d5f5f3e3d5ffd5b505050505f8111156101dd5760405163a9059cbb60e01b81526001600160a01b038381166004830152602482018390528a169063a9059cbb906044016020604051808303815f875af11580156101b1573d5f5f3e3d5ffd5b505050506040513d601f19601f820116820180604052508101906101d59190610317565b6101dd575f5ffd5b505050505050505050565b6001600160a01b03811681146101fc575f5ffd5b50565b803561020a816101e8565b919050565b5f5f5f60608486031215610221575f5ffd5b833561022c816101e8565b9250602084013561023c816101e8565b929592945050506040919091013590565b5f5f5f5f5f5f5f5f5f6101008a8c031215610266575f5ffd5b8935610271816101e8565b985060208a0135610281816101e8565b975060408a0135965060608a0135955060808a0135945060a08a013567ffffffffffffffff8111156102b1575f5ffd5b8a01601f81018c136102c1575f5ffd5b803567ffffffffffffffff8111156102d7575f5ffd5b8c60208284010111156102e8575f5ffd5b602091909101945092506102fe60c08b016101ff565b989b979a50959894979396929550909360e00135919050565b5f60208284031215610327575f5ffd5b81518015158114610336575f5ffd5b9392505050565b6001600160a01b03891681526001600160a01b03881660208201528660408201528560608201528460808201528360a082015260e060c08201528160e082015281836101008301375f81830161010090810191909152601f909201601f1916010197965050505050505056",
}

// MerchantWallet is an auto generated Go binding around an Ethereum contract.
type MerchantWallet struct {
	abi abi.ABI
}

// GetABI returns the ABI associated with this contract binding.
func (c *MerchantWallet) GetABI() abi.ABI {
	return c.abi
}

// NewMerchantWallet creates a new instance of MerchantWallet.
func NewMerchantWallet() *MerchantWallet {
	parsed, err := MerchantWalletMetaData.ParseABI()
	if err != nil {
		panic(errors.New("invalid ABI: " + err.Error()))
	}
	return &MerchantWallet{abi: *parsed}
}

// Instance creates a wrapper for a deployed contract instance at the given address.
// Use this to create the instance object passed to abigen v2 library functions Call, Transact, etc.
func (c *MerchantWallet) Instance(backend bind.ContractBackend, addr common.Address) *bind.BoundContract {
	return bind.NewBoundContract(addr, c.abi, backend, backend, backend)
}

// PackCollect is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x8c9a61a1.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function collect(address token, address from, uint256 value, uint256 validBefore, bytes32 nonce, bytes signature, address treasury, uint256 onward) returns()
func (merchantWallet *MerchantWallet) PackCollect(token common.Address, from common.Address, value *big.Int, validBefore *big.Int, nonce [32]byte, signature []byte, treasury common.Address, onward *big.Int) []byte {
	enc, err := merchantWallet.abi.Pack("collect", token, from, value, validBefore, nonce, signature, treasury, onward)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackCollect is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x8c9a61a1.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function collect(address token, address from, uint256 value, uint256 validBefore, bytes32 nonce, bytes signature, address treasury, uint256 onward) returns()
func (merchantWallet *MerchantWallet) TryPackCollect(token common.Address, from common.Address, value *big.Int, validBefore *big.Int, nonce [32]byte, signature []byte, treasury common.Address, onward *big.Int) ([]byte, error) {
	return merchantWallet.abi.Pack("collect", token, from, value, validBefore, nonce, signature, treasury, onward)
}

// PackSend is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x0779afe6.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function send(address token, address to, uint256 amount) returns()
func (merchantWallet *MerchantWallet) PackSend(token common.Address, to common.Address, amount *big.Int) []byte {
	enc, err := merchantWallet.abi.Pack("send", token, to, amount)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackSend is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x0779afe6.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function send(address token, address to, uint256 amount) returns()
func (merchantWallet *MerchantWallet) TryPackSend(token common.Address, to common.Address, amount *big.Int) ([]byte, error) {
	return merchantWallet.abi.Pack("send", token, to, amount)
}
