// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @title A token that calls back into the contract that moves it
/// @dev It records the result of the callback, so that a test can distinguish "refused" from "never tried".
contract ReentrantToken is ERC20("Reentrant", "RE") {
    address public target;
    bytes public payload;
    bool public attempted;
    bool public succeeded;
    bytes public answer;

    constructor(address holder) {
        _mint(holder, 1e12);
    }

    /// @notice Sets the call to make inside the next transferFrom.
    function arm(address target_, bytes calldata payload_) external {
        target = target_;
        payload = payload_;
    }

    function transferFrom(address from, address to, uint256 value) public override returns (bool) {
        if (target != address(0)) {
            address callee = target;
            target = address(0);
            attempted = true;
            (succeeded, answer) = callee.call(payload);
        }
        return super.transferFrom(from, to, value);
    }
}
