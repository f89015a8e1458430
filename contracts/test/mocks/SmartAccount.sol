// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

/// @title An account that is a contract and signs by ERC-1271
/// @dev It accepts 65 bytes of its signer's key, also with any one byte before them, like accounts that name a
/// validator.
contract SmartAccount {
    address public immutable signer;

    /// @notice Whether it burns all gas when it checks a signature.
    bool public burning;

    constructor(address signer_) {
        signer = signer_;
    }

    function burn() external {
        burning = true;
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        if (burning) {
            assembly {
                invalid()
            }
        }
        bytes memory own = signature.length == 66 ? signature[1:] : signature;
        (address recovered,,) = ECDSA.tryRecover(hash, own);
        return recovered == signer && signer != address(0) ? this.isValidSignature.selector : bytes4(0xffffffff);
    }
}
