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

// BlockableUSDCMetaData contains all meta data concerning the BlockableUSDC contract.
var BlockableUSDCMetaData = bind.MetaData{
	ABI: "[{\"inputs\":[{\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"}],\"stateMutability\":\"nonpayable\",\"type\":\"constructor\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"validBefore\",\"type\":\"uint256\"}],\"name\":\"AuthorizationExpired\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"validAfter\",\"type\":\"uint256\"}],\"name\":\"AuthorizationNotYetValid\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"authorizer\",\"type\":\"address\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"}],\"name\":\"AuthorizationUsedOrCanceled\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"caller\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"payee\",\"type\":\"address\"}],\"name\":\"CallerMustBePayee\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"allowance\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"needed\",\"type\":\"uint256\"}],\"name\":\"ERC20InsufficientAllowance\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"sender\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"balance\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"needed\",\"type\":\"uint256\"}],\"name\":\"ERC20InsufficientBalance\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"approver\",\"type\":\"address\"}],\"name\":\"ERC20InvalidApprover\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"receiver\",\"type\":\"address\"}],\"name\":\"ERC20InvalidReceiver\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"sender\",\"type\":\"address\"}],\"name\":\"ERC20InvalidSender\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"}],\"name\":\"ERC20InvalidSpender\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"account\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"currentNonce\",\"type\":\"uint256\"}],\"name\":\"InvalidAccountNonce\",\"type\":\"error\"},{\"inputs\":[],\"name\":\"InvalidShortString\",\"type\":\"error\"},{\"inputs\":[],\"name\":\"InvalidSignature\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"}],\"name\":\"OwnableInvalidOwner\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"account\",\"type\":\"address\"}],\"name\":\"OwnableUnauthorizedAccount\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"deadline\",\"type\":\"uint256\"}],\"name\":\"PermitExpired\",\"type\":\"error\"},{\"inputs\":[{\"internalType\":\"string\",\"name\":\"str\",\"type\":\"string\"}],\"name\":\"StringTooLong\",\"type\":\"error\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"Approval\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"authorizer\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"}],\"name\":\"AuthorizationCanceled\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"authorizer\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"}],\"name\":\"AuthorizationUsed\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[],\"name\":\"EIP712DomainChanged\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"previousOwner\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"newOwner\",\"type\":\"address\"}],\"name\":\"OwnershipTransferred\",\"type\":\"event\"},{\"anonymous\":false,\"inputs\":[{\"indexed\":true,\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"indexed\":true,\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"indexed\":false,\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"Transfer\",\"type\":\"event\"},{\"inputs\":[],\"name\":\"CANCEL_AUTHORIZATION_TYPEHASH\",\"outputs\":[{\"internalType\":\"bytes32\",\"name\":\"\",\"type\":\"bytes32\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"DOMAIN_SEPARATOR\",\"outputs\":[{\"internalType\":\"bytes32\",\"name\":\"\",\"type\":\"bytes32\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"PERMIT_TYPEHASH\",\"outputs\":[{\"internalType\":\"bytes32\",\"name\":\"\",\"type\":\"bytes32\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"RECEIVE_WITH_AUTHORIZATION_TYPEHASH\",\"outputs\":[{\"internalType\":\"bytes32\",\"name\":\"\",\"type\":\"bytes32\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"TRANSFER_WITH_AUTHORIZATION_TYPEHASH\",\"outputs\":[{\"internalType\":\"bytes32\",\"name\":\"\",\"type\":\"bytes32\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"}],\"name\":\"allowance\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"approve\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"authorizer\",\"type\":\"address\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"}],\"name\":\"authorizationState\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"account\",\"type\":\"address\"}],\"name\":\"balanceOf\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"authorizer\",\"type\":\"address\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"},{\"internalType\":\"uint8\",\"name\":\"v\",\"type\":\"uint8\"},{\"internalType\":\"bytes32\",\"name\":\"r\",\"type\":\"bytes32\"},{\"internalType\":\"bytes32\",\"name\":\"s\",\"type\":\"bytes32\"}],\"name\":\"cancelAuthorization\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"authorizer\",\"type\":\"address\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"},{\"internalType\":\"bytes\",\"name\":\"signature\",\"type\":\"bytes\"}],\"name\":\"cancelAuthorization\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"decimals\",\"outputs\":[{\"internalType\":\"uint8\",\"name\":\"\",\"type\":\"uint8\"}],\"stateMutability\":\"pure\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"eip712Domain\",\"outputs\":[{\"internalType\":\"bytes1\",\"name\":\"fields\",\"type\":\"bytes1\"},{\"internalType\":\"string\",\"name\":\"name\",\"type\":\"string\"},{\"internalType\":\"string\",\"name\":\"version\",\"type\":\"string\"},{\"internalType\":\"uint256\",\"name\":\"chainId\",\"type\":\"uint256\"},{\"internalType\":\"address\",\"name\":\"verifyingContract\",\"type\":\"address\"},{\"internalType\":\"bytes32\",\"name\":\"salt\",\"type\":\"bytes32\"},{\"internalType\":\"uint256[]\",\"name\":\"extensions\",\"type\":\"uint256[]\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"account\",\"type\":\"address\"}],\"name\":\"isBlacklisted\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"amount\",\"type\":\"uint256\"}],\"name\":\"mint\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"name\",\"outputs\":[{\"internalType\":\"string\",\"name\":\"\",\"type\":\"string\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"}],\"name\":\"nonces\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"owner\",\"outputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"paused\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"deadline\",\"type\":\"uint256\"},{\"internalType\":\"bytes\",\"name\":\"signature\",\"type\":\"bytes\"}],\"name\":\"permit\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"owner\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"spender\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"deadline\",\"type\":\"uint256\"},{\"internalType\":\"uint8\",\"name\":\"v\",\"type\":\"uint8\"},{\"internalType\":\"bytes32\",\"name\":\"r\",\"type\":\"bytes32\"},{\"internalType\":\"bytes32\",\"name\":\"s\",\"type\":\"bytes32\"}],\"name\":\"permit\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validAfter\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validBefore\",\"type\":\"uint256\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"},{\"internalType\":\"bytes\",\"name\":\"signature\",\"type\":\"bytes\"}],\"name\":\"receiveWithAuthorization\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validAfter\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validBefore\",\"type\":\"uint256\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"},{\"internalType\":\"uint8\",\"name\":\"v\",\"type\":\"uint8\"},{\"internalType\":\"bytes32\",\"name\":\"r\",\"type\":\"bytes32\"},{\"internalType\":\"bytes32\",\"name\":\"s\",\"type\":\"bytes32\"}],\"name\":\"receiveWithAuthorization\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"renounceOwnership\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"account\",\"type\":\"address\"},{\"internalType\":\"bool\",\"name\":\"blocked\",\"type\":\"bool\"}],\"name\":\"setBlocked\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"bool\",\"name\":\"pause\",\"type\":\"bool\"}],\"name\":\"setPaused\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"symbol\",\"outputs\":[{\"internalType\":\"string\",\"name\":\"\",\"type\":\"string\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"totalSupply\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"transfer\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"}],\"name\":\"transferFrom\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"newOwner\",\"type\":\"address\"}],\"name\":\"transferOwnership\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validAfter\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validBefore\",\"type\":\"uint256\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"},{\"internalType\":\"bytes\",\"name\":\"signature\",\"type\":\"bytes\"}],\"name\":\"transferWithAuthorization\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"from\",\"type\":\"address\"},{\"internalType\":\"address\",\"name\":\"to\",\"type\":\"address\"},{\"internalType\":\"uint256\",\"name\":\"value\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validAfter\",\"type\":\"uint256\"},{\"internalType\":\"uint256\",\"name\":\"validBefore\",\"type\":\"uint256\"},{\"internalType\":\"bytes32\",\"name\":\"nonce\",\"type\":\"bytes32\"},{\"internalType\":\"uint8\",\"name\":\"v\",\"type\":\"uint8\"},{\"internalType\":\"bytes32\",\"name\":\"r\",\"type\":\"bytes32\"},{\"internalType\":\"bytes32\",\"name\":\"s\",\"type\":\"bytes32\"}],\"name\":\"transferWithAuthorization\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"version\",\"outputs\":[{\"internalType\":\"string\",\"name\":\"\",\"type\":\"string\"}],\"stateMutability\":\"pure\",\"type\":\"function\"}]",
	ID:  "BlockableUSDC",
	Bin: "0x610160604052348015610010575f5ffd5b506040516120c43803806120c483398101604081905261002f91610247565b8080604051806040016040528060088152602001672aa9a21021b7b4b760c11b815250604051806040016040528060018152602001601960f91b815250604051806040016040528060088152602001672aa9a21021b7b4b760c11b815250604051806040016040528060048152602001635553444360e01b81525081600390816100b99190610317565b5060046100c68282610317565b5050506100d8826101b960201b60201c565b610120526100e5816101b9565b61014052815160208084019190912060e052815190820120610100524660a05261017160e05161010051604080517f8b73c3c69bb8fe3d512ecc4cf759cc79239f7b179b0ffacaa9a75d522b39400f60208201529081019290925260608201524660808201523060a08201525f9060c00160405160208183030381529060405280519060200120905090565b60805250503060c0526001600160a01b0381166101a857604051631e4fbdf760e01b81525f60048201526024015b60405180910390fd5b6101b1816101f6565b50505061042d565b5f5f829050601f815111156101e3578260405163305a27a960e01b815260040161019f91906103d5565b80516101ee8261040a565b179392505050565b600880546001600160a01b038381166001600160a01b0319831681179093556040519116919082907f8be0079c531659141344cd1fd0a4f28419497f9722a3daafe3b4186f6b6457e0905f90a35050565b5f60208284031215610257575f5ffd5b81516001600160a01b038116811461026d575f5ffd5b9392505050565b634e487b7160e01b5f52604160045260245ffd5b600181811c9082168061029c57607f821691505b6020821081036102ba57634e487b7160e01b5f52602260045260245ffd5b50919050565b601f821115610312578282111561031257805f5260205f20601f840160051c60208510156102eb57505f5b90810190601f840160051c035f5b8181101561030e575f838201556001016102f9565b5050505b505050565b81516001600160401b0381111561033057610330610274565b6103448161033e8454610288565b846102c0565b6020601f821160018114610376575f831561035f5750848201515b5f19600385901b1c1916600184901b1784556103ce565b5f84815260208120601f198516915b828110156103a55787850151825560209485019460019092019101610385565b50848210156103c257868401515f19600387901b60f8161c191681555b505060018360011b0184555b5050505050565b602081525f82518060208401528060208501604085015e5f604082850101526040601f19601f83011684010191505092915050565b805160208083015191908110156102ba575f1960209190910360031b1b16919050565b60805160a05160c05160e051610100516101205161014051611c4661047e5f395f610e9401525f610e6901525f610d7501525f610d4d01525f610ca801525f610cd201525f610cfc0152611c465ff3fe608060405234801561000f575f5ffd5b506004361061021a575f3560e01c806384b0196e11610123578063cf092995116100b8578063e3ee160e11610088578063ef55bec61161006e578063ef55bec61461054b578063f2fde38b1461055e578063fe575a8714610571575f5ffd5b8063e3ee160e1461050b578063e94a01021461051e575f5ffd5b8063cf09299514610486578063d505accf14610499578063d9169487146104ac578063dd62ed3e146104d3575f5ffd5b80639fd5a6cf116100f35780639fd5a6cf14610426578063a0cc6a6814610439578063a9059cbb14610460578063b7b7289914610473575f5ffd5b806384b0196e146103d557806388b7ab63146103f05780638da5cb5b1461040357806395d89b411461041e575f5ffd5b80633644e515116101b35780635c975abb11610183578063715018a611610169578063715018a61461037e5780637ecebe00146103865780637f2eecc3146103ae575f5ffd5b80635c975abb1461034957806370a0823114610356575f5ffd5b80633644e515146102e257806340c10f19146102ea57806354fd4d50146102fd5780635a049a7014610336575f5ffd5b806318160ddd116101ee57806318160ddd1461028757806323b872dd1461029957806330adf81f146102ac578063313ce567146102d3575f5ffd5b80620af2a11461021e57806306fdde0314610233578063095ea7b31461025157806316c38b3c14610274575b5f5ffd5b61023161022c3660046116fb565b610593565b005b61023b6105c5565b604051610248919061175a565b60405180910390f35b61026461025f36600461176c565b610655565b6040519015158152602001610248565b610231610282366004611794565b61066e565b6002545b604051908152602001610248565b6102646102a73660046117ad565b610689565b61028b7f6e71edae12b1b97f4d1f60370fef10105fa2faae0126114a169c64845d6126c981565b60405160068152602001610248565b61028b6106ae565b6102316102f836600461176c565b6106bc565b60408051808201909152600181527f3200000000000000000000000000000000000000000000000000000000000000602082015261023b565b6102316103443660046117f7565b6106d2565b600b546102649060ff1681565b61028b610364366004611841565b6001600160a01b03165f9081526020819052604090205490565b61023161071d565b61028b610394366004611841565b6001600160a01b03165f9081526007602052604090205490565b61028b7fd099cc98ef71107a616c4f0f941f04c322d8e254fe26b3c6668db87aae413de881565b6103dd610730565b604051610248979695949392919061185a565b6102316103fe366004611993565b61078e565b6008546040516001600160a01b039091168152602001610248565b61023b61081f565b610231610434366004611a12565b61082e565b61028b7f7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a226781565b61026461046e36600461176c565b610919565b610231610481366004611a7f565b610926565b610231610494366004611993565b6109ba565b6102316104a7366004611ad2565b6109ea565b61028b7f158b0a9edf7a828aad02f63cd515c68ef2f50ba807396f6d12842833a159742981565b61028b6104e1366004611b38565b6001600160a01b039182165f90815260016020908152604080832093909416825291909152205490565b610231610519366004611b60565b610a38565b61026461052c36600461176c565b600960209081525f928352604080842090915290825290205460ff1681565b610231610559366004611b60565b610a93565b61023161056c366004611841565b610ae3565b61026461057f366004611841565b600a6020525f908152604090205460ff1681565b61059b610b39565b6001600160a01b03919091165f908152600a60205260409020805460ff1916911515919091179055565b6060600380546105d490611bdb565b80601f016020809104026020016040519081016040528092919081815260200182805461060090611bdb565b801561064b5780601f106106225761010080835404028352916020019161064b565b820191905f5260205f20905b81548152906001019060200180831161062e57829003601f168201915b5050505050905090565b5f33610662818585610b7f565b60019150505b92915050565b610676610b39565b600b805460ff1916911515919091179055565b5f33610696858285610b91565b6106a1858585610c26565b60019150505b9392505050565b5f6106b7610c9c565b905090565b6106c4610b39565b6106ce8282610dc5565b5050565b60408051602081018490529081018290526001600160f81b031960f885901b1660608201526107169086908690606101604051602081830303815290604052610926565b5050505050565b610725610b39565b61072e5f610df9565b565b5f6060805f5f5f6060610741610e62565b610749610e8d565b604080515f808252602082019092527f0f000000000000000000000000000000000000000000000000000000000000009b939a50919850469750309650945092509050565b336001600160a01b038716146107e6576040517f1c5939f30000000000000000000000000000000000000000000000000000000081523360048201526001600160a01b03871660248201526044015b60405180910390fd5b6108167fd099cc98ef71107a616c4f0f941f04c322d8e254fe26b3c6668db87aae413de888888888888888610eb8565b50505050505050565b6060600480546105d490611bdb565b8142111561086b576040517f9e96b26f000000000000000000000000000000000000000000000000000000008152600481018390526024016107dd565b61090e857f6e71edae12b1b97f4d1f60370fef10105fa2faae0126114a169c64845d6126c98787876108b98b6001600160a01b03165f90815260076020526040902080546001810190915590565b6040805160208101969096526001600160a01b0394851690860152929091166060840152608083015260a082015260c0810185905260e0015b6040516020818303038152906040528051906020012083610fd4565b610716858585610b7f565b5f33610662818585610c26565b610930838361101d565b604080517f158b0a9edf7a828aad02f63cd515c68ef2f50ba807396f6d12842833a159742960208201526001600160a01b03851691810191909152606081018390526109809084906080016108f2565b60405182906001600160a01b038516907f1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81905f90a3505050565b6108167f7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a226788888888888888610eb8565b61081687878787868689604051602001610a2493929190928352602083019190915260f81b6001600160f81b031916604082015260410190565b60405160208183030381529060405261082e565b610a8889898989898988888b604051602001610a7493929190928352602083019190915260f81b6001600160f81b031916604082015260410190565b6040516020818303038152906040526109ba565b505050505050505050565b610a8889898989898988888b604051602001610acf93929190928352602083019190915260f81b6001600160f81b031916604082015260410190565b60405160208183030381529060405261078e565b610aeb610b39565b6001600160a01b038116610b2d576040517f1e4fbdf70000000000000000000000000000000000000000000000000000000081525f60048201526024016107dd565b610b3681610df9565b50565b6008546001600160a01b0316331461072e576040517f118cdaa70000000000000000000000000000000000000000000000000000000081523360048201526024016107dd565b610b8c83838360016110bb565b505050565b6001600160a01b038381165f908152600160209081526040808320938616835292905220545f19811015610c205781811015610c12576040517ffb8f41b20000000000000000000000000000000000000000000000000000000081526001600160a01b038416600482015260248101829052604481018390526064016107dd565b610c2084848484035f6110bb565b50505050565b6001600160a01b038316610c68576040517f96c6fd1e0000000000000000000000000000000000000000000000000000000081525f60048201526024016107dd565b6001600160a01b038216610c915760405163ec442f0560e01b81525f60048201526024016107dd565b610b8c8383836111bf565b5f306001600160a01b037f000000000000000000000000000000000000000000000000000000000000000016148015610cf457507f000000000000000000000000000000000000000000000000000000000000000046145b15610d1e57507f000000000000000000000000000000000000000000000000000000000000000090565b6106b7604080517f8b73c3c69bb8fe3d512ecc4cf759cc79239f7b179b0ffacaa9a75d522b39400f60208201527f0000000000000000000000000000000000000000000000000000000000000000918101919091527f000000000000000000000000000000000000000000000000000000000000000060608201524660808201523060a08201525f9060c00160405160208183030381529060405280519060200120905090565b6001600160a01b038216610dee5760405163ec442f0560e01b81525f60048201526024016107dd565b6106ce5f83836111bf565b600880546001600160a01b038381167fffffffffffffffffffffffff0000000000000000000000000000000000000000831681179093556040519116919082907f8be0079c531659141344cd1fd0a4f28419497f9722a3daafe3b4186f6b6457e0905f90a35050565b60606106b77f00000000000000000000000000000000000000000000000000000000000000006112cf565b60606106b77f00000000000000000000000000000000000000000000000000000000000000006112cf565b834211610ef4576040517f7a4df079000000000000000000000000000000000000000000000000000000008152600481018590526024016107dd565b824210610f30576040517f3d91b05f000000000000000000000000000000000000000000000000000000008152600481018490526024016107dd565b610f3a878361101d565b60408051602081018a90526001600160a01b03808a169282019290925290871660608201526080810186905260a0810185905260c0810184905260e08101839052610f8a908890610100016108f2565b60405182906001600160a01b038916907f98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5905f90a3610fca878787610c26565b5050505050505050565b610fe783610fe18461130c565b83611353565b610b8c576040517f8baa579f00000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b6001600160a01b0382165f90815260096020908152604080832084845290915290205460ff161561108c576040517f8ef82f7f0000000000000000000000000000000000000000000000000000000081526001600160a01b0383166004820152602481018290526044016107dd565b6001600160a01b039091165f90815260096020908152604080832093835292905220805460ff19166001179055565b6001600160a01b0384166110fd576040517fe602df050000000000000000000000000000000000000000000000000000000081525f60048201526024016107dd565b6001600160a01b03831661113f576040517f94280d620000000000000000000000000000000000000000000000000000000081525f60048201526024016107dd565b6001600160a01b038085165f9081526001602090815260408083209387168352929052208290558015610c2057826001600160a01b0316846001600160a01b03167f8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925846040516111b191815260200190565b60405180910390a350505050565b600b5460ff16156112125760405162461bcd60e51b815260206004820152601060248201527f5061757361626c653a207061757365640000000000000000000000000000000060448201526064016107dd565b6001600160a01b0383165f908152600a602052604090205460ff1615801561125257506001600160a01b0382165f908152600a602052604090205460ff16155b6112c45760405162461bcd60e51b815260206004820152602560248201527f426c61636b6c69737461626c653a206163636f756e7420697320626c61636b6c60448201527f697374656400000000000000000000000000000000000000000000000000000060648201526084016107dd565b610b8c8383836113c3565b60605f6112db83611502565b6040805160208082528183019092529192505f91906020820181803683375050509182525060208101929092525090565b5f610668611318610c9c565b836040517f19010000000000000000000000000000000000000000000000000000000000008152600281019290925260228201526042902090565b5f836001600160a01b03163b5f036113b1575f5f6113718585611542565b5090925090505f81600381111561138a5761138a611c13565b1480156113a85750856001600160a01b0316826001600160a01b0316145b925050506106a7565b6113bc84848461158b565b90506106a7565b6001600160a01b0383166113ed578060025f8282546113e29190611c27565b909155506114769050565b6001600160a01b0383165f9081526020819052604090205481811015611458576040517fe450d38c0000000000000000000000000000000000000000000000000000000081526001600160a01b038516600482015260248101829052604481018390526064016107dd565b6001600160a01b0384165f9081526020819052604090209082900390555b6001600160a01b038216611492576002805482900390556114b0565b6001600160a01b0382165f9081526020819052604090208054820190555b816001600160a01b0316836001600160a01b03167fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef836040516114f591815260200190565b60405180910390a3505050565b5f60ff8216601f811115610668576040517fb3512b0c00000000000000000000000000000000000000000000000000000000815260040160405180910390fd5b5f5f5f8351604103611579576020840151604085015160608601515f1a61156b88828585611609565b955095509550505050611584565b505081515f91506002905b9250925092565b8051604080517f1626ba7e000000000000000000000000000000000000000000000000000000008082526004820186905260248201929092525f92906020820185604483015e5f82606483010152601f820160051c60051b915060205f60648401838a5afa9050825f5114601f3d1116811693505050509392505050565b5f80807f7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a084111561164257505f915060039050826116c7565b604080515f808252602082018084528a905260ff891692820192909252606081018790526080810186905260019060a0016020604051602081039080840390855afa158015611693573d5f5f3e3d5ffd5b5050604051601f1901519150506001600160a01b0381166116be57505f9250600191508290506116c7565b92505f91508190505b9450945094915050565b80356001600160a01b03811681146116e7575f5ffd5b919050565b803580151581146116e7575f5ffd5b5f5f6040838503121561170c575f5ffd5b611715836116d1565b9150611723602084016116ec565b90509250929050565b5f81518084528060208401602086015e5f602082860101526020601f19601f83011685010191505092915050565b602081525f6106a7602083018461172c565b5f5f6040838503121561177d575f5ffd5b611786836116d1565b946020939093013593505050565b5f602082840312156117a4575f5ffd5b6106a7826116ec565b5f5f5f606084860312156117bf575f5ffd5b6117c8846116d1565b92506117d6602085016116d1565b929592945050506040919091013590565b803560ff811681146116e7575f5ffd5b5f5f5f5f5f60a0868803121561180b575f5ffd5b611814866116d1565b945060208601359350611829604087016117e7565b94979396509394606081013594506080013592915050565b5f60208284031215611851575f5ffd5b6106a7826116d1565b6001600160f81b03198816815260e060208201525f61187c60e083018961172c565b828103604084015261188e818961172c565b606084018890526001600160a01b038716608085015260a0840186905283810360c0850152845180825260208087019350909101905f5b818110156118e35783518352602093840193909201916001016118c5565b50909b9a5050505050505050505050565b634e487b7160e01b5f52604160045260245ffd5b5f82601f830112611917575f5ffd5b813567ffffffffffffffff811115611931576119316118f4565b604051601f8201601f19908116603f0116810167ffffffffffffffff81118282101715611960576119606118f4565b604052818152838201602001851015611977575f5ffd5b816020850160208301375f918101602001919091529392505050565b5f5f5f5f5f5f5f60e0888a0312156119a9575f5ffd5b6119b2886116d1565b96506119c0602089016116d1565b955060408801359450606088013593506080880135925060a0880135915060c088013567ffffffffffffffff8111156119f7575f5ffd5b611a038a828b01611908565b91505092959891949750929550565b5f5f5f5f5f60a08688031215611a26575f5ffd5b611a2f866116d1565b9450611a3d602087016116d1565b93506040860135925060608601359150608086013567ffffffffffffffff811115611a66575f5ffd5b611a7288828901611908565b9150509295509295909350565b5f5f5f60608486031215611a91575f5ffd5b611a9a846116d1565b925060208401359150604084013567ffffffffffffffff811115611abc575f5ffd5b611ac886828701611908565b9150509250925092565b5f5f5f5f5f5f5f60e0888a031215611ae8575f5ffd5b611af1886116d1565b9650611aff602089016116d1565b95506040880135945060608801359350611b1b608089016117e7565b9699959850939692959460a0840135945060c09093013592915050565b5f5f60408385031215611b49575f5ffd5b611b52836116d1565b9150611723602084016116d1565b5f5f5f5f5f5f5f5f5f6101208a8c031215611b79575f5ffd5b611b828a6116d1565b9850611b9060208b016116d1565b975060408a0135965060608a0135955060808a0135945060a08a01359350611bba60c08b016117e7565b989b979a50959894979396929550929360e081013593506101000135919050565b600181811c90821680611bef57607f821691505b602082108103611c0d57634e487b7160e01b5f52602260045260245ffd5b50919050565b634e487b7160e01b5f52602160045260245ffd5b8082018082111561066857634e487b7160e01b5f52601160045260245ffd",
}

// BlockableUSDC is an auto generated Go binding around an Ethereum contract.
type BlockableUSDC struct {
	abi abi.ABI
}

// GetABI returns the ABI associated with this contract binding.
func (c *BlockableUSDC) GetABI() abi.ABI {
	return c.abi
}

// NewBlockableUSDC creates a new instance of BlockableUSDC.
func NewBlockableUSDC() *BlockableUSDC {
	parsed, err := BlockableUSDCMetaData.ParseABI()
	if err != nil {
		panic(errors.New("invalid ABI: " + err.Error()))
	}
	return &BlockableUSDC{abi: *parsed}
}

// Instance creates a wrapper for a deployed contract instance at the given address.
// Use this to create the instance object passed to abigen v2 library functions Call, Transact, etc.
func (c *BlockableUSDC) Instance(backend bind.ContractBackend, addr common.Address) *bind.BoundContract {
	return bind.NewBoundContract(addr, c.abi, backend, backend, backend)
}

// PackConstructor is the Go binding used to pack the parameters required for
// contract deployment.
//
// Solidity: constructor(address owner) returns()
func (blockableUSDC *BlockableUSDC) PackConstructor(owner common.Address) []byte {
	enc, err := blockableUSDC.abi.Pack("", owner)
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
func (blockableUSDC *BlockableUSDC) PackCANCELAUTHORIZATIONTYPEHASH() []byte {
	enc, err := blockableUSDC.abi.Pack("CANCEL_AUTHORIZATION_TYPEHASH")
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
func (blockableUSDC *BlockableUSDC) TryPackCANCELAUTHORIZATIONTYPEHASH() ([]byte, error) {
	return blockableUSDC.abi.Pack("CANCEL_AUTHORIZATION_TYPEHASH")
}

// UnpackCANCELAUTHORIZATIONTYPEHASH is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xd9169487.
//
// Solidity: function CANCEL_AUTHORIZATION_TYPEHASH() view returns(bytes32)
func (blockableUSDC *BlockableUSDC) UnpackCANCELAUTHORIZATIONTYPEHASH(data []byte) ([32]byte, error) {
	out, err := blockableUSDC.abi.Unpack("CANCEL_AUTHORIZATION_TYPEHASH", data)
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
func (blockableUSDC *BlockableUSDC) PackDOMAINSEPARATOR() []byte {
	enc, err := blockableUSDC.abi.Pack("DOMAIN_SEPARATOR")
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
func (blockableUSDC *BlockableUSDC) TryPackDOMAINSEPARATOR() ([]byte, error) {
	return blockableUSDC.abi.Pack("DOMAIN_SEPARATOR")
}

// UnpackDOMAINSEPARATOR is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x3644e515.
//
// Solidity: function DOMAIN_SEPARATOR() view returns(bytes32)
func (blockableUSDC *BlockableUSDC) UnpackDOMAINSEPARATOR(data []byte) ([32]byte, error) {
	out, err := blockableUSDC.abi.Unpack("DOMAIN_SEPARATOR", data)
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
func (blockableUSDC *BlockableUSDC) PackPERMITTYPEHASH() []byte {
	enc, err := blockableUSDC.abi.Pack("PERMIT_TYPEHASH")
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
func (blockableUSDC *BlockableUSDC) TryPackPERMITTYPEHASH() ([]byte, error) {
	return blockableUSDC.abi.Pack("PERMIT_TYPEHASH")
}

// UnpackPERMITTYPEHASH is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x30adf81f.
//
// Solidity: function PERMIT_TYPEHASH() view returns(bytes32)
func (blockableUSDC *BlockableUSDC) UnpackPERMITTYPEHASH(data []byte) ([32]byte, error) {
	out, err := blockableUSDC.abi.Unpack("PERMIT_TYPEHASH", data)
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
func (blockableUSDC *BlockableUSDC) PackRECEIVEWITHAUTHORIZATIONTYPEHASH() []byte {
	enc, err := blockableUSDC.abi.Pack("RECEIVE_WITH_AUTHORIZATION_TYPEHASH")
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
func (blockableUSDC *BlockableUSDC) TryPackRECEIVEWITHAUTHORIZATIONTYPEHASH() ([]byte, error) {
	return blockableUSDC.abi.Pack("RECEIVE_WITH_AUTHORIZATION_TYPEHASH")
}

// UnpackRECEIVEWITHAUTHORIZATIONTYPEHASH is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x7f2eecc3.
//
// Solidity: function RECEIVE_WITH_AUTHORIZATION_TYPEHASH() view returns(bytes32)
func (blockableUSDC *BlockableUSDC) UnpackRECEIVEWITHAUTHORIZATIONTYPEHASH(data []byte) ([32]byte, error) {
	out, err := blockableUSDC.abi.Unpack("RECEIVE_WITH_AUTHORIZATION_TYPEHASH", data)
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
func (blockableUSDC *BlockableUSDC) PackTRANSFERWITHAUTHORIZATIONTYPEHASH() []byte {
	enc, err := blockableUSDC.abi.Pack("TRANSFER_WITH_AUTHORIZATION_TYPEHASH")
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
func (blockableUSDC *BlockableUSDC) TryPackTRANSFERWITHAUTHORIZATIONTYPEHASH() ([]byte, error) {
	return blockableUSDC.abi.Pack("TRANSFER_WITH_AUTHORIZATION_TYPEHASH")
}

// UnpackTRANSFERWITHAUTHORIZATIONTYPEHASH is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xa0cc6a68.
//
// Solidity: function TRANSFER_WITH_AUTHORIZATION_TYPEHASH() view returns(bytes32)
func (blockableUSDC *BlockableUSDC) UnpackTRANSFERWITHAUTHORIZATIONTYPEHASH(data []byte) ([32]byte, error) {
	out, err := blockableUSDC.abi.Unpack("TRANSFER_WITH_AUTHORIZATION_TYPEHASH", data)
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
func (blockableUSDC *BlockableUSDC) PackAllowance(owner common.Address, spender common.Address) []byte {
	enc, err := blockableUSDC.abi.Pack("allowance", owner, spender)
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
func (blockableUSDC *BlockableUSDC) TryPackAllowance(owner common.Address, spender common.Address) ([]byte, error) {
	return blockableUSDC.abi.Pack("allowance", owner, spender)
}

// UnpackAllowance is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xdd62ed3e.
//
// Solidity: function allowance(address owner, address spender) view returns(uint256)
func (blockableUSDC *BlockableUSDC) UnpackAllowance(data []byte) (*big.Int, error) {
	out, err := blockableUSDC.abi.Unpack("allowance", data)
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
func (blockableUSDC *BlockableUSDC) PackApprove(spender common.Address, value *big.Int) []byte {
	enc, err := blockableUSDC.abi.Pack("approve", spender, value)
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
func (blockableUSDC *BlockableUSDC) TryPackApprove(spender common.Address, value *big.Int) ([]byte, error) {
	return blockableUSDC.abi.Pack("approve", spender, value)
}

// UnpackApprove is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x095ea7b3.
//
// Solidity: function approve(address spender, uint256 value) returns(bool)
func (blockableUSDC *BlockableUSDC) UnpackApprove(data []byte) (bool, error) {
	out, err := blockableUSDC.abi.Unpack("approve", data)
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
func (blockableUSDC *BlockableUSDC) PackAuthorizationState(authorizer common.Address, nonce [32]byte) []byte {
	enc, err := blockableUSDC.abi.Pack("authorizationState", authorizer, nonce)
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
func (blockableUSDC *BlockableUSDC) TryPackAuthorizationState(authorizer common.Address, nonce [32]byte) ([]byte, error) {
	return blockableUSDC.abi.Pack("authorizationState", authorizer, nonce)
}

// UnpackAuthorizationState is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xe94a0102.
//
// Solidity: function authorizationState(address authorizer, bytes32 nonce) view returns(bool)
func (blockableUSDC *BlockableUSDC) UnpackAuthorizationState(data []byte) (bool, error) {
	out, err := blockableUSDC.abi.Unpack("authorizationState", data)
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
func (blockableUSDC *BlockableUSDC) PackBalanceOf(account common.Address) []byte {
	enc, err := blockableUSDC.abi.Pack("balanceOf", account)
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
func (blockableUSDC *BlockableUSDC) TryPackBalanceOf(account common.Address) ([]byte, error) {
	return blockableUSDC.abi.Pack("balanceOf", account)
}

// UnpackBalanceOf is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x70a08231.
//
// Solidity: function balanceOf(address account) view returns(uint256)
func (blockableUSDC *BlockableUSDC) UnpackBalanceOf(data []byte) (*big.Int, error) {
	out, err := blockableUSDC.abi.Unpack("balanceOf", data)
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
func (blockableUSDC *BlockableUSDC) PackCancelAuthorization(authorizer common.Address, nonce [32]byte, v uint8, r [32]byte, s [32]byte) []byte {
	enc, err := blockableUSDC.abi.Pack("cancelAuthorization", authorizer, nonce, v, r, s)
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
func (blockableUSDC *BlockableUSDC) TryPackCancelAuthorization(authorizer common.Address, nonce [32]byte, v uint8, r [32]byte, s [32]byte) ([]byte, error) {
	return blockableUSDC.abi.Pack("cancelAuthorization", authorizer, nonce, v, r, s)
}

// PackCancelAuthorization0 is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xb7b72899.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature) returns()
func (blockableUSDC *BlockableUSDC) PackCancelAuthorization0(authorizer common.Address, nonce [32]byte, signature []byte) []byte {
	enc, err := blockableUSDC.abi.Pack("cancelAuthorization0", authorizer, nonce, signature)
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
func (blockableUSDC *BlockableUSDC) TryPackCancelAuthorization0(authorizer common.Address, nonce [32]byte, signature []byte) ([]byte, error) {
	return blockableUSDC.abi.Pack("cancelAuthorization0", authorizer, nonce, signature)
}

// PackDecimals is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x313ce567.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function decimals() pure returns(uint8)
func (blockableUSDC *BlockableUSDC) PackDecimals() []byte {
	enc, err := blockableUSDC.abi.Pack("decimals")
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
func (blockableUSDC *BlockableUSDC) TryPackDecimals() ([]byte, error) {
	return blockableUSDC.abi.Pack("decimals")
}

// UnpackDecimals is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x313ce567.
//
// Solidity: function decimals() pure returns(uint8)
func (blockableUSDC *BlockableUSDC) UnpackDecimals(data []byte) (uint8, error) {
	out, err := blockableUSDC.abi.Unpack("decimals", data)
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
func (blockableUSDC *BlockableUSDC) PackEip712Domain() []byte {
	enc, err := blockableUSDC.abi.Pack("eip712Domain")
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
func (blockableUSDC *BlockableUSDC) TryPackEip712Domain() ([]byte, error) {
	return blockableUSDC.abi.Pack("eip712Domain")
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
func (blockableUSDC *BlockableUSDC) UnpackEip712Domain(data []byte) (Eip712DomainOutput, error) {
	out, err := blockableUSDC.abi.Unpack("eip712Domain", data)
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

// PackIsBlacklisted is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xfe575a87.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function isBlacklisted(address account) view returns(bool)
func (blockableUSDC *BlockableUSDC) PackIsBlacklisted(account common.Address) []byte {
	enc, err := blockableUSDC.abi.Pack("isBlacklisted", account)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackIsBlacklisted is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xfe575a87.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function isBlacklisted(address account) view returns(bool)
func (blockableUSDC *BlockableUSDC) TryPackIsBlacklisted(account common.Address) ([]byte, error) {
	return blockableUSDC.abi.Pack("isBlacklisted", account)
}

// UnpackIsBlacklisted is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xfe575a87.
//
// Solidity: function isBlacklisted(address account) view returns(bool)
func (blockableUSDC *BlockableUSDC) UnpackIsBlacklisted(data []byte) (bool, error) {
	out, err := blockableUSDC.abi.Unpack("isBlacklisted", data)
	if err != nil {
		return *new(bool), err
	}
	out0 := *abi.ConvertType(out[0], new(bool)).(*bool)
	return out0, nil
}

// PackMint is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x40c10f19.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function mint(address to, uint256 amount) returns()
func (blockableUSDC *BlockableUSDC) PackMint(to common.Address, amount *big.Int) []byte {
	enc, err := blockableUSDC.abi.Pack("mint", to, amount)
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
func (blockableUSDC *BlockableUSDC) TryPackMint(to common.Address, amount *big.Int) ([]byte, error) {
	return blockableUSDC.abi.Pack("mint", to, amount)
}

// PackName is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x06fdde03.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function name() view returns(string)
func (blockableUSDC *BlockableUSDC) PackName() []byte {
	enc, err := blockableUSDC.abi.Pack("name")
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
func (blockableUSDC *BlockableUSDC) TryPackName() ([]byte, error) {
	return blockableUSDC.abi.Pack("name")
}

// UnpackName is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x06fdde03.
//
// Solidity: function name() view returns(string)
func (blockableUSDC *BlockableUSDC) UnpackName(data []byte) (string, error) {
	out, err := blockableUSDC.abi.Unpack("name", data)
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
func (blockableUSDC *BlockableUSDC) PackNonces(owner common.Address) []byte {
	enc, err := blockableUSDC.abi.Pack("nonces", owner)
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
func (blockableUSDC *BlockableUSDC) TryPackNonces(owner common.Address) ([]byte, error) {
	return blockableUSDC.abi.Pack("nonces", owner)
}

// UnpackNonces is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x7ecebe00.
//
// Solidity: function nonces(address owner) view returns(uint256)
func (blockableUSDC *BlockableUSDC) UnpackNonces(data []byte) (*big.Int, error) {
	out, err := blockableUSDC.abi.Unpack("nonces", data)
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
func (blockableUSDC *BlockableUSDC) PackOwner() []byte {
	enc, err := blockableUSDC.abi.Pack("owner")
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
func (blockableUSDC *BlockableUSDC) TryPackOwner() ([]byte, error) {
	return blockableUSDC.abi.Pack("owner")
}

// UnpackOwner is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x8da5cb5b.
//
// Solidity: function owner() view returns(address)
func (blockableUSDC *BlockableUSDC) UnpackOwner(data []byte) (common.Address, error) {
	out, err := blockableUSDC.abi.Unpack("owner", data)
	if err != nil {
		return *new(common.Address), err
	}
	out0 := *abi.ConvertType(out[0], new(common.Address)).(*common.Address)
	return out0, nil
}

// PackPaused is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x5c975abb.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function paused() view returns(bool)
func (blockableUSDC *BlockableUSDC) PackPaused() []byte {
	enc, err := blockableUSDC.abi.Pack("paused")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackPaused is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x5c975abb.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function paused() view returns(bool)
func (blockableUSDC *BlockableUSDC) TryPackPaused() ([]byte, error) {
	return blockableUSDC.abi.Pack("paused")
}

// UnpackPaused is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x5c975abb.
//
// Solidity: function paused() view returns(bool)
func (blockableUSDC *BlockableUSDC) UnpackPaused(data []byte) (bool, error) {
	out, err := blockableUSDC.abi.Unpack("paused", data)
	if err != nil {
		return *new(bool), err
	}
	out0 := *abi.ConvertType(out[0], new(bool)).(*bool)
	return out0, nil
}

// PackPermit is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x9fd5a6cf.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function permit(address owner, address spender, uint256 value, uint256 deadline, bytes signature) returns()
func (blockableUSDC *BlockableUSDC) PackPermit(owner common.Address, spender common.Address, value *big.Int, deadline *big.Int, signature []byte) []byte {
	enc, err := blockableUSDC.abi.Pack("permit", owner, spender, value, deadline, signature)
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
func (blockableUSDC *BlockableUSDC) TryPackPermit(owner common.Address, spender common.Address, value *big.Int, deadline *big.Int, signature []byte) ([]byte, error) {
	return blockableUSDC.abi.Pack("permit", owner, spender, value, deadline, signature)
}

// PackPermit0 is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xd505accf.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s) returns()
func (blockableUSDC *BlockableUSDC) PackPermit0(owner common.Address, spender common.Address, value *big.Int, deadline *big.Int, v uint8, r [32]byte, s [32]byte) []byte {
	enc, err := blockableUSDC.abi.Pack("permit0", owner, spender, value, deadline, v, r, s)
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
func (blockableUSDC *BlockableUSDC) TryPackPermit0(owner common.Address, spender common.Address, value *big.Int, deadline *big.Int, v uint8, r [32]byte, s [32]byte) ([]byte, error) {
	return blockableUSDC.abi.Pack("permit0", owner, spender, value, deadline, v, r, s)
}

// PackReceiveWithAuthorization is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x88b7ab63.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature) returns()
func (blockableUSDC *BlockableUSDC) PackReceiveWithAuthorization(from common.Address, to common.Address, value *big.Int, validAfter *big.Int, validBefore *big.Int, nonce [32]byte, signature []byte) []byte {
	enc, err := blockableUSDC.abi.Pack("receiveWithAuthorization", from, to, value, validAfter, validBefore, nonce, signature)
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
func (blockableUSDC *BlockableUSDC) TryPackReceiveWithAuthorization(from common.Address, to common.Address, value *big.Int, validAfter *big.Int, validBefore *big.Int, nonce [32]byte, signature []byte) ([]byte, error) {
	return blockableUSDC.abi.Pack("receiveWithAuthorization", from, to, value, validAfter, validBefore, nonce, signature)
}

// PackReceiveWithAuthorization0 is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xef55bec6.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) returns()
func (blockableUSDC *BlockableUSDC) PackReceiveWithAuthorization0(from common.Address, to common.Address, value *big.Int, validAfter *big.Int, validBefore *big.Int, nonce [32]byte, v uint8, r [32]byte, s [32]byte) []byte {
	enc, err := blockableUSDC.abi.Pack("receiveWithAuthorization0", from, to, value, validAfter, validBefore, nonce, v, r, s)
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
func (blockableUSDC *BlockableUSDC) TryPackReceiveWithAuthorization0(from common.Address, to common.Address, value *big.Int, validAfter *big.Int, validBefore *big.Int, nonce [32]byte, v uint8, r [32]byte, s [32]byte) ([]byte, error) {
	return blockableUSDC.abi.Pack("receiveWithAuthorization0", from, to, value, validAfter, validBefore, nonce, v, r, s)
}

// PackRenounceOwnership is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x715018a6.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function renounceOwnership() returns()
func (blockableUSDC *BlockableUSDC) PackRenounceOwnership() []byte {
	enc, err := blockableUSDC.abi.Pack("renounceOwnership")
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
func (blockableUSDC *BlockableUSDC) TryPackRenounceOwnership() ([]byte, error) {
	return blockableUSDC.abi.Pack("renounceOwnership")
}

// PackSetBlocked is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x000af2a1.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function setBlocked(address account, bool blocked) returns()
func (blockableUSDC *BlockableUSDC) PackSetBlocked(account common.Address, blocked bool) []byte {
	enc, err := blockableUSDC.abi.Pack("setBlocked", account, blocked)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackSetBlocked is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x000af2a1.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function setBlocked(address account, bool blocked) returns()
func (blockableUSDC *BlockableUSDC) TryPackSetBlocked(account common.Address, blocked bool) ([]byte, error) {
	return blockableUSDC.abi.Pack("setBlocked", account, blocked)
}

// PackSetPaused is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x16c38b3c.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function setPaused(bool pause) returns()
func (blockableUSDC *BlockableUSDC) PackSetPaused(pause bool) []byte {
	enc, err := blockableUSDC.abi.Pack("setPaused", pause)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackSetPaused is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x16c38b3c.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function setPaused(bool pause) returns()
func (blockableUSDC *BlockableUSDC) TryPackSetPaused(pause bool) ([]byte, error) {
	return blockableUSDC.abi.Pack("setPaused", pause)
}

// PackSymbol is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x95d89b41.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function symbol() view returns(string)
func (blockableUSDC *BlockableUSDC) PackSymbol() []byte {
	enc, err := blockableUSDC.abi.Pack("symbol")
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
func (blockableUSDC *BlockableUSDC) TryPackSymbol() ([]byte, error) {
	return blockableUSDC.abi.Pack("symbol")
}

// UnpackSymbol is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x95d89b41.
//
// Solidity: function symbol() view returns(string)
func (blockableUSDC *BlockableUSDC) UnpackSymbol(data []byte) (string, error) {
	out, err := blockableUSDC.abi.Unpack("symbol", data)
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
func (blockableUSDC *BlockableUSDC) PackTotalSupply() []byte {
	enc, err := blockableUSDC.abi.Pack("totalSupply")
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
func (blockableUSDC *BlockableUSDC) TryPackTotalSupply() ([]byte, error) {
	return blockableUSDC.abi.Pack("totalSupply")
}

// UnpackTotalSupply is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x18160ddd.
//
// Solidity: function totalSupply() view returns(uint256)
func (blockableUSDC *BlockableUSDC) UnpackTotalSupply(data []byte) (*big.Int, error) {
	out, err := blockableUSDC.abi.Unpack("totalSupply", data)
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
func (blockableUSDC *BlockableUSDC) PackTransfer(to common.Address, value *big.Int) []byte {
	enc, err := blockableUSDC.abi.Pack("transfer", to, value)
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
func (blockableUSDC *BlockableUSDC) TryPackTransfer(to common.Address, value *big.Int) ([]byte, error) {
	return blockableUSDC.abi.Pack("transfer", to, value)
}

// UnpackTransfer is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xa9059cbb.
//
// Solidity: function transfer(address to, uint256 value) returns(bool)
func (blockableUSDC *BlockableUSDC) UnpackTransfer(data []byte) (bool, error) {
	out, err := blockableUSDC.abi.Unpack("transfer", data)
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
func (blockableUSDC *BlockableUSDC) PackTransferFrom(from common.Address, to common.Address, value *big.Int) []byte {
	enc, err := blockableUSDC.abi.Pack("transferFrom", from, to, value)
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
func (blockableUSDC *BlockableUSDC) TryPackTransferFrom(from common.Address, to common.Address, value *big.Int) ([]byte, error) {
	return blockableUSDC.abi.Pack("transferFrom", from, to, value)
}

// UnpackTransferFrom is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x23b872dd.
//
// Solidity: function transferFrom(address from, address to, uint256 value) returns(bool)
func (blockableUSDC *BlockableUSDC) UnpackTransferFrom(data []byte) (bool, error) {
	out, err := blockableUSDC.abi.Unpack("transferFrom", data)
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
func (blockableUSDC *BlockableUSDC) PackTransferOwnership(newOwner common.Address) []byte {
	enc, err := blockableUSDC.abi.Pack("transferOwnership", newOwner)
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
func (blockableUSDC *BlockableUSDC) TryPackTransferOwnership(newOwner common.Address) ([]byte, error) {
	return blockableUSDC.abi.Pack("transferOwnership", newOwner)
}

// PackTransferWithAuthorization is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xcf092995.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature) returns()
func (blockableUSDC *BlockableUSDC) PackTransferWithAuthorization(from common.Address, to common.Address, value *big.Int, validAfter *big.Int, validBefore *big.Int, nonce [32]byte, signature []byte) []byte {
	enc, err := blockableUSDC.abi.Pack("transferWithAuthorization", from, to, value, validAfter, validBefore, nonce, signature)
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
func (blockableUSDC *BlockableUSDC) TryPackTransferWithAuthorization(from common.Address, to common.Address, value *big.Int, validAfter *big.Int, validBefore *big.Int, nonce [32]byte, signature []byte) ([]byte, error) {
	return blockableUSDC.abi.Pack("transferWithAuthorization", from, to, value, validAfter, validBefore, nonce, signature)
}

// PackTransferWithAuthorization0 is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xe3ee160e.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) returns()
func (blockableUSDC *BlockableUSDC) PackTransferWithAuthorization0(from common.Address, to common.Address, value *big.Int, validAfter *big.Int, validBefore *big.Int, nonce [32]byte, v uint8, r [32]byte, s [32]byte) []byte {
	enc, err := blockableUSDC.abi.Pack("transferWithAuthorization0", from, to, value, validAfter, validBefore, nonce, v, r, s)
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
func (blockableUSDC *BlockableUSDC) TryPackTransferWithAuthorization0(from common.Address, to common.Address, value *big.Int, validAfter *big.Int, validBefore *big.Int, nonce [32]byte, v uint8, r [32]byte, s [32]byte) ([]byte, error) {
	return blockableUSDC.abi.Pack("transferWithAuthorization0", from, to, value, validAfter, validBefore, nonce, v, r, s)
}

// PackVersion is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x54fd4d50.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function version() pure returns(string)
func (blockableUSDC *BlockableUSDC) PackVersion() []byte {
	enc, err := blockableUSDC.abi.Pack("version")
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
func (blockableUSDC *BlockableUSDC) TryPackVersion() ([]byte, error) {
	return blockableUSDC.abi.Pack("version")
}

// UnpackVersion is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x54fd4d50.
//
// Solidity: function version() pure returns(string)
func (blockableUSDC *BlockableUSDC) UnpackVersion(data []byte) (string, error) {
	out, err := blockableUSDC.abi.Unpack("version", data)
	if err != nil {
		return *new(string), err
	}
	out0 := *abi.ConvertType(out[0], new(string)).(*string)
	return out0, nil
}

// BlockableUSDCApproval represents a Approval event raised by the BlockableUSDC contract.
type BlockableUSDCApproval struct {
	Owner   common.Address
	Spender common.Address
	Value   *big.Int
	Raw     *types.Log // Blockchain specific contextual infos
}

const BlockableUSDCApprovalEventName = "Approval"

// ContractEventName returns the user-defined event name.
func (BlockableUSDCApproval) ContractEventName() string {
	return BlockableUSDCApprovalEventName
}

// UnpackApprovalEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event Approval(address indexed owner, address indexed spender, uint256 value)
func (blockableUSDC *BlockableUSDC) UnpackApprovalEvent(log *types.Log) (*BlockableUSDCApproval, error) {
	event := "Approval"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != blockableUSDC.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(BlockableUSDCApproval)
	if len(log.Data) > 0 {
		if err := blockableUSDC.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range blockableUSDC.abi.Events[event].Inputs {
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

// BlockableUSDCAuthorizationCanceled represents a AuthorizationCanceled event raised by the BlockableUSDC contract.
type BlockableUSDCAuthorizationCanceled struct {
	Authorizer common.Address
	Nonce      [32]byte
	Raw        *types.Log // Blockchain specific contextual infos
}

const BlockableUSDCAuthorizationCanceledEventName = "AuthorizationCanceled"

// ContractEventName returns the user-defined event name.
func (BlockableUSDCAuthorizationCanceled) ContractEventName() string {
	return BlockableUSDCAuthorizationCanceledEventName
}

// UnpackAuthorizationCanceledEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)
func (blockableUSDC *BlockableUSDC) UnpackAuthorizationCanceledEvent(log *types.Log) (*BlockableUSDCAuthorizationCanceled, error) {
	event := "AuthorizationCanceled"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != blockableUSDC.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(BlockableUSDCAuthorizationCanceled)
	if len(log.Data) > 0 {
		if err := blockableUSDC.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range blockableUSDC.abi.Events[event].Inputs {
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

// BlockableUSDCAuthorizationUsed represents a AuthorizationUsed event raised by the BlockableUSDC contract.
type BlockableUSDCAuthorizationUsed struct {
	Authorizer common.Address
	Nonce      [32]byte
	Raw        *types.Log // Blockchain specific contextual infos
}

const BlockableUSDCAuthorizationUsedEventName = "AuthorizationUsed"

// ContractEventName returns the user-defined event name.
func (BlockableUSDCAuthorizationUsed) ContractEventName() string {
	return BlockableUSDCAuthorizationUsedEventName
}

// UnpackAuthorizationUsedEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)
func (blockableUSDC *BlockableUSDC) UnpackAuthorizationUsedEvent(log *types.Log) (*BlockableUSDCAuthorizationUsed, error) {
	event := "AuthorizationUsed"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != blockableUSDC.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(BlockableUSDCAuthorizationUsed)
	if len(log.Data) > 0 {
		if err := blockableUSDC.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range blockableUSDC.abi.Events[event].Inputs {
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

// BlockableUSDCEIP712DomainChanged represents a EIP712DomainChanged event raised by the BlockableUSDC contract.
type BlockableUSDCEIP712DomainChanged struct {
	Raw *types.Log // Blockchain specific contextual infos
}

const BlockableUSDCEIP712DomainChangedEventName = "EIP712DomainChanged"

// ContractEventName returns the user-defined event name.
func (BlockableUSDCEIP712DomainChanged) ContractEventName() string {
	return BlockableUSDCEIP712DomainChangedEventName
}

// UnpackEIP712DomainChangedEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event EIP712DomainChanged()
func (blockableUSDC *BlockableUSDC) UnpackEIP712DomainChangedEvent(log *types.Log) (*BlockableUSDCEIP712DomainChanged, error) {
	event := "EIP712DomainChanged"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != blockableUSDC.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(BlockableUSDCEIP712DomainChanged)
	if len(log.Data) > 0 {
		if err := blockableUSDC.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range blockableUSDC.abi.Events[event].Inputs {
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

// BlockableUSDCOwnershipTransferred represents a OwnershipTransferred event raised by the BlockableUSDC contract.
type BlockableUSDCOwnershipTransferred struct {
	PreviousOwner common.Address
	NewOwner      common.Address
	Raw           *types.Log // Blockchain specific contextual infos
}

const BlockableUSDCOwnershipTransferredEventName = "OwnershipTransferred"

// ContractEventName returns the user-defined event name.
func (BlockableUSDCOwnershipTransferred) ContractEventName() string {
	return BlockableUSDCOwnershipTransferredEventName
}

// UnpackOwnershipTransferredEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event OwnershipTransferred(address indexed previousOwner, address indexed newOwner)
func (blockableUSDC *BlockableUSDC) UnpackOwnershipTransferredEvent(log *types.Log) (*BlockableUSDCOwnershipTransferred, error) {
	event := "OwnershipTransferred"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != blockableUSDC.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(BlockableUSDCOwnershipTransferred)
	if len(log.Data) > 0 {
		if err := blockableUSDC.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range blockableUSDC.abi.Events[event].Inputs {
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

// BlockableUSDCTransfer represents a Transfer event raised by the BlockableUSDC contract.
type BlockableUSDCTransfer struct {
	From  common.Address
	To    common.Address
	Value *big.Int
	Raw   *types.Log // Blockchain specific contextual infos
}

const BlockableUSDCTransferEventName = "Transfer"

// ContractEventName returns the user-defined event name.
func (BlockableUSDCTransfer) ContractEventName() string {
	return BlockableUSDCTransferEventName
}

// UnpackTransferEvent is the Go binding that unpacks the event data emitted
// by contract.
//
// Solidity: event Transfer(address indexed from, address indexed to, uint256 value)
func (blockableUSDC *BlockableUSDC) UnpackTransferEvent(log *types.Log) (*BlockableUSDCTransfer, error) {
	event := "Transfer"
	if len(log.Topics) == 0 {
		return nil, bind.ErrNoEventSignature
	}
	if log.Topics[0] != blockableUSDC.abi.Events[event].ID {
		return nil, bind.ErrEventSignatureMismatch
	}
	out := new(BlockableUSDCTransfer)
	if len(log.Data) > 0 {
		if err := blockableUSDC.abi.UnpackIntoInterface(out, event, log.Data); err != nil {
			return nil, err
		}
	}
	var indexed abi.Arguments
	for _, arg := range blockableUSDC.abi.Events[event].Inputs {
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
func (blockableUSDC *BlockableUSDC) UnpackError(raw []byte) (any, error) {
	if bytes.Equal(raw[:4], blockableUSDC.abi.Errors["AuthorizationExpired"].ID.Bytes()[:4]) {
		return blockableUSDC.UnpackAuthorizationExpiredError(raw[4:])
	}
	if bytes.Equal(raw[:4], blockableUSDC.abi.Errors["AuthorizationNotYetValid"].ID.Bytes()[:4]) {
		return blockableUSDC.UnpackAuthorizationNotYetValidError(raw[4:])
	}
	if bytes.Equal(raw[:4], blockableUSDC.abi.Errors["AuthorizationUsedOrCanceled"].ID.Bytes()[:4]) {
		return blockableUSDC.UnpackAuthorizationUsedOrCanceledError(raw[4:])
	}
	if bytes.Equal(raw[:4], blockableUSDC.abi.Errors["CallerMustBePayee"].ID.Bytes()[:4]) {
		return blockableUSDC.UnpackCallerMustBePayeeError(raw[4:])
	}
	if bytes.Equal(raw[:4], blockableUSDC.abi.Errors["ERC20InsufficientAllowance"].ID.Bytes()[:4]) {
		return blockableUSDC.UnpackERC20InsufficientAllowanceError(raw[4:])
	}
	if bytes.Equal(raw[:4], blockableUSDC.abi.Errors["ERC20InsufficientBalance"].ID.Bytes()[:4]) {
		return blockableUSDC.UnpackERC20InsufficientBalanceError(raw[4:])
	}
	if bytes.Equal(raw[:4], blockableUSDC.abi.Errors["ERC20InvalidApprover"].ID.Bytes()[:4]) {
		return blockableUSDC.UnpackERC20InvalidApproverError(raw[4:])
	}
	if bytes.Equal(raw[:4], blockableUSDC.abi.Errors["ERC20InvalidReceiver"].ID.Bytes()[:4]) {
		return blockableUSDC.UnpackERC20InvalidReceiverError(raw[4:])
	}
	if bytes.Equal(raw[:4], blockableUSDC.abi.Errors["ERC20InvalidSender"].ID.Bytes()[:4]) {
		return blockableUSDC.UnpackERC20InvalidSenderError(raw[4:])
	}
	if bytes.Equal(raw[:4], blockableUSDC.abi.Errors["ERC20InvalidSpender"].ID.Bytes()[:4]) {
		return blockableUSDC.UnpackERC20InvalidSpenderError(raw[4:])
	}
	if bytes.Equal(raw[:4], blockableUSDC.abi.Errors["InvalidAccountNonce"].ID.Bytes()[:4]) {
		return blockableUSDC.UnpackInvalidAccountNonceError(raw[4:])
	}
	if bytes.Equal(raw[:4], blockableUSDC.abi.Errors["InvalidShortString"].ID.Bytes()[:4]) {
		return blockableUSDC.UnpackInvalidShortStringError(raw[4:])
	}
	if bytes.Equal(raw[:4], blockableUSDC.abi.Errors["InvalidSignature"].ID.Bytes()[:4]) {
		return blockableUSDC.UnpackInvalidSignatureError(raw[4:])
	}
	if bytes.Equal(raw[:4], blockableUSDC.abi.Errors["OwnableInvalidOwner"].ID.Bytes()[:4]) {
		return blockableUSDC.UnpackOwnableInvalidOwnerError(raw[4:])
	}
	if bytes.Equal(raw[:4], blockableUSDC.abi.Errors["OwnableUnauthorizedAccount"].ID.Bytes()[:4]) {
		return blockableUSDC.UnpackOwnableUnauthorizedAccountError(raw[4:])
	}
	if bytes.Equal(raw[:4], blockableUSDC.abi.Errors["PermitExpired"].ID.Bytes()[:4]) {
		return blockableUSDC.UnpackPermitExpiredError(raw[4:])
	}
	if bytes.Equal(raw[:4], blockableUSDC.abi.Errors["StringTooLong"].ID.Bytes()[:4]) {
		return blockableUSDC.UnpackStringTooLongError(raw[4:])
	}
	return nil, errors.New("Unknown error")
}

// BlockableUSDCAuthorizationExpired represents a AuthorizationExpired error raised by the BlockableUSDC contract.
type BlockableUSDCAuthorizationExpired struct {
	ValidBefore *big.Int
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error AuthorizationExpired(uint256 validBefore)
func BlockableUSDCAuthorizationExpiredErrorID() common.Hash {
	return common.HexToHash("0x3d91b05fdcd2d1cf4f2afc5066ced64e8f51b3c6231d2520419fdf3611015311")
}

// UnpackAuthorizationExpiredError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error AuthorizationExpired(uint256 validBefore)
func (blockableUSDC *BlockableUSDC) UnpackAuthorizationExpiredError(raw []byte) (*BlockableUSDCAuthorizationExpired, error) {
	out := new(BlockableUSDCAuthorizationExpired)
	if err := blockableUSDC.abi.UnpackIntoInterface(out, "AuthorizationExpired", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// BlockableUSDCAuthorizationNotYetValid represents a AuthorizationNotYetValid error raised by the BlockableUSDC contract.
type BlockableUSDCAuthorizationNotYetValid struct {
	ValidAfter *big.Int
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error AuthorizationNotYetValid(uint256 validAfter)
func BlockableUSDCAuthorizationNotYetValidErrorID() common.Hash {
	return common.HexToHash("0x7a4df07913fa2cec8ed6078f075884f9382e467bee96d3361aa5b2790d69573b")
}

// UnpackAuthorizationNotYetValidError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error AuthorizationNotYetValid(uint256 validAfter)
func (blockableUSDC *BlockableUSDC) UnpackAuthorizationNotYetValidError(raw []byte) (*BlockableUSDCAuthorizationNotYetValid, error) {
	out := new(BlockableUSDCAuthorizationNotYetValid)
	if err := blockableUSDC.abi.UnpackIntoInterface(out, "AuthorizationNotYetValid", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// BlockableUSDCAuthorizationUsedOrCanceled represents a AuthorizationUsedOrCanceled error raised by the BlockableUSDC contract.
type BlockableUSDCAuthorizationUsedOrCanceled struct {
	Authorizer common.Address
	Nonce      [32]byte
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error AuthorizationUsedOrCanceled(address authorizer, bytes32 nonce)
func BlockableUSDCAuthorizationUsedOrCanceledErrorID() common.Hash {
	return common.HexToHash("0x8ef82f7f1bfa895e16bf92f70abe253e4ff843f7d7ef855b69b61792cb510759")
}

// UnpackAuthorizationUsedOrCanceledError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error AuthorizationUsedOrCanceled(address authorizer, bytes32 nonce)
func (blockableUSDC *BlockableUSDC) UnpackAuthorizationUsedOrCanceledError(raw []byte) (*BlockableUSDCAuthorizationUsedOrCanceled, error) {
	out := new(BlockableUSDCAuthorizationUsedOrCanceled)
	if err := blockableUSDC.abi.UnpackIntoInterface(out, "AuthorizationUsedOrCanceled", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// BlockableUSDCCallerMustBePayee represents a CallerMustBePayee error raised by the BlockableUSDC contract.
type BlockableUSDCCallerMustBePayee struct {
	Caller common.Address
	Payee  common.Address
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error CallerMustBePayee(address caller, address payee)
func BlockableUSDCCallerMustBePayeeErrorID() common.Hash {
	return common.HexToHash("0x1c5939f31210844d30e56777aa20aeb2885a4d01d2a8f4ac198ee1145de83799")
}

// UnpackCallerMustBePayeeError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error CallerMustBePayee(address caller, address payee)
func (blockableUSDC *BlockableUSDC) UnpackCallerMustBePayeeError(raw []byte) (*BlockableUSDCCallerMustBePayee, error) {
	out := new(BlockableUSDCCallerMustBePayee)
	if err := blockableUSDC.abi.UnpackIntoInterface(out, "CallerMustBePayee", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// BlockableUSDCERC20InsufficientAllowance represents a ERC20InsufficientAllowance error raised by the BlockableUSDC contract.
type BlockableUSDCERC20InsufficientAllowance struct {
	Spender   common.Address
	Allowance *big.Int
	Needed    *big.Int
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error ERC20InsufficientAllowance(address spender, uint256 allowance, uint256 needed)
func BlockableUSDCERC20InsufficientAllowanceErrorID() common.Hash {
	return common.HexToHash("0xfb8f41b23e99d2101d86da76cdfa87dd51c82ed07d3cb62cbc473e469dbc75c3")
}

// UnpackERC20InsufficientAllowanceError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error ERC20InsufficientAllowance(address spender, uint256 allowance, uint256 needed)
func (blockableUSDC *BlockableUSDC) UnpackERC20InsufficientAllowanceError(raw []byte) (*BlockableUSDCERC20InsufficientAllowance, error) {
	out := new(BlockableUSDCERC20InsufficientAllowance)
	if err := blockableUSDC.abi.UnpackIntoInterface(out, "ERC20InsufficientAllowance", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// BlockableUSDCERC20InsufficientBalance represents a ERC20InsufficientBalance error raised by the BlockableUSDC contract.
type BlockableUSDCERC20InsufficientBalance struct {
	Sender  common.Address
	Balance *big.Int
	Needed  *big.Int
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)
func BlockableUSDCERC20InsufficientBalanceErrorID() common.Hash {
	return common.HexToHash("0xe450d38cd8d9f7d95077d567d60ed49c7254716e6ad08fc9872816c97e0ffec6")
}

// UnpackERC20InsufficientBalanceError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)
func (blockableUSDC *BlockableUSDC) UnpackERC20InsufficientBalanceError(raw []byte) (*BlockableUSDCERC20InsufficientBalance, error) {
	out := new(BlockableUSDCERC20InsufficientBalance)
	if err := blockableUSDC.abi.UnpackIntoInterface(out, "ERC20InsufficientBalance", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// BlockableUSDCERC20InvalidApprover represents a ERC20InvalidApprover error raised by the BlockableUSDC contract.
type BlockableUSDCERC20InvalidApprover struct {
	Approver common.Address
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error ERC20InvalidApprover(address approver)
func BlockableUSDCERC20InvalidApproverErrorID() common.Hash {
	return common.HexToHash("0xe602df05cc75712490294c6c104ab7c17f4030363910a7a2626411c6d3118847")
}

// UnpackERC20InvalidApproverError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error ERC20InvalidApprover(address approver)
func (blockableUSDC *BlockableUSDC) UnpackERC20InvalidApproverError(raw []byte) (*BlockableUSDCERC20InvalidApprover, error) {
	out := new(BlockableUSDCERC20InvalidApprover)
	if err := blockableUSDC.abi.UnpackIntoInterface(out, "ERC20InvalidApprover", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// BlockableUSDCERC20InvalidReceiver represents a ERC20InvalidReceiver error raised by the BlockableUSDC contract.
type BlockableUSDCERC20InvalidReceiver struct {
	Receiver common.Address
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error ERC20InvalidReceiver(address receiver)
func BlockableUSDCERC20InvalidReceiverErrorID() common.Hash {
	return common.HexToHash("0xec442f055133b72f3b2f9f0bb351c406b178527de2040a7d1feb4e058771f613")
}

// UnpackERC20InvalidReceiverError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error ERC20InvalidReceiver(address receiver)
func (blockableUSDC *BlockableUSDC) UnpackERC20InvalidReceiverError(raw []byte) (*BlockableUSDCERC20InvalidReceiver, error) {
	out := new(BlockableUSDCERC20InvalidReceiver)
	if err := blockableUSDC.abi.UnpackIntoInterface(out, "ERC20InvalidReceiver", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// BlockableUSDCERC20InvalidSender represents a ERC20InvalidSender error raised by the BlockableUSDC contract.
type BlockableUSDCERC20InvalidSender struct {
	Sender common.Address
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error ERC20InvalidSender(address sender)
func BlockableUSDCERC20InvalidSenderErrorID() common.Hash {
	return common.HexToHash("0x96c6fd1edd0cd6ef7ff0ecc0facdf53148dc0048b57fe58af65755250a7a96bd")
}

// UnpackERC20InvalidSenderError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error ERC20InvalidSender(address sender)
func (blockableUSDC *BlockableUSDC) UnpackERC20InvalidSenderError(raw []byte) (*BlockableUSDCERC20InvalidSender, error) {
	out := new(BlockableUSDCERC20InvalidSender)
	if err := blockableUSDC.abi.UnpackIntoInterface(out, "ERC20InvalidSender", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// BlockableUSDCERC20InvalidSpender represents a ERC20InvalidSpender error raised by the BlockableUSDC contract.
type BlockableUSDCERC20InvalidSpender struct {
	Spender common.Address
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error ERC20InvalidSpender(address spender)
func BlockableUSDCERC20InvalidSpenderErrorID() common.Hash {
	return common.HexToHash("0x94280d62c347d8d9f4d59a76ea321452406db88df38e0c9da304f58b57b373a2")
}

// UnpackERC20InvalidSpenderError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error ERC20InvalidSpender(address spender)
func (blockableUSDC *BlockableUSDC) UnpackERC20InvalidSpenderError(raw []byte) (*BlockableUSDCERC20InvalidSpender, error) {
	out := new(BlockableUSDCERC20InvalidSpender)
	if err := blockableUSDC.abi.UnpackIntoInterface(out, "ERC20InvalidSpender", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// BlockableUSDCInvalidAccountNonce represents a InvalidAccountNonce error raised by the BlockableUSDC contract.
type BlockableUSDCInvalidAccountNonce struct {
	Account      common.Address
	CurrentNonce *big.Int
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error InvalidAccountNonce(address account, uint256 currentNonce)
func BlockableUSDCInvalidAccountNonceErrorID() common.Hash {
	return common.HexToHash("0x752d88c0de02638abf10e8e31861e4c68dc1f3a1e7d840e580683f2c282bfc7a")
}

// UnpackInvalidAccountNonceError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error InvalidAccountNonce(address account, uint256 currentNonce)
func (blockableUSDC *BlockableUSDC) UnpackInvalidAccountNonceError(raw []byte) (*BlockableUSDCInvalidAccountNonce, error) {
	out := new(BlockableUSDCInvalidAccountNonce)
	if err := blockableUSDC.abi.UnpackIntoInterface(out, "InvalidAccountNonce", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// BlockableUSDCInvalidShortString represents a InvalidShortString error raised by the BlockableUSDC contract.
type BlockableUSDCInvalidShortString struct {
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error InvalidShortString()
func BlockableUSDCInvalidShortStringErrorID() common.Hash {
	return common.HexToHash("0xb3512b0c6163e5f0bafab72bb631b9d58cd7a731b082f910338aa21c83d5c274")
}

// UnpackInvalidShortStringError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error InvalidShortString()
func (blockableUSDC *BlockableUSDC) UnpackInvalidShortStringError(raw []byte) (*BlockableUSDCInvalidShortString, error) {
	out := new(BlockableUSDCInvalidShortString)
	if err := blockableUSDC.abi.UnpackIntoInterface(out, "InvalidShortString", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// BlockableUSDCInvalidSignature represents a InvalidSignature error raised by the BlockableUSDC contract.
type BlockableUSDCInvalidSignature struct {
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error InvalidSignature()
func BlockableUSDCInvalidSignatureErrorID() common.Hash {
	return common.HexToHash("0x8baa579fce362245063d36f11747a89dd489c54795634fc673cc0e0db51fedc5")
}

// UnpackInvalidSignatureError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error InvalidSignature()
func (blockableUSDC *BlockableUSDC) UnpackInvalidSignatureError(raw []byte) (*BlockableUSDCInvalidSignature, error) {
	out := new(BlockableUSDCInvalidSignature)
	if err := blockableUSDC.abi.UnpackIntoInterface(out, "InvalidSignature", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// BlockableUSDCOwnableInvalidOwner represents a OwnableInvalidOwner error raised by the BlockableUSDC contract.
type BlockableUSDCOwnableInvalidOwner struct {
	Owner common.Address
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error OwnableInvalidOwner(address owner)
func BlockableUSDCOwnableInvalidOwnerErrorID() common.Hash {
	return common.HexToHash("0x1e4fbdf7f3ef8bcaa855599e3abf48b232380f183f08f6f813d9ffa5bd585188")
}

// UnpackOwnableInvalidOwnerError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error OwnableInvalidOwner(address owner)
func (blockableUSDC *BlockableUSDC) UnpackOwnableInvalidOwnerError(raw []byte) (*BlockableUSDCOwnableInvalidOwner, error) {
	out := new(BlockableUSDCOwnableInvalidOwner)
	if err := blockableUSDC.abi.UnpackIntoInterface(out, "OwnableInvalidOwner", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// BlockableUSDCOwnableUnauthorizedAccount represents a OwnableUnauthorizedAccount error raised by the BlockableUSDC contract.
type BlockableUSDCOwnableUnauthorizedAccount struct {
	Account common.Address
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error OwnableUnauthorizedAccount(address account)
func BlockableUSDCOwnableUnauthorizedAccountErrorID() common.Hash {
	return common.HexToHash("0x118cdaa7a341953d1887a2245fd6665d741c67c8c50581daa59e1d03373fa188")
}

// UnpackOwnableUnauthorizedAccountError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error OwnableUnauthorizedAccount(address account)
func (blockableUSDC *BlockableUSDC) UnpackOwnableUnauthorizedAccountError(raw []byte) (*BlockableUSDCOwnableUnauthorizedAccount, error) {
	out := new(BlockableUSDCOwnableUnauthorizedAccount)
	if err := blockableUSDC.abi.UnpackIntoInterface(out, "OwnableUnauthorizedAccount", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// BlockableUSDCPermitExpired represents a PermitExpired error raised by the BlockableUSDC contract.
type BlockableUSDCPermitExpired struct {
	Deadline *big.Int
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error PermitExpired(uint256 deadline)
func BlockableUSDCPermitExpiredErrorID() common.Hash {
	return common.HexToHash("0x9e96b26fa430cdb94aa7d06991102a0577730e9f5f52f05b4f010c56a086c2ad")
}

// UnpackPermitExpiredError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error PermitExpired(uint256 deadline)
func (blockableUSDC *BlockableUSDC) UnpackPermitExpiredError(raw []byte) (*BlockableUSDCPermitExpired, error) {
	out := new(BlockableUSDCPermitExpired)
	if err := blockableUSDC.abi.UnpackIntoInterface(out, "PermitExpired", raw); err != nil {
		return nil, err
	}
	return out, nil
}

// BlockableUSDCStringTooLong represents a StringTooLong error raised by the BlockableUSDC contract.
type BlockableUSDCStringTooLong struct {
	Str string
}

// ErrorID returns the hash of canonical representation of the error's signature.
//
// Solidity: error StringTooLong(string str)
func BlockableUSDCStringTooLongErrorID() common.Hash {
	return common.HexToHash("0x305a27a93f8e33b7392df0a0f91d6fc63847395853c45991eec52dbf24d72381")
}

// UnpackStringTooLongError is the Go binding used to decode the provided
// error data into the corresponding Go error struct.
//
// Solidity: error StringTooLong(string str)
func (blockableUSDC *BlockableUSDC) UnpackStringTooLongError(raw []byte) (*BlockableUSDCStringTooLong, error) {
	out := new(BlockableUSDCStringTooLong)
	if err := blockableUSDC.abi.UnpackIntoInterface(out, "StringTooLong", raw); err != nil {
		return nil, err
	}
	return out, nil
}

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

// GasBurnerMetaData contains all meta data concerning the GasBurner contract.
var GasBurnerMetaData = bind.MetaData{
	ABI: "[{\"inputs\":[{\"internalType\":\"uint256\",\"name\":\"leaves_\",\"type\":\"uint256\"}],\"name\":\"burn\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"burning\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"deploy\",\"outputs\":[],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"bytes32\",\"name\":\"\",\"type\":\"bytes32\"},{\"internalType\":\"bytes\",\"name\":\"\",\"type\":\"bytes\"}],\"name\":\"isValidSignature\",\"outputs\":[{\"internalType\":\"bytes4\",\"name\":\"\",\"type\":\"bytes4\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"leaves\",\"outputs\":[{\"internalType\":\"uint256\",\"name\":\"\",\"type\":\"uint256\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"stop\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"}]",
	ID:  "GasBurner",
	Bin: "0x6080604052348015600e575f5ffd5b506102528061001c5f395ff3fe608060405234801561000f575f5ffd5b506004361061006f575f3560e01c80634c12b33f1161004d5780634c12b33f146100ec578063775c300c14610108578063e7ede06014610110575f5ffd5b806307da68f5146100735780631626ba7e1461008357806342966c68146100cc575b5f5ffd5b6100815f805460ff19169055565b005b610096610091366004610186565b610127565b6040517fffffffff0000000000000000000000000000000000000000000000000000000090911681526020015b60405180910390f35b6100816100da3660046101fd565b5f805460ff1916600190811790915555565b5f546100f89060ff1681565b60405190151581526020016100c3565b610081610159565b61011960015481565b6040519081526020016100c3565b5f610130610163565b507f1626ba7e000000000000000000000000000000000000000000000000000000009392505050565b610161610163565b565b5f5460ff1661016e57565b6001545b61017d8160c8610214565b5a116101725750565b5f5f5f60408486031215610198575f5ffd5b83359250602084013567ffffffffffffffff8111156101b5575f5ffd5b8401601f810186136101c5575f5ffd5b803567ffffffffffffffff8111156101db575f5ffd5b8660208284010111156101ec575f5ffd5b939660209190910195509293505050565b5f6020828403121561020d575f5ffd5b5035919050565b8082018082111561024c577f4e487b71000000000000000000000000000000000000000000000000000000005f52601160045260245ffd5b9291505056",
}

// GasBurner is an auto generated Go binding around an Ethereum contract.
type GasBurner struct {
	abi abi.ABI
}

// GetABI returns the ABI associated with this contract binding.
func (c *GasBurner) GetABI() abi.ABI {
	return c.abi
}

// NewGasBurner creates a new instance of GasBurner.
func NewGasBurner() *GasBurner {
	parsed, err := GasBurnerMetaData.ParseABI()
	if err != nil {
		panic(errors.New("invalid ABI: " + err.Error()))
	}
	return &GasBurner{abi: *parsed}
}

// Instance creates a wrapper for a deployed contract instance at the given address.
// Use this to create the instance object passed to abigen v2 library functions Call, Transact, etc.
func (c *GasBurner) Instance(backend bind.ContractBackend, addr common.Address) *bind.BoundContract {
	return bind.NewBoundContract(addr, c.abi, backend, backend, backend)
}

// PackBurn is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x42966c68.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function burn(uint256 leaves_) returns()
func (gasBurner *GasBurner) PackBurn(leaves *big.Int) []byte {
	enc, err := gasBurner.abi.Pack("burn", leaves)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackBurn is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x42966c68.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function burn(uint256 leaves_) returns()
func (gasBurner *GasBurner) TryPackBurn(leaves *big.Int) ([]byte, error) {
	return gasBurner.abi.Pack("burn", leaves)
}

// PackBurning is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x4c12b33f.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function burning() view returns(bool)
func (gasBurner *GasBurner) PackBurning() []byte {
	enc, err := gasBurner.abi.Pack("burning")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackBurning is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x4c12b33f.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function burning() view returns(bool)
func (gasBurner *GasBurner) TryPackBurning() ([]byte, error) {
	return gasBurner.abi.Pack("burning")
}

// UnpackBurning is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x4c12b33f.
//
// Solidity: function burning() view returns(bool)
func (gasBurner *GasBurner) UnpackBurning(data []byte) (bool, error) {
	out, err := gasBurner.abi.Unpack("burning", data)
	if err != nil {
		return *new(bool), err
	}
	out0 := *abi.ConvertType(out[0], new(bool)).(*bool)
	return out0, nil
}

// PackDeploy is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x775c300c.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function deploy() view returns()
func (gasBurner *GasBurner) PackDeploy() []byte {
	enc, err := gasBurner.abi.Pack("deploy")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackDeploy is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x775c300c.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function deploy() view returns()
func (gasBurner *GasBurner) TryPackDeploy() ([]byte, error) {
	return gasBurner.abi.Pack("deploy")
}

// PackIsValidSignature is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x1626ba7e.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function isValidSignature(bytes32 , bytes ) view returns(bytes4)
func (gasBurner *GasBurner) PackIsValidSignature(arg0 [32]byte, arg1 []byte) []byte {
	enc, err := gasBurner.abi.Pack("isValidSignature", arg0, arg1)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackIsValidSignature is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x1626ba7e.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function isValidSignature(bytes32 , bytes ) view returns(bytes4)
func (gasBurner *GasBurner) TryPackIsValidSignature(arg0 [32]byte, arg1 []byte) ([]byte, error) {
	return gasBurner.abi.Pack("isValidSignature", arg0, arg1)
}

// UnpackIsValidSignature is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x1626ba7e.
//
// Solidity: function isValidSignature(bytes32 , bytes ) view returns(bytes4)
func (gasBurner *GasBurner) UnpackIsValidSignature(data []byte) ([4]byte, error) {
	out, err := gasBurner.abi.Unpack("isValidSignature", data)
	if err != nil {
		return *new([4]byte), err
	}
	out0 := *abi.ConvertType(out[0], new([4]byte)).(*[4]byte)
	return out0, nil
}

// PackLeaves is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xe7ede060.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function leaves() view returns(uint256)
func (gasBurner *GasBurner) PackLeaves() []byte {
	enc, err := gasBurner.abi.Pack("leaves")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackLeaves is the Go binding used to pack the parameters required for calling
// the contract method with ID 0xe7ede060.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function leaves() view returns(uint256)
func (gasBurner *GasBurner) TryPackLeaves() ([]byte, error) {
	return gasBurner.abi.Pack("leaves")
}

// UnpackLeaves is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0xe7ede060.
//
// Solidity: function leaves() view returns(uint256)
func (gasBurner *GasBurner) UnpackLeaves(data []byte) (*big.Int, error) {
	out, err := gasBurner.abi.Unpack("leaves", data)
	if err != nil {
		return new(big.Int), err
	}
	out0 := abi.ConvertType(out[0], new(big.Int)).(*big.Int)
	return out0, nil
}

// PackStop is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x07da68f5.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function stop() returns()
func (gasBurner *GasBurner) PackStop() []byte {
	enc, err := gasBurner.abi.Pack("stop")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackStop is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x07da68f5.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function stop() returns()
func (gasBurner *GasBurner) TryPackStop() ([]byte, error) {
	return gasBurner.abi.Pack("stop")
}

// SmartAccountMetaData contains all meta data concerning the SmartAccount contract.
var SmartAccountMetaData = bind.MetaData{
	ABI: "[{\"inputs\":[{\"internalType\":\"address\",\"name\":\"signer_\",\"type\":\"address\"}],\"stateMutability\":\"nonpayable\",\"type\":\"constructor\"},{\"inputs\":[],\"name\":\"burn\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"burning\",\"outputs\":[{\"internalType\":\"bool\",\"name\":\"\",\"type\":\"bool\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"bytes32\",\"name\":\"hash\",\"type\":\"bytes32\"},{\"internalType\":\"bytes\",\"name\":\"signature\",\"type\":\"bytes\"}],\"name\":\"isValidSignature\",\"outputs\":[{\"internalType\":\"bytes4\",\"name\":\"\",\"type\":\"bytes4\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[],\"name\":\"signer\",\"outputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"stateMutability\":\"view\",\"type\":\"function\"}]",
	ID:  "SmartAccount",
	Bin: "0x60a0604052348015600e575f5ffd5b5060405161046e38038061046e833981016040819052602b91603b565b6001600160a01b03166080526066565b5f60208284031215604a575f5ffd5b81516001600160a01b0381168114605f575f5ffd5b9392505050565b6080516103e361008b5f395f8181609c0152818161017701526101b301526103e35ff3fe608060405234801561000f575f5ffd5b506004361061004a575f3560e01c80631626ba7e1461004e578063238ac9331461009757806344df8e70146100d65780634c12b33f146100e9575b5f5ffd5b61006161005c366004610345565b610105565b6040517fffffffff0000000000000000000000000000000000000000000000000000000090911681526020015b60405180910390f35b6100be7f000000000000000000000000000000000000000000000000000000000000000081565b6040516001600160a01b03909116815260200161008e565b6100e75f805460ff19166001179055565b005b5f546100f59060ff1681565b604051901515815260200161008e565b5f805460ff161561011257fe5b5f6042831461012257838361012f565b61012f83600181876103bc565b8080601f0160208091040260200160405190810160405280939291908181526020018383808284375f9201829052509394506101719250889150849050610234565b505090507f00000000000000000000000000000000000000000000000000000000000000006001600160a01b0316816001600160a01b03161480156101de57507f00000000000000000000000000000000000000000000000000000000000000006001600160a01b031615155b610208577fffffffff0000000000000000000000000000000000000000000000000000000061022a565b7f1626ba7e000000000000000000000000000000000000000000000000000000005b9695505050505050565b5f5f5f835160410361026b576020840151604085015160608601515f1a61025d8882858561027d565b955095509550505050610276565b505081515f91506002905b9250925092565b5f80807f7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a08411156102b657505f9150600390508261033b565b604080515f808252602082018084528a905260ff891692820192909252606081018790526080810186905260019060a0016020604051602081039080840390855afa158015610307573d5f5f3e3d5ffd5b5050604051601f1901519150506001600160a01b03811661033257505f92506001915082905061033b565b92505f91508190505b9450945094915050565b5f5f5f60408486031215610357575f5ffd5b83359250602084013567ffffffffffffffff811115610374575f5ffd5b8401601f81018613610384575f5ffd5b803567ffffffffffffffff81111561039a575f5ffd5b8660208284010111156103ab575f5ffd5b939660209190910195509293505050565b5f5f858511156103ca575f5ffd5b838611156103d6575f5ffd5b505082019391909203915056",
}

// SmartAccount is an auto generated Go binding around an Ethereum contract.
type SmartAccount struct {
	abi abi.ABI
}

// GetABI returns the ABI associated with this contract binding.
func (c *SmartAccount) GetABI() abi.ABI {
	return c.abi
}

// NewSmartAccount creates a new instance of SmartAccount.
func NewSmartAccount() *SmartAccount {
	parsed, err := SmartAccountMetaData.ParseABI()
	if err != nil {
		panic(errors.New("invalid ABI: " + err.Error()))
	}
	return &SmartAccount{abi: *parsed}
}

// Instance creates a wrapper for a deployed contract instance at the given address.
// Use this to create the instance object passed to abigen v2 library functions Call, Transact, etc.
func (c *SmartAccount) Instance(backend bind.ContractBackend, addr common.Address) *bind.BoundContract {
	return bind.NewBoundContract(addr, c.abi, backend, backend, backend)
}

// PackConstructor is the Go binding used to pack the parameters required for
// contract deployment.
//
// Solidity: constructor(address signer_) returns()
func (smartAccount *SmartAccount) PackConstructor(signer_ common.Address) []byte {
	enc, err := smartAccount.abi.Pack("", signer_)
	if err != nil {
		panic(err)
	}
	return enc
}

// PackBurn is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x44df8e70.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function burn() returns()
func (smartAccount *SmartAccount) PackBurn() []byte {
	enc, err := smartAccount.abi.Pack("burn")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackBurn is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x44df8e70.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function burn() returns()
func (smartAccount *SmartAccount) TryPackBurn() ([]byte, error) {
	return smartAccount.abi.Pack("burn")
}

// PackBurning is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x4c12b33f.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function burning() view returns(bool)
func (smartAccount *SmartAccount) PackBurning() []byte {
	enc, err := smartAccount.abi.Pack("burning")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackBurning is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x4c12b33f.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function burning() view returns(bool)
func (smartAccount *SmartAccount) TryPackBurning() ([]byte, error) {
	return smartAccount.abi.Pack("burning")
}

// UnpackBurning is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x4c12b33f.
//
// Solidity: function burning() view returns(bool)
func (smartAccount *SmartAccount) UnpackBurning(data []byte) (bool, error) {
	out, err := smartAccount.abi.Unpack("burning", data)
	if err != nil {
		return *new(bool), err
	}
	out0 := *abi.ConvertType(out[0], new(bool)).(*bool)
	return out0, nil
}

// PackIsValidSignature is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x1626ba7e.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function isValidSignature(bytes32 hash, bytes signature) view returns(bytes4)
func (smartAccount *SmartAccount) PackIsValidSignature(hash [32]byte, signature []byte) []byte {
	enc, err := smartAccount.abi.Pack("isValidSignature", hash, signature)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackIsValidSignature is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x1626ba7e.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function isValidSignature(bytes32 hash, bytes signature) view returns(bytes4)
func (smartAccount *SmartAccount) TryPackIsValidSignature(hash [32]byte, signature []byte) ([]byte, error) {
	return smartAccount.abi.Pack("isValidSignature", hash, signature)
}

// UnpackIsValidSignature is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x1626ba7e.
//
// Solidity: function isValidSignature(bytes32 hash, bytes signature) view returns(bytes4)
func (smartAccount *SmartAccount) UnpackIsValidSignature(data []byte) ([4]byte, error) {
	out, err := smartAccount.abi.Unpack("isValidSignature", data)
	if err != nil {
		return *new([4]byte), err
	}
	out0 := *abi.ConvertType(out[0], new([4]byte)).(*[4]byte)
	return out0, nil
}

// PackSigner is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x238ac933.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function signer() view returns(address)
func (smartAccount *SmartAccount) PackSigner() []byte {
	enc, err := smartAccount.abi.Pack("signer")
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackSigner is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x238ac933.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function signer() view returns(address)
func (smartAccount *SmartAccount) TryPackSigner() ([]byte, error) {
	return smartAccount.abi.Pack("signer")
}

// UnpackSigner is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x238ac933.
//
// Solidity: function signer() view returns(address)
func (smartAccount *SmartAccount) UnpackSigner(data []byte) (common.Address, error) {
	out, err := smartAccount.abi.Unpack("signer", data)
	if err != nil {
		return *new(common.Address), err
	}
	out0 := *abi.ConvertType(out[0], new(common.Address)).(*common.Address)
	return out0, nil
}

// SmartAccountFactoryMetaData contains all meta data concerning the SmartAccountFactory contract.
var SmartAccountFactoryMetaData = bind.MetaData{
	ABI: "[{\"inputs\":[{\"internalType\":\"address\",\"name\":\"signer\",\"type\":\"address\"}],\"name\":\"accountOf\",\"outputs\":[{\"internalType\":\"address\",\"name\":\"\",\"type\":\"address\"}],\"stateMutability\":\"view\",\"type\":\"function\"},{\"inputs\":[{\"internalType\":\"address\",\"name\":\"signer\",\"type\":\"address\"}],\"name\":\"deploy\",\"outputs\":[],\"stateMutability\":\"nonpayable\",\"type\":\"function\"}]",
	ID:  "SmartAccountFactory",
	Bin: "0x6080604052348015600e575f5ffd5b506106538061001c5f395ff3fe608060405234801561000f575f5ffd5b5060043610610034575f3560e01c80634c96a389146100385780638086b8ba1461004d575b5f5ffd5b61004b61004636600461018b565b61007c565b005b61006061005b36600461018b565b6100be565b6040516001600160a01b03909116815260200160405180910390f35b5f5f1b8160405161008c9061017e565b6001600160a01b0390911681526020018190604051809103905ff59050801580156100b9573d5f5f3e3d5ffd5b505050565b5f6101335f5f1b604051806020016100d59061017e565b601f1982820381018352601f9091011660408181526001600160a01b03871660208301520160408051601f198184030181529082905261011892916020016101c8565b60405160208183030381529060405280519060200120610139565b92915050565b5f61014583833061014c565b9392505050565b5f604051836040820152846020820152828152600b8101905060ff8153605590206001600160a01b0316949350505050565b61046e806101e583390190565b5f6020828403121561019b575f5ffd5b81356001600160a01b0381168114610145575f5ffd5b5f81518060208401855e5f93019283525090919050565b5f6101dc6101d683866101b1565b846101b1565b94935050505056fe60a0604052348015600e575f5ffd5b5060405161046e38038061046e833981016040819052602b91603b565b6001600160a01b03166080526066565b5f60208284031215604a575f5ffd5b81516001600160a01b0381168114605f575f5ffd5b9392505050565b6080516103e361008b5f395f8181609c0152818161017701526101b301526103e35ff3fe608060405234801561000f575f5ffd5b506004361061004a575f3560e01c80631626ba7e1461004e578063238ac9331461009757806344df8e70146100d65780634c12b33f146100e9575b5f5ffd5b61006161005c366004610345565b610105565b6040517fffffffff0000000000000000000000000000000000000000000000000000000090911681526020015b60405180910390f35b6100be7f000000000000000000000000000000000000000000000000000000000000000081565b6040516001600160a01b03909116815260200161008e565b6100e75f805460ff19166001179055565b005b5f546100f59060ff1681565b604051901515815260200161008e565b5f805460ff161561011257fe5b5f6042831461012257838361012f565b61012f83600181876103bc565b8080601f0160208091040260200160405190810160405280939291908181526020018383808284375f9201829052509394506101719250889150849050610234565b505090507f00000000000000000000000000000000000000000000000000000000000000006001600160a01b0316816001600160a01b03161480156101de57507f00000000000000000000000000000000000000000000000000000000000000006001600160a01b031615155b610208577fffffffff0000000000000000000000000000000000000000000000000000000061022a565b7f1626ba7e000000000000000000000000000000000000000000000000000000005b9695505050505050565b5f5f5f835160410361026b576020840151604085015160608601515f1a61025d8882858561027d565b955095509550505050610276565b505081515f91506002905b9250925092565b5f80807f7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a08411156102b657505f9150600390508261033b565b604080515f808252602082018084528a905260ff891692820192909252606081018790526080810186905260019060a0016020604051602081039080840390855afa158015610307573d5f5f3e3d5ffd5b5050604051601f1901519150506001600160a01b03811661033257505f92506001915082905061033b565b92505f91508190505b9450945094915050565b5f5f5f60408486031215610357575f5ffd5b83359250602084013567ffffffffffffffff811115610374575f5ffd5b8401601f81018613610384575f5ffd5b803567ffffffffffffffff81111561039a575f5ffd5b8660208284010111156103ab575f5ffd5b939660209190910195509293505050565b5f5f858511156103ca575f5ffd5b838611156103d6575f5ffd5b505082019391909203915056",
}

// SmartAccountFactory is an auto generated Go binding around an Ethereum contract.
type SmartAccountFactory struct {
	abi abi.ABI
}

// GetABI returns the ABI associated with this contract binding.
func (c *SmartAccountFactory) GetABI() abi.ABI {
	return c.abi
}

// NewSmartAccountFactory creates a new instance of SmartAccountFactory.
func NewSmartAccountFactory() *SmartAccountFactory {
	parsed, err := SmartAccountFactoryMetaData.ParseABI()
	if err != nil {
		panic(errors.New("invalid ABI: " + err.Error()))
	}
	return &SmartAccountFactory{abi: *parsed}
}

// Instance creates a wrapper for a deployed contract instance at the given address.
// Use this to create the instance object passed to abigen v2 library functions Call, Transact, etc.
func (c *SmartAccountFactory) Instance(backend bind.ContractBackend, addr common.Address) *bind.BoundContract {
	return bind.NewBoundContract(addr, c.abi, backend, backend, backend)
}

// PackAccountOf is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x8086b8ba.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function accountOf(address signer) view returns(address)
func (smartAccountFactory *SmartAccountFactory) PackAccountOf(signer common.Address) []byte {
	enc, err := smartAccountFactory.abi.Pack("accountOf", signer)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackAccountOf is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x8086b8ba.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function accountOf(address signer) view returns(address)
func (smartAccountFactory *SmartAccountFactory) TryPackAccountOf(signer common.Address) ([]byte, error) {
	return smartAccountFactory.abi.Pack("accountOf", signer)
}

// UnpackAccountOf is the Go binding that unpacks the parameters returned
// from invoking the contract method with ID 0x8086b8ba.
//
// Solidity: function accountOf(address signer) view returns(address)
func (smartAccountFactory *SmartAccountFactory) UnpackAccountOf(data []byte) (common.Address, error) {
	out, err := smartAccountFactory.abi.Unpack("accountOf", data)
	if err != nil {
		return *new(common.Address), err
	}
	out0 := *abi.ConvertType(out[0], new(common.Address)).(*common.Address)
	return out0, nil
}

// PackDeploy is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x4c96a389.  This method will panic if any
// invalid/nil inputs are passed.
//
// Solidity: function deploy(address signer) returns()
func (smartAccountFactory *SmartAccountFactory) PackDeploy(signer common.Address) []byte {
	enc, err := smartAccountFactory.abi.Pack("deploy", signer)
	if err != nil {
		panic(err)
	}
	return enc
}

// TryPackDeploy is the Go binding used to pack the parameters required for calling
// the contract method with ID 0x4c96a389.  This method will return an error
// if any inputs are invalid/nil.
//
// Solidity: function deploy(address signer) returns()
func (smartAccountFactory *SmartAccountFactory) TryPackDeploy(signer common.Address) ([]byte, error) {
	return smartAccountFactory.abi.Pack("deploy", signer)
}
