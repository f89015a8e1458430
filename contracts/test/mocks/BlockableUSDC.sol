// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {TestUSDC} from "../../src/TestUSDC.sol";

/// @title The test token with Circle's powers over its token: to block accounts, and to pause
contract BlockableUSDC is TestUSDC {
    /// @notice Whether an account can neither send nor receive.
    mapping(address account => bool) public isBlacklisted;

    /// @notice Whether no account can.
    bool public paused;

    constructor(address owner) TestUSDC(owner) {}

    /// @notice Blocks or unblocks an account.
    function setBlocked(address account, bool blocked) external onlyOwner {
        isBlacklisted[account] = blocked;
    }

    /// @notice Pauses or resumes the token.
    function setPaused(bool pause) external onlyOwner {
        paused = pause;
    }

    function _update(address from, address to, uint256 value) internal override {
        require(!paused, "Pausable: paused");
        require(!isBlacklisted[from] && !isBlacklisted[to], "Blacklistable: account is blacklisted");
        super._update(from, to, value);
    }
}
