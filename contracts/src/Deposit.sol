// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Clones} from "@openzeppelin/contracts/proxy/Clones.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {LowLevelCall} from "@openzeppelin/contracts/utils/LowLevelCall.sol";

/// @title Quittance deposit
/// @notice The code of a deposit address: it sends its whole balance to one merchant, at anybody's request, and can do
/// nothing else.
/// @dev Deposit addresses are clones of this contract that have the merchant's address behind their code. They have no
/// owner, no storage and no upgrade.
contract Deposit {
    using SafeERC20 for IERC20;

    /// @notice This contract is not a clone that a DepositFactory deployed, so that it has no merchant.
    error NotADeposit();

    /// @notice The balance was not transferred: the token or the merchant refused, or the token moved nothing.
    error NotTransferred(address token);

    /// @notice Takes the network's coin.
    receive() external payable {}

    /// @notice The settlement address, which receives everything that was sent here.
    function merchant() public view returns (address) {
        bytes memory arguments = Clones.fetchCloneArgs(address(this));
        if (arguments.length != 20) revert NotADeposit();
        return address(bytes20(arguments));
    }

    /// @notice Sends the whole balance of a token to the merchant, and returns the amount by which the balance shrank. An
    /// empty balance is no error.
    /// @param token An ERC-20 contract, or 0 for the network's coin.
    /// @dev A reentrant call, or one at the same time, can only send to the same merchant.
    function sweep(address token) external returns (uint256 amount) {
        address to = merchant();
        if (token == address(0)) {
            amount = address(this).balance;
            if (amount > 0 && !LowLevelCall.callNoReturn(to, amount, "")) revert NotTransferred(token);
            return amount;
        }
        uint256 balance = IERC20(token).balanceOf(address(this));
        if (balance == 0) return 0;
        if (!IERC20(token).trySafeTransfer(to, balance)) revert NotTransferred(token);
        uint256 rest = IERC20(token).balanceOf(address(this));
        if (rest >= balance) revert NotTransferred(token);
        return balance - rest;
    }
}
