// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";

/// @title An account that accepts any signature, and a factory of accounts; both burn gas
contract GasBurner {
    /// @notice Whether it burns gas, and how much it leaves.
    bool public burning;
    uint256 public leaves;

    function burn(uint256 leaves_) external {
        burning = true;
        leaves = leaves_;
    }

    function stop() external {
        burning = false;
    }

    function deploy() external view {
        _burn();
    }

    function isValidSignature(bytes32, bytes calldata) external view returns (bytes4) {
        _burn();
        return IERC1271.isValidSignature.selector;
    }

    function _burn() private view {
        if (!burning) return;
        uint256 rest = leaves;
        while (gasleft() > rest + 200) {}
    }
}
