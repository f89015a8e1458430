// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @notice The call of EIP-3009 that only the receiver may make.
interface IReceiveWithAuthorization {
    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) external;
}

/// @title A settlement address that is a contract
/// @dev For tests only: anyone may move its tokens.
contract MerchantWallet {
    /// @notice Forwards or refunds tokens.
    function send(IERC20 token, address to, uint256 amount) external {
        require(token.transfer(to, amount));
    }

    /// @notice Receives an authorized payment and forwards `onward` of it in the same transaction.
    function collect(
        address token,
        address from,
        uint256 value,
        uint256 validBefore,
        bytes32 nonce,
        bytes calldata signature,
        address treasury,
        uint256 onward
    ) external {
        IReceiveWithAuthorization(token).receiveWithAuthorization(
            from, address(this), value, 0, validBefore, nonce, signature
        );
        if (onward > 0) require(IERC20(token).transfer(treasury, onward));
    }
}
