// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @title A token with transfers that return true and emit logs, but move no tokens
/// @dev It has USDC's decimals, name and symbol, and emits logs cheaply.
contract FakeToken is IERC20 {
    string public constant name = "USD Coin";
    string public constant symbol = "USDC";
    uint8 public constant decimals = 6;
    uint256 public constant totalSupply = 0;

    /// @notice The reported balance of an account: 0, unless it pretends.
    mapping(address holder => uint256) public balanceOf;

    bool private pretending;

    /// @notice From now on transfers increase the reported balance, so that a comparison of balances is deceived.
    function pretend() external {
        pretending = true;
    }

    function allowance(address, address) external pure returns (uint256) {
        return type(uint256).max;
    }

    function approve(address, uint256) external pure returns (bool) {
        return true;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        _emit(msg.sender, to, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        _emit(from, to, value);
        return true;
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256,
        uint256,
        bytes32,
        uint8,
        bytes32,
        bytes32
    ) external {
        _emit(from, to, value);
    }

    /// @notice Logs one transfer of `amount` to each of the receivers.
    function emitMany(address[] calldata to, uint256 amount) external {
        for (uint256 i = 0; i < to.length; ++i) {
            emit Transfer(msg.sender, to[i], amount);
        }
    }

    /// @notice Logs `count` transfers to one receiver, of firstAmount, firstAmount + 1 and so on.
    function emitBulk(uint256 count, address to, uint256 firstAmount) external {
        for (uint256 i = 0; i < count; ++i) {
            emit Transfer(msg.sender, to, firstAmount + i);
        }
    }

    function _emit(address from, address to, uint256 value) private {
        if (pretending) balanceOf[to] += value;
        emit Transfer(from, to, value);
    }
}
