// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {SignedAuthorization} from "./AuthorizationRelay.sol";

/// @notice The functions used of a token with EIP-3009, as in Circle's FiatToken v2.2.
interface IAuthorizedToken {
    function DOMAIN_SEPARATOR() external view returns (bytes32);
    function balanceOf(address account) external view returns (uint256);
    function authorizationState(address authorizer, bytes32 nonce) external view returns (bool);
    function isBlacklisted(address account) external view returns (bool);
    function paused() external view returns (bool);
}

/// @title Authorization check
/// @notice Simulates an EIP-3009 authorization. It is never deployed: eth_call runs its constructor, which returns its
/// findings instead of code, all as of one block.
contract AuthorizationCheck {
    /// @notice The findings. `isDeploying` means that the account had no code and its deployer was called, and `gas` is
    /// the gas of that and of the transfer.
    struct Finding {
        uint256 time;
        bytes32 separator;
        bool isContract;
        bool isSigned;
        bool isUsed;
        bool isBlacklisted;
        bool isPaused;
        bool isTransferred;
        bool isDeploying;
        uint256 balance;
        uint256 gas;
        bytes failure;
    }

    bytes32 private constant TYPE_HASH = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );

    /// @dev Bounds the gas and the return data of each call to a hostile account.
    uint256 private constant CALL_GAS = 3_000_000;
    uint256 private constant MAX_FAILURE = 256;

    constructor(SignedAuthorization memory a) {
        Finding memory f;
        f.time = block.timestamp;
        uint256 before = gasleft();
        f.isDeploying = a.deployer != address(0) && a.from.code.length == 0;
        if (f.isDeploying) _call(a.deployer, a.deployData);
        uint256 deploying = before - gasleft();
        f.isContract = a.from.code.length > 0;
        f.separator = bytes32(_read(a.token, abi.encodeCall(IAuthorizedToken.DOMAIN_SEPARATOR, ())));
        f.isSigned = _isSigned(a, f.separator);
        f.isUsed = _read(a.token, abi.encodeCall(IAuthorizedToken.authorizationState, (a.from, a.nonce))) != 0;
        f.isBlacklisted = _read(a.token, abi.encodeCall(IAuthorizedToken.isBlacklisted, (a.from))) != 0
            || _read(a.token, abi.encodeCall(IAuthorizedToken.isBlacklisted, (a.to))) != 0;
        f.isPaused = _read(a.token, abi.encodeCall(IAuthorizedToken.paused, ())) != 0;
        f.balance = _read(a.token, abi.encodeCall(IAuthorizedToken.balanceOf, (a.from)));
        before = gasleft();
        (f.isTransferred, f.failure) = _transfer(a);
        f.gas = deploying + before - gasleft();
        bytes memory found = abi.encode(f);
        assembly ("memory-safe") {
            return(add(found, 32), mload(found))
        }
    }

    /// @dev Makes the transfer, and requires that it moved the value.
    function _transfer(SignedAuthorization memory a) private returns (bool moved, bytes memory failure) {
        uint256 had = _read(a.token, abi.encodeCall(IAuthorizedToken.balanceOf, (a.to)));
        bytes memory data;
        if (a.signature.length == 65) {
            (bytes32 r, bytes32 s, uint8 v) = _split(a.signature);
            data = abi.encodeWithSignature(
                "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)",
                a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce, v, r, s
            );
        } else {
            data = abi.encodeWithSignature(
                "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)",
                a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce, a.signature
            );
        }
        (moved, failure) = _call(a.token, data);
        if (moved) {
            moved = _read(a.token, abi.encodeCall(IAuthorizedToken.balanceOf, (a.to))) == had + a.value;
        }
    }

    /// @dev Whether the payer has signed: by ERC-1271 if it is a contract by now, otherwise by its key.
    function _isSigned(SignedAuthorization memory a, bytes32 separator) private view returns (bool) {
        bytes32 digest = keccak256(
            abi.encodePacked(
                hex"1901",
                separator,
                keccak256(abi.encode(TYPE_HASH, a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce))
            )
        );
        if (a.from.code.length > 0) {
            uint256 answer = _read(a.from, abi.encodeCall(IERC1271.isValidSignature, (digest, a.signature)));
            return bytes4(bytes32(answer)) == IERC1271.isValidSignature.selector;
        }
        if (a.signature.length != 65) return false;
        (bytes32 r, bytes32 s, uint8 v) = _split(a.signature);
        return ecrecover(digest, v, r, s) == a.from && a.from != address(0);
    }

    function _split(bytes memory signature) private pure returns (bytes32 r, bytes32 s, uint8 v) {
        assembly ("memory-safe") {
            r := mload(add(signature, 32))
            s := mload(add(signature, 64))
            v := byte(0, mload(add(signature, 96)))
        }
    }

    /// @dev Calls, and returns the first MAX_FAILURE bytes of the revert data.
    function _call(address to, bytes memory data) private returns (bool done, bytes memory failure) {
        uint256 size;
        assembly ("memory-safe") {
            done := call(CALL_GAS, to, 0, add(data, 32), mload(data), 0, 0)
            size := returndatasize()
        }
        if (done) return (done, failure);
        failure = new bytes(size < MAX_FAILURE ? size : MAX_FAILURE);
        assembly ("memory-safe") {
            returndatacopy(add(failure, 32), 0, mload(failure))
        }
    }

    /// @dev The first word of a view's result; 0 if it fails or is missing.
    function _read(address from, bytes memory data) private view returns (uint256 word) {
        assembly ("memory-safe") {
            let ok := staticcall(CALL_GAS, from, add(data, 32), mload(data), 0, 32)
            if and(ok, gt(returndatasize(), 31)) { word := mload(0) }
        }
    }
}
