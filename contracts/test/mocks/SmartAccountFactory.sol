// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

import {Create2} from "@openzeppelin/contracts/utils/Create2.sol";
import {SmartAccount} from "./SmartAccount.sol";

/// @title A factory of accounts, for ERC-6492 signatures
contract SmartAccountFactory {
    /// @notice Deploys the signer's account. It reverts if the account is deployed already.
    function deploy(address signer) external {
        new SmartAccount{salt: 0}(signer);
    }

    /// @notice The address of the signer's account, deployed or not.
    function accountOf(address signer) external view returns (address) {
        return Create2.computeAddress(
            0, keccak256(abi.encodePacked(type(SmartAccount).creationCode, abi.encode(signer)))
        );
    }
}
