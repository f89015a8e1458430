// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @title A token that keeps one minor unit of every transfer
contract FeeToken is ERC20("Fee", "FEE") {
    constructor(address holder) {
        _mint(holder, 1e12);
    }

    function _update(address from, address to, uint256 value) internal override {
        super._update(from, to, value);
        if (from != address(0) && to != address(0) && value > 0) super._update(to, address(0), 1);
    }
}
