// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @title A third party that moves the tokens of accounts that approved it, for any caller
contract Drainer {
    /// @dev The calldata may be longer than the arguments; the token never sees the rest.
    function drain(IERC20 token, address from, address to, uint256 amount) external {
        require(token.transferFrom(from, to, amount));
    }
}
