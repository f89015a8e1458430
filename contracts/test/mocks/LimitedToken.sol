// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

/// @title A token that limits each transfer
contract LimitedToken {
    uint256 public limit;
    mapping(address holder => uint256) public balanceOf;

    event Transfer(address indexed from, address indexed to, uint256 value);

    /// @param holder Holds all tokens initially.
    constructor(address holder) {
        balanceOf[holder] = 1e12;
        limit = 1e12;
    }

    function setLimit(uint256 limit_) external {
        limit = limit_;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        require(value <= limit, "above the limit");
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value;
        emit Transfer(msg.sender, to, value);
        return true;
    }
}
