// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

/// @title An honest token from before ERC-20 was final, with a transferFrom that returns no value
contract SilentToken {
    mapping(address holder => uint256) public balanceOf;
    mapping(address holder => mapping(address spender => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);

    constructor(address holder) {
        balanceOf[holder] = 1e12;
    }

    function approve(address spender, uint256 value) external {
        allowance[msg.sender][spender] = value;
    }

    function transferFrom(address from, address to, uint256 value) external {
        allowance[from][msg.sender] -= value;
        balanceOf[from] -= value;
        balanceOf[to] += value;
        emit Transfer(from, to, value);
    }
}
