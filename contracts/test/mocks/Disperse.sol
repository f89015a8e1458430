// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @title Pays many receivers in one transaction
contract Disperse {
    /// @notice Pays each receiver its amount directly from the caller, who is the payer in every log.
    function disperse(IERC20 token, address[] calldata to, uint256[] calldata amounts) external {
        for (uint256 i = 0; i < to.length; ++i) {
            require(token.transferFrom(msg.sender, to[i], amounts[i]));
        }
    }

    /// @notice Takes the sum from the caller first, so that this contract is the payer in the logs.
    function disperseThroughMe(IERC20 token, address[] calldata to, uint256[] calldata amounts) external {
        uint256 sum = 0;
        for (uint256 i = 0; i < amounts.length; ++i) {
            sum += amounts[i];
        }
        require(token.transferFrom(msg.sender, address(this), sum));
        for (uint256 i = 0; i < to.length; ++i) {
            require(token.transfer(to[i], amounts[i]));
        }
    }
}
