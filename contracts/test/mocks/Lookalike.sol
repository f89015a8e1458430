// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @title A contract that emits the logs of the registry and the token, and is neither
contract Lookalike {
    event Opened(bytes32 indexed id);
    event Closed(bytes32 indexed id);
    event Paid(bytes32 indexed id, address indexed payer, address indexed merchant, address token, uint256 amount);
    event Transfer(address indexed from, address indexed to, uint256 value);
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);

    /// @notice Emits all events of an invoice, and moves no tokens.
    function tell(bytes32 id, address payer, address merchant, address token, uint256 amount) external {
        emit Opened(id);
        _tellPaid(id, payer, merchant, token, amount);
        emit Closed(id);
    }

    /// @notice Moves a few of the caller's real tokens to the merchant, and emits logs before and after it as if the
    /// invoice were paid in full.
    function embellish(bytes32 id, IERC20 token, address merchant, uint256 moved, uint256 told) external {
        _tellPaid(id, msg.sender, merchant, address(token), told);
        require(token.transferFrom(msg.sender, merchant, moved));
        _tellPaid(id, msg.sender, merchant, address(token), told);
    }

    function _tellPaid(bytes32 id, address payer, address merchant, address token, uint256 amount) private {
        emit AuthorizationUsed(payer, id);
        emit Transfer(payer, merchant, amount);
        emit Paid(id, payer, merchant, token, amount);
    }
}
