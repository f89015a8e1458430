// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Clones} from "@openzeppelin/contracts/proxy/Clones.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {LowLevelCall} from "@openzeppelin/contracts/utils/LowLevelCall.sol";

/// @title Quittance deposit
/// @notice The code of a deposit address: it sends its whole balance to one merchant when anyone calls it, and can do
/// nothing else.
/// @dev Deposit addresses are clones of this contract with the merchant's address after their code. They have no owner,
/// no storage and no upgrade.
contract Deposit {
    using SafeERC20 for IERC20;

    /// @dev How often a smaller part of the balance is tried after the token refused one, where each is a quarter of
    /// the one before, and the least gas with which another part is sent.
    uint256 private constant MAX_REFUSALS = 6;
    uint256 private constant GAS_PER_PART = 60_000;

    /// @notice This contract is not a clone that a DepositFactory deployed, so that it has no merchant.
    error NotADeposit();

    /// @notice The balance was not transferred: the token or the merchant refused, or the token moved no tokens.
    error NotTransferred(address token);

    /// @notice Accepts the network's coin.
    receive() external payable {}

    /// @notice The settlement address, which receives everything that was sent here.
    function merchant() public view returns (address) {
        bytes memory arguments = Clones.fetchCloneArgs(address(this));
        if (arguments.length != 20) revert NotADeposit();
        return address(bytes20(arguments));
    }

    /// @notice Sends the whole balance of a token to the merchant, and returns the amount by which the balance shrank.
    /// An empty balance is not an error. If the token limits each transfer, the balance is sent in as many parts as the
    /// gas allows; the next call sends more.
    /// @param token An ERC-20 contract, or 0 for the network's coin.
    /// @dev A reentrant or concurrent call can only send to the same merchant.
    function sweep(address token) external returns (uint256 amount) {
        address to = merchant();
        if (token == address(0)) {
            amount = address(this).balance;
            if (amount > 0 && !LowLevelCall.callNoReturn(to, amount, "")) revert NotTransferred(token);
            return amount;
        }
        uint256 balance = IERC20(token).balanceOf(address(this));
        if (balance == 0) return 0;
        uint256 rest = _sendParts(token, to, balance);
        if (rest >= balance) revert NotTransferred(token);
        return balance - rest;
    }

    /// @dev Sends a balance, whole or in parts, and returns the remaining balance. If a token reports that it moved a
    /// part and moved nothing, it is not called again.
    function _sendParts(address token, address to, uint256 balance) private returns (uint256 rest) {
        rest = balance;
        uint256 part = balance;
        uint256 refusals = 0;
        while (rest > 0) {
            if (part > rest) part = rest;
            if (IERC20(token).trySafeTransfer(to, part)) {
                uint256 left = IERC20(token).balanceOf(address(this));
                if (left >= rest) return left;
                rest = left;
                if (gasleft() < GAS_PER_PART) return rest;
            } else {
                if (part == 1 || refusals == MAX_REFUSALS) return rest;
                ++refusals;
                part = (part + 3) / 4;
            }
        }
    }
}
